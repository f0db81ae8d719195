// SPDX-License-Identifier: Apache-2.0
// The known name that somebody probably meant.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace einkern::program {

/// How a word of NumPy or PyTorch is written here: `permute(x, order)` for "transpose"; or empty.
std::string foreign_word(std::string_view name);

/// The nearest of the names by edits of single letters (a swap of neighbours is one), when it is
/// near enough to be a slip: at most a third of the letters, at least one. Empty otherwise; the
/// first of equals.
std::string nearest(std::string_view name, const std::vector<std::string>& known);

/// `; did you mean 'softmax'?`, or nothing when no name is near.
std::string suggestion(std::string_view name, const std::vector<std::string>& known);

/// `'a', 'b', 'c'`, at most twenty of them; `none` for none.
std::string listed(const std::vector<std::string>& names);

}  // namespace einkern::program
