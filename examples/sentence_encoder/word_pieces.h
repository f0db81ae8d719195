// SPDX-License-Identifier: Apache-2.0
// Text to numbers of word pieces, as BERT without case reads it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace sentence {

/// A vocabulary of word pieces, and the tokenizer that finds them. Text is split at spaces,
/// punctuation and ideographs; accents go, letters become small; every word is cut from the left
/// into the longest pieces there are, which inside a word begin with ##. A word that cannot be cut,
/// or has more than 100 characters, is [UNK]. Source: Devlin et al., "BERT", 2019; word pieces: Wu
/// et al., "Google's neural machine translation system", 2016, section 4.1.
class WordPieces {
 public:
  /// One piece a line; a line's number, from 0, is the piece's. std::runtime_error when the file
  /// cannot be read, names a piece twice, or lacks [UNK], [CLS] or [SEP].
  explicit WordPieces(const std::filesystem::path& vocabulary);
  explicit WordPieces(const std::vector<std::string>& pieces);

  /// Numbers of the text's pieces between those of [CLS] and [SEP], `limit` in all (at least 2):
  /// what is too much is cut off. [CLS], [UNK] and their like in the text stand for themselves.
  std::vector<std::int64_t> encode(std::string_view text, std::size_t limit = 256) const;

  std::size_t size() const noexcept { return numbers_.size(); }

 private:
  void add(std::string piece);
  void check() const;
  std::vector<std::string> words_of(std::string_view text) const;
  void append_pieces(std::vector<std::int64_t>& ids, std::string_view word) const;

  std::map<std::string, std::int64_t, std::less<>> numbers_;
};

}  // namespace sentence
