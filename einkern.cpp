// SPDX-License-Identifier: Apache-2.0
// What belongs to the library as a whole: its version, and all words as one table.
#include "einkern.h"

#include "attention/words.h"
#include "ops/words.h"

namespace einkern {

const char* version() noexcept { return EINKERN_VERSION; }

const Words& words() {
  static const Words kWords{&engine_words(), &ops_words(), &attention_words()};
  return kWords;
}

Program Program::parse(std::string_view text, const std::string& name) {
  return parse(text, name, words());
}

Program Program::from_file(const std::filesystem::path& path) { return from_file(path, words()); }

}  // namespace einkern
