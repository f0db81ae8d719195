// SPDX-License-Identifier: Apache-2.0
// Errors of the engine, raised by words, under the file and line of the program that used them.
#pragma once

#include <string>

#include "ast.h"
#include "source.h"

namespace einkern::program {

/// The message of a word's error at the place of `node`. Carets below an equation move to where the
/// equation stands in the program, if it does.
std::string place_error(const Source& source, const Node& node, const std::string& message);

/// Calls `f`; an Error it throws is thrown again as the same type with `change(message)`.
template <class F, class Change>
decltype(auto) with_message(F&& f, Change&& change) {
  try {
    return f();
  } catch (const SyntaxError& error) {
    fail<SyntaxError>(change(error.what()));
  } catch (const ShapeError& error) {
    fail<ShapeError>(change(error.what()));
  } catch (const TypeError& error) {
    fail<TypeError>(change(error.what()));
  } catch (const ValueError& error) {
    fail<ValueError>(change(error.what()));
  } catch (const MemoryLimitError& error) {
    fail<MemoryLimitError>(change(error.what()));
  } catch (const IoError& error) {
    fail<IoError>(change(error.what()));
  }
}

}  // namespace einkern::program
