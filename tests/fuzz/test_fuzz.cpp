// SPDX-License-Identifier: Apache-2.0
// Every parser under mutated inputs: a fixed number of them, or for EINKERN_FUZZ_SECONDS each.
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <string>

#include "../support/sanitizer.h"
#include "mutate.h"

using namespace einkern::test;

namespace {

void run(const std::string& name, int times) {
  const auto& targets = fuzz_targets();
  const auto found = std::find_if(targets.begin(), targets.end(),
                                  [&](const FuzzTarget& target) { return target.name == name; });
  REQUIRE(found != targets.end());
  std::vector<Bytes> corpus = found->seeds();
  const int count = fewer_if_sanitized(times);
  using Clock = std::chrono::steady_clock;
  const char* const seconds = std::getenv("EINKERN_FUZZ_SECONDS");
  const auto end = Clock::now() + std::chrono::seconds(seconds == nullptr ? 0 : std::atoi(seconds));
  std::mt19937 random(11);
  const auto guarded = [&](const Bytes& bytes) {
    try {
      return found->run(bytes);
    } catch (const std::exception& error) {
      const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      CAPTURE(text);
      const std::string fault = name + ": " + error.what();
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
    Bytes bytes = mutated(from, other, found->dictionary, random);
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
  TEST_CASE("equations") { run("equation", 10000); }
  TEST_CASE("programs") { run("program", 4000); }
  TEST_CASE("npy") { run("npy", 10000); }
  TEST_CASE("npz") { run("npz", 10000); }
  TEST_CASE("safetensors") { run("safetensors", 10000); }
}
