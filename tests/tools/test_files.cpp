// SPDX-License-Identifier: Apache-2.0
// Outputs of the command: never over an input, all or none, never half a file.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "arrays_folder.h"

using namespace einkern;
using namespace einkern::test;

TEST_SUITE("tools") {
  TEST_CASE("an output that is an input by another name is refused") {
    const ArraysFolder folder;
    const auto at = [&](const char* name) { return folder.scratch() / name; };
    std::filesystem::create_symlink("A.npy", at("link.npy"));
    std::filesystem::create_hard_link(at("A.npy"), at("twin.npy"));
    const std::string bytes = read_text(at("A.npy"));
    for (const std::string name : {"link.npy", "twin.npy", "./A.npy"}) {
      CAPTURE(name);
      const Finished done = folder.run({"eval", "ij->ji", "A.npy", "-o", name});
      CHECK(done.code == 2);
      CHECK(done.err == "einkern: eval: --out '" + name + "' is the input 'A.npy'\n");
      CHECK(read_text(at("A.npy")) == bytes);
    }
  }

  TEST_CASE("two outputs with one name are refused, existing or not") {
    const ArraysFolder folder;
    const std::vector<std::string> start = {"attention", "A.npy", "A.npy", "A.npy"};
    for (const std::string name : {"new.npy", "B.npy"}) {
      CAPTURE(name);
      auto arguments = start;
      arguments.insert(arguments.end(), {"--weights", name, "--lse", "./" + name});
      const Finished done = folder.run(arguments);
      CHECK(done.code == 2);
      CHECK(done.err == "einkern: attention: --weights and --lse both name '" + name + "'\n");
    }
    CHECK_FALSE(folder.has("new.npy"));
  }

  TEST_CASE("when one output cannot be written none is there") {
    const ArraysFolder folder;
    // A full disk, for whoever runs this: root may write anywhere else.
    if (::access("/dev/full", W_OK) != 0) return;
    const Finished done = folder.run({"attention", "A.npy", "A.npy", "A.npy", "-o", "O.npy",
                                      "--weights", "W.npy", "--lse", "/dev/full"});
    CHECK(done.code == 3);
    CHECK(done.err == "einkern: save_npy: '/dev/full': cannot write: no space left on device\n");
    CHECK_FALSE(folder.has("O.npy"));
    CHECK_FALSE(folder.has("W.npy"));
  }

  TEST_CASE("an error that depends on data leaves no output") {
    const ArraysFolder folder;
    folder.save("big", full({3}, 4e18, i64));
    const Finished done = folder.run({"eval", "i->", "big.npy", "-o", "sum.npy"});
    CHECK(done.code == 3);
    CHECK(done.err.starts_with("einkern: "));
    CHECK(done.err.find("integer overflow") != std::string::npos);
    CHECK_FALSE(folder.has("sum.npy"));
  }

  TEST_CASE("a result that no memory holds is a limit") {
    const ArraysFolder folder;
    folder.save("row", zeros({3'000'000}));
    const Finished done = folder.run({"eval", "i,j,k->ijk", "row.npy", "row.npy", "row.npy"});
    CHECK((done.code == 3 || done.code == 4));
    CHECK(done.out == "");
    CHECK(done.err.starts_with("einkern: "));
    CHECK(std::count(done.err.begin(), done.err.end(), '\n') == 1);
  }

  TEST_CASE("an interrupt ends the command with 130 and no output") {
    const ArraysFolder folder;
    const std::string pipe = (folder.scratch() / "pipe.npy").string();
    REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
    Process process(EINKERN_COMMAND, {"eval", "ij->", "pipe.npy", "-o", "out.npy"},
                    folder.scratch().path().string());
    const int end = ::open(pipe.c_str(), O_WRONLY);  // returns when the command opens its end
    process.interrupt();
    const Finished done = process.wait();
    ::close(end);
    CHECK(done.code == 130);
    CHECK(done.err == "einkern: interrupted\n");
    CHECK_FALSE(folder.has("out.npy"));
  }

  TEST_CASE("a pipe is read as a file is") {
    const ArraysFolder folder;
    const std::string pipe = (folder.scratch() / "pipe.npy").string();
    REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
    Process process(EINKERN_COMMAND, {"eval", "ij->", "pipe.npy"},
                    folder.scratch().path().string());
    write_text(pipe, read_text(folder.scratch() / "A.npy"));
    const Finished done = process.wait();
    CHECK(done.code == 0);
    CHECK(done.out == "21.0\n");
  }
}
