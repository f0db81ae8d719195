// SPDX-License-Identifier: Apache-2.0
// `einkern show` and `einkern explain`: what they say of files and plans.
#include <doctest/doctest.h>

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
}
