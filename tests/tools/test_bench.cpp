// SPDX-License-Identifier: Apache-2.0
// `einkern bench`: problems, checks, reports and flags; never how fast anything is.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "../../engine/kernel/kernels.h"
#include "../support/sanitizer.h"
#include "arrays_folder.h"

using namespace einkern;
using namespace einkern::test;
using Json = nlohmann::json;

namespace {

/// Runs with buffers and times too small to measure anything.
Finished quick_bench(const ArraysFolder& folder, std::vector<std::string> arguments,
                     const std::vector<std::string>& environment = {}) {
  arguments.insert(arguments.begin(), "bench");
  arguments.insert(arguments.end(), {"--buffers", "1", "--min-time", "0"});
  return folder.run(arguments, environment);
}

/// Where peers are loaded: a leak would be theirs, and LeakSanitizer itself once failed on their
/// threads.
constexpr const char* kNoLeakCheck = "ASAN_OPTIONS=detect_leaks=0";

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

}  // namespace

TEST_SUITE("tools") {
  TEST_CASE("bench has sets of problems and lists them") {
    const ArraysFolder folder;
    const auto listed = [&](std::vector<std::string> arguments) {
      arguments.insert(arguments.begin(), "bench");
      arguments.emplace_back("--list");
      const Finished done = folder.run(arguments);
      CHECK(done.code == 0);
      CHECK(done.err == "");
      return lines_of(done.out);
    };
    std::size_t together = 0;
    for (const std::string set : {"contractions", "gemm", "permutations", "batches"}) {
      CAPTURE(set);
      const auto lines = listed({"--problems", set});
      CHECK(lines.size() > 24);
      together += lines.size() - 1;  // below the headings
    }
    const auto all = listed({});
    CHECK(all.size() == together + 1);
    CHECK(std::set<std::string>(all.begin(), all.end()).size() == all.size());
    CHECK(listed({"--problems", "permutations"}).size() == 25);
    CHECK(listed({"--problems", "layouts"}).size() == 74);
    const auto some = listed({"--only", "^gemm_.*_4096$"});
    REQUIRE(some.size() == 9);
    CHECK(some[1] == "gemm_nn_ij_4096  ik,kj->ij  4096x4096,4096x4096  f32");
    CHECK(listed({"--only", "^qk_heads_f64$"}).back().ends_with(" f64"));

    const Finished none = folder.run({"bench", "--only", "nosuch"});
    CHECK(none.code == 2);
    CHECK(none.err == "einkern: bench: --only: no problem's name has a match of 'nosuch'\n");
    const Finished broken = folder.run({"bench", "--only", "("});
    CHECK(broken.code == 2);
    CHECK(broken.err == "einkern: bench: --only: '(' is no regular expression\n");
    const Finished missing = folder.run({"bench", "--problems", "nosuch"});
    CHECK(missing.code == 3);
    CHECK(missing.err ==
          "einkern: bench: nosuch: no such file, and no set of this name; sets: default, "
          "contractions, gemm, permutations, batches, layouts, attention\n");
  }

  TEST_CASE("bench takes dtypes by row, warm and cold operands, and prints tables") {
    const ArraysFolder folder;
    write_text(folder.scratch() / "p.tsv",
               "product\tik,kj->ij\ti=40,j=50,k=60\tf64\n"
               "turned\tij->ji\ti=50,j=60\n");
    const Finished done = quick_bench(folder, {"--problems", "p.tsv", "--json"});
    REQUIRE(done.code == 0);
    const Json report = Json::parse(done.out);
    CHECK(report.at("machine").at("canary").at("library") == "einkern");
    CHECK(report.at("machine").at("canary").at("before_ms").get<double>() > 0);
    CHECK(report.at("machine").at("peak_f64_gflops").get<double>() > 0);
    CHECK(report.at("machine").at("flags").is_array());
    CHECK(!report.at("machine").contains("peers"));
    const Json& product = report.at("results")[0];
    CHECK(product.at("dtype") == "f64");
    CHECK(product.at("regime") == "matmul");
    CHECK(product.at("fresh_ms").get<double>() > 0);
    CHECK(product.at("peers").empty());
    const Json& turned = report.at("results")[1];
    CHECK(turned.at("dtype") == "f32");
    CHECK(turned.at("regime") == "copy");
    CHECK(turned.at("cold") == true);
    const double seconds = turned.at("median_ms").get<double>() / 1e3;
    CHECK(turned.at("gbs").get<double>() == doctest::Approx(4 * 2 * 50 * 60 / seconds / 1e9));

    const Finished warm =
        quick_bench(folder, {"--problems", "p.tsv", "--only", "turned", "--warm", "--json"});
    const Json results = Json::parse(warm.out).at("results");
    REQUIRE(results.size() == 1);
    CHECK(results[0].at("cold") == false);

    const Finished text = quick_bench(folder, {"--problems", "p.tsv"});
    CHECK(text.out.starts_with("machine "));
    CHECK(text.out.find("\ncanary ") != std::string::npos);
    CHECK(text.out.find("\nproblem  regime  operands  median ms ") != std::string::npos);
    const Finished markdown = quick_bench(folder, {"--problems", "p.tsv", "--markdown"});
    CHECK(markdown.out.starts_with("```\nmachine "));
    CHECK(markdown.out.find("\n```\n\n| problem | regime |") != std::string::npos);
    CHECK(markdown.out.find("\n| turned | copy | cold |") != std::string::npos);
    CHECK(quick_bench(folder, {"--json", "--markdown"}).code == 2);
  }

  TEST_CASE("bench times peers that the machine has and flags the others") {
    const ArraysFolder folder;
    write_text(folder.scratch() / "p.tsv",
               "product\tik,kj->ij\ti=20,j=30,k=40\n"
               "turned\tabc,bd->cad\ta=5,b=6,c=7,d=8\n"
               "copy\tij->ji\ti=5,j=6\n");
    const std::vector<std::string> arguments = {"--problems", "p.tsv", "--against",
                                                "openblas,onednn,blis", "--json"};
    const Finished done = quick_bench(folder, arguments, {kNoLeakCheck});
    CHECK(done.err == "");
    REQUIRE(done.code == 0);
    const Json report = Json::parse(done.out);
    const Json& machine = report.at("machine");
    bool all = true;
    for (const std::string name : {"openblas", "onednn", "blis"}) {
      CAPTURE(name);
      const Json& peer = machine.at("peers").at(name);
      const auto time = [&](std::size_t row) {
        return report.at("results")[row].at("peers").at(name);
      };
      if (peer.is_null()) {
        all = false;
        bool flagged = false;
        for (const auto& flag : machine.at("flags")) {
          flagged |= flag.get<std::string>().starts_with(name + ": ");
        }
        CHECK(flagged);
        CHECK(time(0).is_null());
      } else {
        CHECK(peer.at("core").get<std::string>() != "");
        CHECK(time(0).get<double>() > 0);
        CHECK(time(1).get<double>() > 0);
        CHECK(report.at("results")[0].at("peer_ratios").at(name).get<double>() > 0);
      }
      CHECK(time(2).is_null());  // no product
    }
    if (!all) {
      auto strict = arguments;
      strict.emplace_back("--strict");
      const Finished refused = quick_bench(folder, strict);
      CHECK(refused.code == 1);
      CHECK(refused.out == "");
      CHECK(refused.err.starts_with("einkern: bench: --strict: "));
    }
    const Finished unknown = quick_bench(folder, {"--against", "mkl"});
    CHECK(unknown.code == 2);
    CHECK(unknown.err ==
          "einkern: bench: --against: unknown library 'mkl'; choices: openblas, onednn, blis\n");
  }

  TEST_CASE("bench puts a stored run beside this one") {
    const ArraysFolder folder;
    write_text(folder.scratch() / "p.tsv", "product\tik,kj->ij\ti=20,j=30,k=40\n");
    const Finished before = quick_bench(folder, {"--problems", "p.tsv", "--json"});
    REQUIRE(before.code == 0);
    write_text(folder.scratch() / "run.json", before.out);
    write_text(folder.scratch() / "p.tsv",
               "product\tik,kj->ij\ti=20,j=30,k=40\nnew\tij->ji\ti=5,j=6\n");
    const std::vector<std::string> arguments = {"--problems", "p.tsv", "--compare", "run.json"};
    auto json = arguments;
    json.emplace_back("--json");
    const Finished done = quick_bench(folder, json);
    REQUIRE(done.code == 0);
    const Json results = Json::parse(done.out).at("results");
    CHECK(results[0].at("stored_ms").get<double>() > 0);
    CHECK(results[0].at("stored_ratio").get<double>() > 0);
    CHECK(results[1].at("stored_ms").is_null());
    CHECK(quick_bench(folder, arguments).out.find("\nstored ") != std::string::npos);
    write_text(folder.scratch() / "run.json", "{}");
    const Finished broken = quick_bench(folder, arguments);
    CHECK(broken.code == 3);
    CHECK(broken.err == "einkern: bench: run.json: not a report of einkern bench --json\n");
  }

  TEST_CASE("a peer that runs kernels for an older processor is not timed") {
    const ArraysFolder folder;
    const Finished done =
        quick_bench(folder, {"ik,kj->ij", "--shapes", "5x6,6x7", "--against", "openblas", "--json"},
                    {"OPENBLAS_CORETYPE=Prescott", kNoLeakCheck});
    REQUIRE(done.code == 0);
    const Json machine = Json::parse(done.out).at("machine");
    const auto has_vectors = machine.at("target") == "AVX3" || machine.at("target") == "AVX2";
    if (has_vectors) CHECK(machine.at("peers").at("openblas").is_null());
    CHECK(machine.at("canary").at("library") ==
          (machine.at("peers").at("openblas").is_null() ? "einkern" : "openblas"));
  }

  TEST_CASE("bench checks, times and compares with the limits of the machine") {
    const ArraysFolder folder;
    const std::vector<std::string> common = {"--buffers", "8", "--min-time", "0.001"};
    const auto run = [&](std::vector<std::string> arguments) {
      arguments.insert(arguments.end(), common.begin(), common.end());
      return folder.run(arguments);
    };
    const Finished json =
        run({"bench", "ik,kj->ij", "--shapes", "37x50,50x29", "--json", "--threads", "2"});
    CHECK(json.err == "");
    REQUIRE(json.code == 0);
    const Json report = Json::parse(json.out);
    const Json& machine = report.at("machine");
    for (const char* rate : {"peak_gflops", "read_gbs", "copy_gbs", "write_gbs"}) {
      CAPTURE(rate);
      CHECK(machine.at(rate).get<double>() > 0);
    }
    CHECK(machine.at("threads") == 2);
    CHECK(machine.at("target").is_string());
    REQUIRE(report.at("results").size() == 1);
    const Json& row = report.at("results")[0];
    CHECK(row.at("name") == "ik,kj->ij 37x50,50x29 f32");
    CHECK(row.at("equation") == "ik,kj->ij");
    CHECK(row.at("runs").get<int>() >= 11);
    const double seconds = row.at("median_ms").get<double>() / 1e3;
    CHECK(seconds > 0);
    CHECK(row.at("spread").get<double>() >= 0);
    CHECK(row.at("gflops").get<double>() == doctest::Approx(2 * 37 * 50 * 29 / seconds / 1e9));
    CHECK(row.at("gbs").get<double>() ==
          doctest::Approx(4 * (37 * 50 + 50 * 29 + 37 * 29) / seconds / 1e9));
    CHECK(row.at("roofline").get<double>() > 0);

    const Finished narrow =
        run({"bench", "ik,kj->ij", "--shapes", "37x50,50x29", "--dtype", "bf16", "--json"});
    REQUIRE(narrow.code == 0);
    const Json half = Json::parse(narrow.out).at("results")[0];
    CHECK(half.at("dtype") == "bf16");
    CHECK(half.at("gbs").get<double>() ==
          doctest::Approx((4 * 37 * 50 + 2 * 50 * 29 + 4 * 37 * 29) /
                          (half.at("median_ms").get<double>() / 1e3) / 1e9));

    const std::string target(kernel::supported_kernels().back()->target.name);
    const Finished text = run({"bench", "iji,...k->k...j", "--shapes", "3x4x3,2x5", "--dtype",
                               "f64", "--target", target, "--path", "0,1"});
    CHECK(text.code == 0);
    CHECK(text.out.starts_with("machine   " + target + ", "));
    CHECK(text.out.find("\nproblem   iji,...k->k...j 3x4x3,2x5 f64\n") != std::string::npos);
    CHECK(text.out.find("\nroofline  ") != std::string::npos);
  }

  TEST_CASE("bench times a file of problems in one run") {
    const ArraysFolder folder;
    write_text(folder.scratch() / "problems.tsv",
               "# a comment\n"
               "product\tik,kj->ij\ti=5,j=6,k=7\n"
               "\n"
               "turned\tki,jk->ji\ti=5,j=6,k=7\n");
    const std::vector<std::string> quick = {"--buffers", "1", "--min-time", "0"};
    const auto run = [&](std::vector<std::string> arguments) {
      arguments.insert(arguments.end(), quick.begin(), quick.end());
      return folder.run(arguments);
    };
    const Finished json = run({"bench", "--problems", "problems.tsv", "--json"});
    REQUIRE(json.code == 0);
    const Json results = Json::parse(json.out).at("results");
    REQUIRE(results.size() == 2);
    CHECK(results[0].at("name") == "product");
    CHECK(results[1].at("equation") == "ki,jk->ji");
    const Finished text = run({"bench", "--problems", "problems.tsv"});
    CHECK(text.out.find("\nturned ") != std::string::npos);

    const std::vector<std::pair<std::string, std::string>> broken = {
        {"x\tij->ji\n",
         "einkern: bench: p.tsv:1: 2 fields, not name, equation, sizes and perhaps a dtype\n"},
        {"x\tij->ji\ti=2\n", "einkern: bench: p.tsv:1: no size for label 'j'\n"},
        {"x\tij->ji\ti=2,j\n", "einkern: bench: p.tsv:1: 'j' is not label=size\n"},
        {"x\tij->ji\ti=2,j=3\ti64\n",
         "einkern: bench: p.tsv:1: 'i64' is not f16, bf16, f32 or f64\n"},
        {"# nothing\n", "einkern: bench: p.tsv: no problem in it\n"},
    };
    for (const auto& [content, message] : broken) {
      write_text(folder.scratch() / "p.tsv", content);
      const Finished done = run({"bench", "--problems", "p.tsv"});
      CHECK(done.code == 3);
      CHECK(done.err == message);
      CHECK(done.out == "");
    }
    CHECK(run({"bench", "--problems", "missing.tsv"}).code == 3);
    CHECK(run({"bench", "ij->ji", "--problems", "p.tsv"}).code == 2);
  }

  TEST_CASE("bench checks and times attention problems, every option among them") {
    const ArraysFolder folder;
    const std::string head = "name\tvariant\tB\tHq\tHkv\tNq\tNk\tdk\tdv\toptions\n";
    write_text(folder.scratch() / "a.tsv",
               head + "full\tfull\t1\t2\t2\t9\t7\t4\t3\t\n" +
                   "grouped\tcausal\t2\t4\t2\t9\t9\t4\t4\tcausal=top_left,softcap=3\n" +
                   "window\twindow\t1\t2\t1\t20\t20\t4\t4\twindow=3,0\n" +
                   "turned\tfull\t1\t2\t2\t9\t9\t4\t4\tlayout=bnhd\n" +
                   "alibi\talibi\t1\t2\t2\t9\t9\t4\t4\tcausal=top_left\n" +
                   "padding\tlengths\t3\t2\t2\t5\t9\t4\t4\tlengths=9,0,4\n" +
                   "mask\tmask\t1\t2\t2\t9\t9\t4\t4\tmask=blocks:2,density:0.5,seed:7\n" +
                   "half\tfull\t1\t2\t1\t9\t30\t4\t4\tkv=f16\n" +
                   "pages\tdecode\t3\t4\t2\t2\t12\t5\t7\tpages=3,lengths=12,5,0\n");
    const std::vector<std::string> quick = {"--buffers", "1", "--min-time", "0"};
    const auto run = [&](std::vector<std::string> arguments) {
      arguments.insert(arguments.end(), quick.begin(), quick.end());
      return folder.run(arguments);
    };
    for (const std::string dtype : {"f32", "f64", "bf16"}) {
      const Finished done =
          run({"bench", "--attention", "a.tsv", "--json", "--no-fuse", "--dtype", dtype});
      CHECK(done.err == "");
      REQUIRE(done.code == 0);
      const Json results = Json::parse(done.out).at("results");
      REQUIRE(results.size() == 9);
      CHECK(results[0].at("dtype") == dtype);
      CHECK(results[7].at("dtype") == "f16");
      // Queries and outputs in the dtype that is computed in, keys and values as they are stored.
      const double bytes =
          results[7].at("gbs").get<double>() * 1e6 * results[7].at("median_ms").get<double>();
      CHECK(bytes == doctest::Approx((dtype == "f64" ? 8 : 4) * 2 * 9 * 8 + 2 * 30 * 8));
      for (const Json& row : results) {
        CHECK(row.at("plain_ms").get<double>() > 0);
        CHECK(row.at("plain_ratio").get<double>() > 0);
        CHECK(row.at("extra_bytes").get<double>() >= 0);
        CHECK(row.at("plain_extra_bytes").get<double>() >= 0);
        CHECK(row.at("error").get<double>() < (dtype == "f64" ? 1e-13 : 1e-6));
      }
      // Keys and values that are seen: 17 in all.
      CHECK(results[8].at("gbs").get<double>() * 1e6 * results[8].at("median_ms").get<double>() ==
            doctest::Approx((dtype == "f64" ? 8 : 4) * 3 * 4 * 2 * 12 + (dtype == "bf16"  ? 2
                                                                         : dtype == "f64" ? 8
                                                                                          : 4) *
                                                                            2 * 17 * 12));
      // Visible positions only: 1 + 2 + 3 + 4 * 17 of the window.
      const double flops =
          results[2].at("gflops").get<double>() * 1e6 * results[2].at("median_ms").get<double>();
      CHECK(flops == doctest::Approx(2 * (1 + 2 + 3 + 4 * 17) * 2 * 8));
    }
    CHECK(run({"bench", "--attention", "a.tsv"}).out.find("\nwindow ") != std::string::npos);

    CHECK(run({"bench", "--attention", "a.tsv", "--markdown", "--only", "window"})
              .out.find("\n| window | ") != std::string::npos);
    CHECK(run({"bench", "--attention", "a.tsv", "--against", "openblas"}).code == 2);
    write_text(folder.scratch() / "row.tsv", head + "row\tfull\t1\t1\t1\t1\t64\t8\t8\t\n");
    const auto is_cold = [&](std::vector<std::string> arguments) {
      arguments.insert(arguments.begin(), {"bench", "--attention", "row.tsv"});
      arguments.emplace_back("--json");
      const Finished done = run(arguments);
      REQUIRE(done.code == 0);
      return Json::parse(done.out).at("results")[0].at("cold").get<bool>();
    };
    // Half an operation a byte, where processors do from four to sixteen; but not under the
    // sanitizers.
    if (!kSanitized) CHECK(is_cold({}));
    CHECK_FALSE(is_cold({"--warm"}));
    const Finished listed =
        folder.run({"bench", "--attention", "a.tsv", "--list", "--only", "grouped|turned"});
    CHECK(listed.code == 0);
    CHECK(listed.out ==
          "problem  variant  q        k        v\n"
          "grouped  causal   2x4x9x4  2x2x9x4  2x2x9x4\n"
          "turned   full     1x9x2x4  1x9x2x4  1x9x2x4\n");

    write_text(folder.scratch() / "b.tsv", head + "x\tfull\t1\t2\t2\t9\t7\t4\t3\tturbo=1\n");
    const Finished unknown = run({"bench", "--attention", "b.tsv"});
    CHECK(unknown.code == 3);
    CHECK(unknown.err == "einkern: bench: b.tsv:2: unknown option 'turbo=1'\n");
    // Scores of 8 MiB are made by the plain route only; a thread takes a block of 2 MiB.
    write_text(folder.scratch() / "c.tsv", head + "x\tfull\t1\t1\t1\t1024\t2048\t8\t8\t\n");
    const Finished memory =
        run({"bench", "--attention", "c.tsv", "--no-fuse", "--json", "--threads", "2"});
    REQUIRE(memory.code == 0);
    const Json used = Json::parse(memory.out).at("results")[0];
    CHECK(used.at("extra_bytes").get<double>() <= 6 << 20);
    CHECK(used.at("plain_extra_bytes").get<double>() >= 8 << 20);
    const Finished alone = run({"bench", "ij->ji", "--shapes", "2x3", "--no-fuse"});
    CHECK(alone.code == 2);
  }

  TEST_CASE("bench times calls") {
    const ArraysFolder folder;
    const Finished done = folder.run({"bench", "--calls", "--min-time", "0.01", "--json"});
    REQUIRE(done.code == 0);
    const auto calls = Json::parse(done.out).at("calls");
    REQUIRE(calls.size() == 7);
    for (const auto& call : calls) {
      CHECK(call.at("median_us") > 0);
      CHECK(call.at("spread") >= 0);
    }
    const Finished refused = folder.run({"bench", "--calls", "--only", "x"});
    CHECK(refused.code == 2);
    CHECK(refused.err.find("--calls has its own problems") != std::string::npos);
  }

  TEST_CASE("bench survives problems without elements and without terms") {
    const ArraysFolder folder;
    const std::vector<std::vector<std::string>> problems = {
        {"ij,jk->ik", "0x3,3x4"}, {"ij,jk->ik", "2x0,0x4"}, {",->", "-,-"}};
    for (const auto& problem : problems) {
      CAPTURE(problem[0]);
      CAPTURE(problem[1]);
      const Finished done = folder.run({"bench", "-e", problem[0], "--shapes", problem[1],
                                        "--buffers", "1", "--min-time", "0", "--json"});
      CHECK(done.code == 0);
      CHECK(Json::accept(done.out));
    }
  }
}
