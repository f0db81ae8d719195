// SPDX-License-Identifier: Apache-2.0
// The include table: which room may look into which, and where third-party headers may appear.
#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

#include "sources.h"

using namespace einkern::test;

namespace {

using Names = std::vector<std::string_view>;

/// A folder and the folders it may include besides itself. `public` stands for the installed
/// headers.
struct Room {
  std::string_view folder;
  Names may_include;
};

const std::vector<Room> kRooms = {
    {"engine/base", {}},
    {"engine/tensor", {"engine/base"}},
    {"engine/spec", {"engine/base"}},
    {"engine/map", {"engine/base"}},
    {"engine/kernel", {"engine/base", "engine/map"}},
    {"engine/plan", {"engine/base", "engine/spec", "engine/map"}},
    {"engine/exec",
     {"engine/base", "engine/tensor", "engine/spec", "engine/map", "engine/plan", "engine/kernel"}},
    {"engine/graph",
     {"engine/base", "engine/tensor", "engine/spec", "engine/map", "engine/plan", "engine/exec"}},
    {"engine/program", {"engine/base", "engine/spec", "engine/graph"}},
    {"ops", {"public"}},
    {"attention", {"ops", "public"}},
    {"tools", {"engine", "ops", "attention", "public"}},
    {"examples", {"public"}},
};

/// A third-party library: its headers begin with one of `headers` and appear only in `places`
/// (folders or files) and in the tests.
struct Library {
  std::string_view name;
  Names headers, places;
};

const std::vector<Library> kLibraries = {
    {"Highway", {"hwy/"}, {"engine/kernel"}},
    {"Spirit X3", {"boost/"}, {"engine/spec/grammar.cpp", "engine/program/grammar.cpp"}},
    {"oneTBB", {"oneapi/", "tbb/"}, {"engine/exec/parallel.cpp"}},
    {"zlib", {"zlib.h"}, {"engine/tensor/io", "tools"}},
    {"JSON", {"nlohmann/"}, {"engine/tensor/io", "tools"}},
    {"CLI11", {"CLI/"}, {"tools"}},
    {"fmt", {"fmt/"}, {"engine", "ops", "attention", "tools", "examples", "einkern.cpp"}},
    {"doctest", {"doctest/"}, {}},
    {"Eigen", {"Eigen/"}, {}},
    {"xtensor", {"xtensor/"}, {}},
};

bool contains(const auto& list, std::string_view name) {
  return std::ranges::find(list, name) != list.end();
}

bool begins_with_any(std::string_view text, const Names& prefixes) {
  return std::ranges::any_of(prefixes, [&](auto prefix) { return text.starts_with(prefix); });
}

/// Is the path one of these files or inside one of these folders?
bool lies_in(std::string_view path, const Names& places) {
  return std::ranges::any_of(places,
                             [&](auto place) { return path == place || in_folder(path, place); });
}

const Room* room_of(std::string_view path) {
  for (const Room& room : kRooms) {
    if (in_folder(path, room.folder)) return &room;
  }
  return nullptr;
}

bool may_include(const Room& room, const std::string& target) {
  return in_folder(target, room.folder) || lies_in(target, room.may_include) ||
         (contains(room.may_include, "public") && contains(public_headers(), target));
}

std::vector<std::string> sources() {
  return files_in({"engine", "ops", "attention", "tools", "examples"}, {".h", ".cpp"});
}

}  // namespace

TEST_SUITE("lint") {
  TEST_CASE("rooms include what their row of the table allows") {
    int checked = 0;
    for (const std::string& path : sources()) {
      CAPTURE(path);
      const Room* room = room_of(path);
      REQUIRE_MESSAGE(room != nullptr, "this folder has no row in the table");
      for (const Include& include : includes_of(path)) {
        if (include.angled) continue;
        CAPTURE(include.target);
        CHECK(may_include(*room, include.target));
        ++checked;
      }
    }
    CHECK(checked > 100);
  }

  TEST_CASE("tests look no further than what they test") {
    for (const std::string& path : files_in({"tests"}, {".h", ".cpp"})) {
      const Room* room = room_of(path.substr(std::string_view("tests/").size()));
      if (room == nullptr) continue;  // support, golden, lint
      CAPTURE(path);
      for (const Include& include : includes_of(path)) {
        if (include.angled || in_folder(include.target, "tests")) continue;
        CAPTURE(include.target);
        CHECK(may_include(*room, include.target));
      }
    }
  }

  TEST_CASE("third-party libraries stay in their rooms") {
    for (const std::string& path : sources()) {
      CAPTURE(path);
      for (const Include& include : includes_of(path)) {
        if (!include.angled || include.target == "einkern.h") continue;
        CAPTURE(include.target);
        bool known = false;
        for (const Library& library : kLibraries) {
          if (!begins_with_any(include.target, library.headers)) continue;
          CAPTURE(library.name);
          CHECK(lies_in(path, library.places));
          known = true;
        }
        // What is left must come with the compiler or the system.
        const bool system = include.target.find('/') == std::string::npos ||
                            begins_with_any(include.target, {"sys/", "sanitizer/"});
        CHECK((known || system));
      }
    }
  }

  TEST_CASE("public headers include public headers and the standard library") {
    for (const std::string& path : public_headers()) {
      CAPTURE(path);
      CHECK(std::filesystem::is_regular_file(source_root() / path));
      for (const Include& include : includes_of(path)) {
        CAPTURE(include.target);
        if (include.angled) {
          CHECK(include.target.find_first_of("/.") == std::string::npos);
        } else {
          CHECK(contains(public_headers(), include.target));
        }
      }
    }
  }
}
