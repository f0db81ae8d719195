// SPDX-License-Identifier: Apache-2.0
// A text with its name, and errors that show file, line and carets.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "../base/caret.h"
#include "../base/error.h"

namespace einkern::program {

/// One program text. Places are counted in code points from its start.
class Source {
 public:
  /// SyntaxError for more than 1 MiB or what is not UTF-8.
  Source(std::string name, std::string_view text);

  const std::string& name() const noexcept { return name_; }
  std::u32string_view points() const noexcept { return points_; }
  /// Line of a place, from 0.
  std::size_t line_of(std::size_t place) const;
  std::size_t line_begin(std::size_t line) const { return starts_[line]; }
  std::size_t column_of(std::size_t place) const { return place - starts_[line_of(place)]; }
  /// A line without its end.
  std::u32string_view line(std::size_t line) const;
  std::size_t line_count() const noexcept { return starts_.size(); }
  /// The text that a span covers.
  std::string text(const Span& span) const;

  /// `<name>:<line>: <fact>`, the line of the first span, and carets under the parts of all spans
  /// that lie on it.
  std::string message(const std::string& fact, const std::vector<Span>& spans) const;

  /// `<name>:<line>`, counted from 1.
  std::string place(std::size_t at) const;

 private:
  std::string name_;
  std::u32string points_;
  std::vector<std::size_t> starts_;  // of lines
};

/// `fail<E>` with the place of `span`.
template <class E>
[[noreturn]] void fail_in(const Source& source, const Span& span, const std::string& fact) {
  fail<E>(source.message(fact, {span}));
}

}  // namespace einkern::program
