// SPDX-License-Identifier: Apache-2.0
// `einkern show`, `einkern explain` and `einkern bench`: what they say of files, plans and speed.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "arrays_folder.h"

using namespace einkern;
using namespace einkern::test;
using Json = nlohmann::json;

TEST_SUITE("tools") {
  TEST_CASE("show describes a file and prints it") {
    const ArraysFolder folder;
    CHECK(folder.run({"show", "A.npy"}).out ==
          "f32 (2, 3), C order\nmin 1, max 6, mean 3.5; 0 NaN, 0 infinite\n"
          "[[1. 2. 3.]\n [4. 5. 6.]]\n");
    CHECK(folder.run({"show", "I.npy"}).out ==
          "i64 (2, 3), C order\nmin 1, max 6, mean 3.5\n[[1 2 3]\n [4 5 6]]\n");
    CHECK(folder.run({"show", "T.npy"}).out ==
          "bool (2, 3), C order\nmin 1, max 1, mean 1\n[[ True  True  True]\n [ True  True  "
          "True]]\n");
    CHECK(folder.run({"show", "S.npy"}).out ==
          "f64 (), C and Fortran order\nmin 2.5, max 2.5, mean 2.5; 0 NaN, 0 infinite\n2.5\n");
    const double nan = std::numeric_limits<double>::quiet_NaN();
    const double infinity = std::numeric_limits<double>::infinity();
    folder.save("odd", tensor<double>({nan, infinity, 1, 2, nan}));
    CHECK(folder.run({"show", "odd.npy"}).out ==
          "f64 (5,), C and Fortran order\n"
          "min 1, max inf, mean 1.5 of the finite ones; 2 NaN, 1 infinite\n"
          "[nan inf  1.  2. nan]\n");
    folder.save("none", zeros({0, 3}));
    CHECK(folder.run({"show", "none.npy"}).out ==
          "f32 (0, 3), C and Fortran order\nno elements; 0 NaN, 0 infinite\n[]\n");
  }

  TEST_CASE("show knows Fortran order") {
    const ScratchFolder scratch;
    std::filesystem::copy(EINKERN_TEST_DATA "/npy/little_fortran_f8.npy", scratch / "f.npy");
    const Finished done = einkern_in(scratch.path().string(), {"show", "f.npy"});
    CHECK(done.code == 0);
    CHECK(done.out.starts_with("f64 ("));
    CHECK(done.out.find("), Fortran order\n") != std::string::npos);
  }

  TEST_CASE("explain shows the path and the steps and touches no memory") {
    const ArraysFolder folder;
    const Finished done =
        folder.run({"explain", "ab,bc,cd->ad", "--shapes", "10x1000,1000x10,10x1000"});
    CHECK(done.code == 0);
    CHECK(done.err == "");
    CHECK(done.out.find("path 0,1;0,1") != std::string::npos);
    CHECK(done.out.find("ab,bc->ac") != std::string::npos);
    // Eight terabytes of operands.
    CHECK(
        folder.run({"explain", "ij,jk->ik", "--shapes", "1000000x1000000,1000000x1000000"}).code ==
        0);
  }

  TEST_CASE("explain gives JSON, of shapes and of files alike") {
    const ArraysFolder folder;
    const Finished shapes = folder.run({"explain", "ij,jk->ik", "--shapes", "2x3,3x4", "--json"});
    CHECK(shapes.code == 0);
    const Json plan = Json::parse(shapes.out);
    CHECK(plan.at("steps").size() == 1);
    CHECK(plan.at("steps")[0].at("flops") == 2 * 2 * 3 * 4);
    CHECK(plan.at("steps")[0].at("dtype") == "f32");
    CHECK(folder.run({"explain", "ij,jk->ik", "A.npy", "B.npy", "--json"}).out == shapes.out);
    const Finished wide =
        folder.run({"explain", "-e", ",ij->ij", "--shapes", "-,3x4", "--dtype", "f64", "--json"});
    CHECK(wide.code == 0);
    CHECK(Json::parse(wide.out).at("steps")[0].at("dtype") == "f64");
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

    const Finished text = run({"bench", "iji,...k->k...j", "--shapes", "3x4x3,2x5", "--dtype",
                               "f64", "--target", "SCALAR", "--path", "0,1"});
    CHECK(text.code == 0);
    CHECK(text.out.starts_with("machine   SCALAR, "));
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
        {"x\tij->ji\n", "einkern: bench: p.tsv:1: 2 fields, not name, equation and sizes\n"},
        {"x\tij->ji\ti=2\n", "einkern: bench: p.tsv:1: no size for label 'j'\n"},
        {"x\tij->ji\ti=2,j\n", "einkern: bench: p.tsv:1: 'j' is not label=size\n"},
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
                   "mask\tmask\t1\t2\t2\t9\t9\t4\t4\tmask=blocks:2,density:0.5,seed:7\n");
    const std::vector<std::string> quick = {"--buffers", "1", "--min-time", "0"};
    const auto run = [&](std::vector<std::string> arguments) {
      arguments.insert(arguments.end(), quick.begin(), quick.end());
      return folder.run(arguments);
    };
    for (const std::string dtype : {"f32", "f64"}) {
      const Finished done =
          run({"bench", "--attention", "a.tsv", "--json", "--no-fuse", "--dtype", dtype});
      CHECK(done.err == "");
      REQUIRE(done.code == 0);
      const Json results = Json::parse(done.out).at("results");
      REQUIRE(results.size() == 7);
      for (const Json& row : results) {
        CHECK(row.at("plain_ms").get<double>() > 0);
        CHECK(row.at("error").get<double>() < (dtype == "f32" ? 1e-6 : 1e-13));
      }
      // Visible positions only: 1 + 2 + 3 + 4 * 17 of the window.
      const double flops =
          results[2].at("gflops").get<double>() * 1e6 * results[2].at("median_ms").get<double>();
      CHECK(flops == doctest::Approx(2 * (1 + 2 + 3 + 4 * 17) * 2 * 8));
    }
    CHECK(run({"bench", "--attention", "a.tsv"}).out.find("\nwindow ") != std::string::npos);

    write_text(folder.scratch() / "b.tsv", head + "x\tfull\t1\t2\t2\t9\t7\t4\t3\tturbo=1\n");
    const Finished unknown = run({"bench", "--attention", "b.tsv"});
    CHECK(unknown.code == 3);
    CHECK(unknown.err == "einkern: bench: b.tsv:2: unknown option 'turbo=1'\n");
    const Finished alone = run({"bench", "ij->ji", "--shapes", "2x3", "--no-fuse"});
    CHECK(alone.code == 2);
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
