// SPDX-License-Identifier: Apache-2.0
// The quickstart: right on its own data, complete, 80 columns wide, and a failure when the data are
// off.
#include <doctest/doctest.h>

#include <cstdio>
#include <filesystem>
#include <sstream>

#include "arrays_folder.h"
#include "contains.h"

using namespace einkern;
using namespace einkern::test;

namespace {

Finished quickstart(const std::vector<std::string>& arguments = {}) {
  return Process(EINKERN_QUICKSTART, arguments, "/").wait();
}

}  // namespace

TEST_SUITE("tools") {
  TEST_CASE("the quickstart shows program, plan, weights, deviation, time and memory") {
    const Finished done = quickstart();
    CHECK(done.code == 0);
    CHECK(done.err == "");
    // The formula, as the file has it.
    std::istringstream formula(read_text(EINKERN_QUICKSTART_FOLDER "/formula.h"));
    int shown = 0;
    bool inside = false;
    for (std::string line; std::getline(formula, line);) {
      inside = inside || line.starts_with("inline Attention attend");
      if (!inside || line.empty()) continue;
      CAPTURE(line);
      CHECK(contains(done.out, "\n  " + line + "\n"));
      ++shown;
    }
    CHECK(shown > 8);
    CHECK(contains(done.out, "target "));
    CHECK(contains(done.out, "plain, head 1"));
    CHECK(contains(done.out, "causal, head 2"));
    CHECK(contains(done.out,
                   "   you  9  .  .  .  .  .  .  .  .       you  9  .  .  .  .  .  .  .  ."));
    CHECK(contains(done.out, "  plain   weights "));
    CHECK(contains(done.out, "  causal  weights "));
    CHECK(contains(done.out, "\nTime "));
    CHECK(contains(done.out, "peak memory "));
    std::istringstream lines(done.out);
    for (std::string line; std::getline(lines, line);) {
      CAPTURE(line);
      CHECK(line.size() <= 80);
      CHECK_FALSE(contains(line, "\x1b"));  // standard output is no terminal
    }
  }

  TEST_CASE("the quickstart shows the published model, or says how to get it") {
    const Finished done = quickstart();
    if (!std::filesystem::exists(EINKERN_SENTENCE_MODEL "/model.safetensors")) {
      CHECK(
          done.out.ends_with("\nexamples/sentence_encoder/fetch gets a published model (84 MB) to "
                             "be shown here.\n"));
      std::puts("SKIPPED: no model in models/sentence_encoder, so the quickstart did not show it");
      return;
    }
    CHECK(contains(done.out, "A published encoder of 6 blocks"));
    CHECK(contains(done.out, "\n   1.00  0."));
    CHECK(contains(done.out, "  1.00  A kitten naps beside the oven.\n"));
    CHECK(done.out.ends_with(" ms from word pieces to vectors.\n"));
  }

  TEST_CASE("the quickstart fails on data that are missing or wrong") {
    const Finished missing = quickstart({"/nowhere"});
    CHECK(missing.code == 1);
    CHECK(missing.err == "quickstart: no tokens in '/nowhere/sentence.txt'\n");

    const ScratchFolder scratch;
    std::filesystem::copy(EINKERN_QUICKSTART_FOLDER "/data", scratch / "data");
    const auto reference = scratch / "data/causal_output.npy";
    const Tensor values = load_npy(reference).copy();
    values(4, 5).fill(values(4, 5).item<double>() + 1e-5);
    save_npy(reference, values);
    const Finished wrong = quickstart({(scratch / "data").string()});
    CHECK(wrong.code == 1);
    CHECK(contains(wrong.out, "WRONG"));
  }
}
