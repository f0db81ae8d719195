// SPDX-License-Identifier: Apache-2.0
// Every parser under mutated inputs: a fixed number of them, or for EINKERN_FUZZ_SECONDS each.
#include <doctest/doctest.h>

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <string>

#include "../support/sanitizer.h"
#include "mutate.h"

using namespace einkern::test;

namespace {

void run(const char* name, Target target, std::vector<Bytes> corpus,
         const std::vector<std::string>& dictionary, int count) {
  using Clock = std::chrono::steady_clock;
  const char* const seconds = std::getenv("EINKERN_FUZZ_SECONDS");
  const auto end = Clock::now() + std::chrono::seconds(seconds == nullptr ? 0 : std::atoi(seconds));
  std::mt19937 random(11);
  const auto guarded = [&](const Bytes& bytes) {
    try {
      return target(bytes);
    } catch (const std::exception& error) {
      const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      CAPTURE(text);
      const std::string fault = std::string(name) + ": " + error.what();
      FAIL(fault);
    }
    return Verdict::refused;
  };
  for (const Bytes& seed : corpus) guarded(seed);
  const std::size_t seeds = corpus.size();
  long read = 0, refused = 0;
  for (long i = 0; seconds == nullptr ? i < count : Clock::now() < end; ++i) {
    const Bytes& from = corpus[random() % corpus.size()];
    const Bytes& other = corpus[random() % corpus.size()];
    Bytes bytes = mutated(from, other, dictionary, random);
    const Verdict verdict = guarded(bytes);
    ++(verdict == Verdict::read ? read : refused);
    // What is accepted is changed further.
    if (verdict == Verdict::read && corpus.size() < seeds + 500) {
      corpus.push_back(std::move(bytes));
    } else if (verdict == Verdict::read) {
      corpus[seeds + random() % 500] = std::move(bytes);
    }
  }
  if (seconds != nullptr) std::cout << name << ": " << read << " read, " << refused << " refused\n";
  CHECK(read > 0);
  CHECK(refused > 0);
}

}  // namespace

TEST_SUITE("fuzz") {
  TEST_CASE("programs") {
    run("program", fuzz_program, program_seeds(),
        {"(",
         ")",
         "[",
         "]",
         "\"",
         ",",
         ":",
         "=",
         "def f(x):\n    return x\n",
         "import \"a\"\n",
         "input x: f32[n]\n",
         "return ",
         "and ",
         "not ",
         "...",
         "**",
         "//",
         "-",
         "inf",
         "nan",
         "true",
         "9223372036854775807",
         "1e308",
         "index(k)",
         "size(x, 0)",
         ".output",
         "x[1:2]",
         "[\"ij\"]",
         "\n",
         "# ",
         "\xCE\xB1",
         "\xFF"},
        fewer_if_sanitized(4000));
  }
  TEST_CASE("npy") {
    run("npy", fuzz_npy, npy_seeds(),
        {"{'descr': '", "<f8", ">i4", "|b1", "True", "(", ",", "0", "18446744073709551616", " "},
        fewer_if_sanitized(10000));
  }
  TEST_CASE("npz") {
    run("npz", fuzz_npz, npz_seeds(),
        {"PK\x03\x04", "PK\x01\x02", "PK\x05\x06", "PK\x06\x06", ".npy"},
        fewer_if_sanitized(10000));
  }
  TEST_CASE("safetensors") {
    run("safetensors", fuzz_safetensors, safetensors_seeds(),
        {"{", "}", "\"", ":", ",", "[", "]", "\"dtype\":\"F32\"", "\"shape\":[",
         "\"data_offsets\":[", "__metadata__", "BF16", "-1", "1e3", "18446744073709551616", "null"},
        fewer_if_sanitized(10000));
  }
}
