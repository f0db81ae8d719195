// SPDX-License-Identifier: Apache-2.0
// Messages that point into a text: the text on its own line and carets under the spans.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace einkern {

/// A piece of a text, counted in code points from its start.
struct Span {
  std::size_t begin = 0;
  std::size_t size = 1;
};

/// The message, then the text indented by four blanks, then a line with `^` under every span:
///
///     einsum: label 'd' is 64 in operand 0 but 32 in operand 1
///         bhqd,bhkd->bhqk
///            ^    ^
///
/// A span at the end of the text points one past it. Control characters of the text are shown as
/// U+FFFD, and a text over 200 code points is cut around the first span with `...`.
std::string with_carets(std::string_view message, std::string_view text,
                        const std::vector<Span>& spans);

/// Decodes UTF-8; an invalid byte becomes U+FFFD.
std::u32string decode_utf8(std::string_view text);
/// Encodes code points as UTF-8.
std::string encode_utf8(std::u32string_view text);

}  // namespace einkern
