// SPDX-License-Identifier: Apache-2.0
// Text from files, fit for a message.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace einkern::io {

/// Printable ASCII, other bytes as '?', at most 100 characters; blanks at the end are dropped.
std::string shown(std::string_view text);

/// `'a', 'b', 'c'`, the first twenty of them.
std::string shown_list(std::span<const std::string_view> names);

}  // namespace einkern::io
