// SPDX-License-Identifier: Apache-2.0
// The documents against the tree: every file they name exists, and what README shows is compiled.
#include <doctest/doctest.h>

#include <regex>
#include <string>
#include <vector>

#include "sources.h"

using namespace einkern::test;

namespace {

std::string text_of(const std::string& path) {
  std::string text;
  for (const std::string& line : lines_of(path)) text += line + '\n';
  return text;
}

/// `a/b.{h,cpp}` as `a/b.h` and `a/b.cpp`.
std::vector<std::string> expanded(const std::string& name) {
  const std::size_t open = name.find('{'), close = name.find('}');
  if (open == name.npos || close == name.npos) return {name};
  std::vector<std::string> names;
  std::istringstream choices(name.substr(open + 1, close - open - 1));
  for (std::string choice; std::getline(choices, choice, ',');) {
    names.push_back(name.substr(0, open) + choice + name.substr(close + 1));
  }
  return names;
}

/// What a document quotes that looks like a path of the tree: it has a slash, and begins with a
/// folder of the root.
std::vector<std::string> paths_in(const std::string& document) {
  static const std::regex kPath(
      R"(`((?:engine|ops|attention|tools|tests|examples|docs|\.ci)/[A-Za-z0-9_./{},-]*)[` ])");
  const std::string text = text_of(document);
  std::vector<std::string> paths;
  for (std::sregex_iterator match(text.begin(), text.end(), kPath), end; match != end; ++match) {
    for (const std::string& path : expanded((*match)[1])) paths.push_back(path);
  }
  return paths;
}

}  // namespace

TEST_SUITE("lint") {
  TEST_CASE("documents name files that exist") {
    auto documents = files_in({"docs"}, {".md"});
    documents.emplace_back("README.md");
    documents.emplace_back("CONTRIBUTING.md");
    for (const std::string& document : documents) {
      CAPTURE(document);
      REQUIRE(std::filesystem::is_regular_file(source_root() / document));
      for (const std::string& path : paths_in(document)) {
        CAPTURE(path);
        CHECK(std::filesystem::exists(source_root() / path));
      }
    }
    CHECK(paths_in("docs/route.md").size() > 10);
  }

  TEST_CASE("the example of README is examples/readme.cpp") {
    const std::string readme = text_of("README.md");
    const std::size_t begin = readme.find("```cpp\n");
    REQUIRE(begin != readme.npos);
    const std::size_t end = readme.find("```\n", begin + 7);
    std::string example = text_of("examples/readme.cpp");
    // Without the two lines on top that every file has.
    for (int line = 0; line < 2; ++line) example.erase(0, example.find('\n') + 1);
    CHECK(readme.substr(begin + 7, end - begin - 7) == example);
  }
}
