// SPDX-License-Identifier: Apache-2.0
// The source tree as data: its files, their lines, and what they include.
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace einkern::test {

/// Root of the source tree.
inline std::filesystem::path source_root() { return EINKERN_SOURCE_ROOT; }

inline std::vector<std::string> lines_of(const std::string& path) {
  std::ifstream file(source_root() / path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

/// Every file of the folders with one of these endings, as sorted paths from the root.
inline std::vector<std::string> files_in(const std::vector<std::string>& folders,
                                         const std::vector<std::string>& endings) {
  std::vector<std::string> paths;
  for (const std::string& folder : folders) {
    if (!std::filesystem::is_directory(source_root() / folder)) continue;
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(source_root() / folder)) {
      const std::string ending = entry.path().extension();
      if (!entry.is_regular_file() || std::ranges::find(endings, ending) == endings.end()) continue;
      paths.push_back(entry.path().lexically_relative(source_root()).generic_string());
    }
  }
  std::ranges::sort(paths);
  return paths;
}

/// The headers that are installed, as meson.build lists them.
inline std::vector<std::string> public_headers() {
  std::istringstream list(EINKERN_PUBLIC_HEADERS);
  std::vector<std::string> headers;
  for (std::string header; std::getline(list, header, ',');) headers.push_back(header);
  return headers;
}

struct Include {
  std::string target;   // from the root for "...", as written for <...>
  bool angled = false;  // <...>
};

inline std::vector<Include> includes_of(const std::string& path) {
  std::vector<Include> includes;
  for (const std::string& line : lines_of(path)) {
    std::string_view text = line;
    if (!text.starts_with("#include ") || text.size() < 11) continue;
    text.remove_prefix(9);
    const bool angled = text.front() == '<';
    const std::string name(text.substr(1, text.find(angled ? '>' : '"', 1) - 1));
    const auto parent = std::filesystem::path(path).parent_path();
    includes.push_back(
        {angled ? name : (parent / name).lexically_normal().generic_string(), angled});
  }
  return includes;
}

inline bool in_folder(std::string_view path, std::string_view folder) {
  return path.starts_with(folder) && path.substr(folder.size()).starts_with('/');
}

}  // namespace einkern::test
