// SPDX-License-Identifier: Apache-2.0
// Characters as the tokenizer of BERT sees them: what is dropped, splits words, and folds to what.
#pragma once

#include <string>
#include <string_view>

namespace sentence {

/// The code points of a UTF-8 text; every byte that belongs to none becomes U+FFFD.
std::u32string decode(std::string_view text);

/// Appends one code point as UTF-8.
void append(std::string& text, char32_t c);

/// Controls, formats, private use and U+FFFD, which vanish.
bool is_dropped(char32_t c);
bool is_space(char32_t c);
/// Punctuation of Unicode, and every sign of ASCII; each is a word of its own.
bool is_punctuation(char32_t c);
/// Ideographs, each of which is a word of its own.
bool is_ideograph(char32_t c);

/// Canonically decomposed, without marks that take no space (accents), in lower case. Perhaps
/// empty.
std::u32string folded(char32_t c);

}  // namespace sentence
