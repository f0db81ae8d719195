// SPDX-License-Identifier: Apache-2.0
// Each public header alone: it needs nothing before it, and may be included twice.
#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "sources.h"

using namespace einkern::test;

namespace {

/// What the compiler says of a file with nothing but this header; empty when it is content.
std::string complaints_about(const std::filesystem::path& root, const std::string& header) {
  const std::string include = "#include \\\"" + header + "\\\"\\n";
  // Only our own folders and the system's: public headers need no other library.
  const std::string command = "printf \"" + include + include +
                              "\" | '" EINKERN_COMPILER "' -std=c++20 -fsyntax-only -I'" +
                              root.string() + "' -x c++ - 2>&1";
  std::FILE* const pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return "no shell for: " + command;
  std::string said;
  std::array<char, 4096> part{};
  while (const std::size_t bytes = std::fread(part.data(), 1, part.size(), pipe)) {
    said.append(part.data(), bytes);
  }
  const int code = ::pclose(pipe);
  return code != 0 && said.empty() ? "exit code of: " + command : said;
}

/// The same for many headers, as many at a time as there are processors.
std::vector<std::string> complaints_about(const std::vector<std::string>& headers) {
  std::vector<std::string> said(headers.size());
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < headers.size(); i = next++) {
      said[i] = complaints_about(source_root(), headers[i]);
    }
  };
  std::vector<std::thread> threads(std::max(1U, std::thread::hardware_concurrency()));
  for (std::thread& thread : threads) thread = std::thread(work);
  for (std::thread& thread : threads) thread.join();
  return said;
}

}  // namespace

TEST_SUITE("lint") {
  TEST_CASE("public headers compile alone") {
    const std::vector<std::string> headers = public_headers();
    REQUIRE(headers.size() > 50);
    const std::vector<std::string> said = complaints_about(headers);
    for (std::size_t i = 0; i < headers.size(); ++i) {
      CHECK_MESSAGE(said[i].empty(), headers[i] << "\n" << said[i]);
    }
  }

  TEST_CASE("a header that forgets an include is noticed") {
    const auto folder = std::filesystem::temp_directory_path() /
                        ("einkern_test_headers_" + std::to_string(::getpid()));
    std::filesystem::create_directory(folder);
    std::ofstream(folder / "whole.h") << "#pragma once\n#include <vector>\nstd::vector<int> f();\n";
    std::ofstream(folder / "forgetful.h") << "#pragma once\nstd::vector<int> f();\n";
    std::ofstream(folder / "unguarded.h") << "struct Twice {};\n";
    CHECK(complaints_about(folder, "whole.h") == "");
    CHECK(complaints_about(folder, "forgetful.h").find("vector") != std::string::npos);
    CHECK(complaints_about(folder, "unguarded.h").find("Twice") != std::string::npos);
    CHECK(complaints_about(folder, "missing.h").find("missing.h") != std::string::npos);
    std::filesystem::remove_all(folder);
  }
}
