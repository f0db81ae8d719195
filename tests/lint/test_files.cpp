// SPDX-License-Identifier: Apache-2.0
// The form of files: their first lines and their length.
#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

#include "sources.h"

using namespace einkern::test;

namespace {

const std::vector<std::string> kFolders = {"engine", "ops",      "attention", "tools",
                                           "tests",  "examples", "docs",      ".ci"};

}  // namespace

TEST_SUITE("lint") {
  TEST_CASE("sources begin with the licence and a sentence") {
    const auto sources = files_in(kFolders, {".h", ".cpp"});
    CHECK(sources.size() > 50);
    for (const std::string& path : sources) {
      CAPTURE(path);
      const auto lines = lines_of(path);
      REQUIRE(lines.size() > 2);
      CHECK(lines[0] == "// SPDX-License-Identifier: Apache-2.0");
      CHECK(lines[1].starts_with("// "));
      CHECK(lines[1].size() > 20);
    }
  }

  TEST_CASE("scripts and build files name the licence") {
    auto others = files_in(kFolders, {".build", ".py", ""});
    others.emplace_back("meson.build");
    others.emplace_back("meson_options.txt");
    for (const std::string& path : others) {
      CAPTURE(path);
      const auto lines = lines_of(path);
      REQUIRE(lines.size() > 0);
      CHECK(lines[lines[0].starts_with("#!") ? 1 : 0] == "# SPDX-License-Identifier: Apache-2.0");
    }
  }

  TEST_CASE("headers have one guard") {
    for (const std::string& path : files_in(kFolders, {".h"})) {
      // Highway's templates are compiled once per target and guard themselves.
      if (path.ends_with("-inl.h")) continue;
      CAPTURE(path);
      const auto lines = lines_of(path);
      CHECK(std::ranges::count(lines, "#pragma once") == 1);
    }
  }

  TEST_CASE("files stay short") {
    for (const std::string& path : files_in(kFolders, {".h", ".cpp"})) {
      CAPTURE(path);
      // A `-inl.h` holds templates for the SIMD targets: code, not an interface.
      const bool interface = path.ends_with(".h") && !path.ends_with("-inl.h");
      CHECK(lines_of(path).size() <= (interface ? 250 : 500));
    }
  }
}
