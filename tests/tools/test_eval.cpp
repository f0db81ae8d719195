// SPDX-License-Identifier: Apache-2.0
// `einkern eval`: printed and written results, paths, threads, what goes to standard error.
#include <doctest/doctest.h>

#include "arrays_folder.h"
#include "contains.h"

using namespace einkern;
using namespace einkern::test;

TEST_SUITE("tools") {
  TEST_CASE("eval prints as NumPy does") {
    const ArraysFolder folder;
    const Finished product = folder.run({"eval", "ij,jk->ik", "A.npy", "B.npy"});
    CHECK(product.code == 0);
    CHECK(product.out == "[[ 1.  2.  3.  6.]\n [ 4.  5.  6. 15.]]\n");
    CHECK(product.err == "");
    CHECK(folder.run({"eval", "ij->ji", "I.npy"}).out == "[[1 4]\n [2 5]\n [3 6]]\n");
    CHECK(folder.run({"eval", "ij->", "A.npy"}).out == "21.0\n");
  }

  TEST_CASE("eval takes equations in brackets, with blanks, with a dash in front, and empty ones") {
    const ArraysFolder folder;
    const std::string product = "[[ 1.  2.  3.  6.]\n [ 4.  5.  6. 15.]]\n";
    CHECK(folder.run({"eval", "[a,b],[b,c]->[a,c]", "A.npy", "B.npy"}).out == product);
    CHECK(folder.run({"eval", "[row in], [in out] -> [row out]", "A.npy", "B.npy"}).out == product);
    CHECK(folder.run({"eval", "-e", "->", "S.npy"}).out == "2.5\n");
    CHECK(folder.run({"eval", "S.npy", "--equation=->"}).out == "2.5\n");
    CHECK(folder.run({"eval", "", "S.npy"}).out == "2.5\n");
    CHECK(folder.run({"eval", "--", "ij->", "A.npy"}).out == "21.0\n");
  }

  TEST_CASE("eval reads files whose names look like something else") {
    const ArraysFolder folder;
    for (const char* name : {"[a,b]", "show", "--time"}) {
      folder.save(name, full({}, 7));
    }
    CHECK(folder.run({"eval", "", "[a,b].npy"}).out == "7.0\n");
    CHECK(folder.run({"eval", "", "--", "--time.npy"}).out == "7.0\n");
    std::filesystem::rename(folder.scratch() / "show.npy", folder.scratch() / "show");
    CHECK(folder.run({"eval", "", "show"}).out == "7.0\n");
  }

  TEST_CASE("eval writes what it would print") {
    const ArraysFolder folder;
    const Finished done = folder.run({"eval", "ij,jk->ik", "A.npy", "B.npy", "-o", "C.npy"});
    CHECK(done.code == 0);
    CHECK(done.out == "");
    CHECK(done.err == "");
    const Tensor c = folder.load("C");
    CHECK(c.dtype() == f32);
    CHECK(c.shape() == Shape{2, 4});
    CHECK(c.to_vector<float>() == std::vector<float>{1, 2, 3, 6, 4, 5, 6, 15});

    // An existing file is replaced.
    CHECK(folder.run({"eval", "ij->i", "--out=C.npy", "I.npy"}).code == 0);
    CHECK(folder.load("C").to_vector<std::int64_t>() == std::vector<std::int64_t>{6, 15});
  }

  TEST_CASE("plan and times go to standard error") {
    const ArraysFolder folder;
    const Finished done = folder.run(
        {"eval", "ij,jk->ik", "A.npy", "B.npy", "--explain", "--time", "--threads", "2"});
    CHECK(done.code == 0);
    CHECK(done.out == "[[ 1.  2.  3.  6.]\n [ 4.  5.  6. 15.]]\n");
    CHECK(contains(done.err, "target "));
    CHECK(contains(done.err, "ij,jk->ik"));
    CHECK(contains(done.err, "load "));
    CHECK(contains(done.err, " ms, compute "));
  }

  TEST_CASE("a path by hand is followed") {
    const ArraysFolder folder;
    folder.save("C", tensor<float>({1, 2, 3, 4}, {4, 1}));
    const std::vector<std::string> chain = {"eval", "ab,bc,cd->ad", "A.npy", "B.npy", "C.npy"};
    for (const std::string path : {"auto", "greedy", "optimal", "0,1;0,1", "1,2;0,1", "0,1,2"}) {
      CAPTURE(path);
      auto arguments = chain;
      arguments.insert(arguments.end(), {"--path", path, "--explain"});
      const Finished done = folder.run(arguments);
      CHECK(done.code == 0);
      CHECK(done.out == "[[38.]\n [92.]]\n");
      if (path.find(';') != path.npos) CHECK(contains(done.err, "path " + path));
    }
  }

  TEST_CASE("every number of threads gives the same bytes") {
    const ArraysFolder folder;
    folder.save("X", random({65, 70}, 1));
    folder.save("Y", random({70, 33}, 2));
    std::string first;
    for (const char* threads : {"1", "2", "5"}) {
      CAPTURE(threads);
      CHECK(folder.run({"eval", "ij,jk->ki", "X.npy", "Y.npy", "-o", "Z.npy", "--threads", threads})
                .code == 0);
      const std::string bytes = read_text(folder.scratch() / "Z.npy");
      if (first.empty()) first = bytes;
      CHECK(bytes == first);
    }
  }
}
