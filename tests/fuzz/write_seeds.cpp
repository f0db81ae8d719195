// SPDX-License-Identifier: Apache-2.0
// Writes the seeds and the dictionary of a target for libFuzzer: `write_seeds TARGET FOLDER`.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "targets.h"

int main(int count, char** arguments) {
  using namespace einkern::test;
  for (const FuzzTarget& target : fuzz_targets()) {
    if (count != 3 || target.name != arguments[1]) continue;
    const std::filesystem::path folder = arguments[2];
    std::filesystem::create_directories(folder / "seeds");
    int number = 0;
    for (const Bytes& seed : target.seeds()) {
      std::ofstream file(folder / "seeds" / std::to_string(number++), std::ios::binary);
      file.write(reinterpret_cast<const char*>(seed.data()),
                 static_cast<std::streamsize>(seed.size()));
    }
    std::ofstream dictionary(folder / "dictionary");
    for (const std::string& word : target.dictionary) {
      dictionary << '"';
      for (const char c : word) {
        char code[8];
        std::snprintf(code, sizeof code, "\\x%02X", static_cast<unsigned char>(c));
        dictionary << code;
      }
      dictionary << "\"\n";
    }
    return 0;
  }
  std::cerr << "usage: write_seeds TARGET FOLDER; targets:";
  for (const FuzzTarget& target : fuzz_targets()) std::cerr << ' ' << target.name;
  std::cerr << '\n';
  return 2;
}
