// SPDX-License-Identifier: Apache-2.0
// Files as memory: what was there stays until the new file is complete.
#include "../../../../engine/tensor/io/file.h"

#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <string>
#include <thread>

#include "../../../../engine/base/error.h"
#include "scratch.h"

using namespace einkern;
using test::read_text;
using test::ScratchFolder;
using test::write_text;

namespace {

void replace(const std::filesystem::path& path, const std::string& first,
             const std::string& second = "") {
  io::replace_file(path, {std::as_bytes(std::span(first)), std::as_bytes(std::span(second))},
                   "test: 'f'");
}

std::string text_of(const io::FileBytes& file) {
  return {reinterpret_cast<const char*>(file.view().data()), file.view().size()};
}

mode_t mode_of(const std::filesystem::path& path) {
  struct stat status = {};
  REQUIRE(::stat(path.c_str(), &status) == 0);
  return status.st_mode & 07777;
}

/// Lets no file of this process grow beyond some bytes, as a full disk would.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  void (*handler_)(int);
  rlimit before_ = {};
};

}  // namespace

TEST_SUITE("io") {
  TEST_CASE("a new file") {
    ScratchFolder folder;
    replace(folder / "f", "head", "body");
    CHECK(read_text(folder / "f") == "headbody");
    CHECK(folder.names() == std::vector<std::string>{"f"});
    write_text(folder / "g", "");
    CHECK(mode_of(folder / "f") == mode_of(folder / "g"));
  }

  TEST_CASE("a name without a folder") {
    ScratchFolder folder;
    const auto before = std::filesystem::current_path();
    std::filesystem::current_path(folder.path());
    replace("f", "text");
    std::filesystem::current_path(before);
    CHECK(read_text(folder / "f") == "text");
  }

  TEST_CASE("the longest name there can be") {
    ScratchFolder folder;
    const std::string name(255, 'n');
    replace(folder / name, "text");
    CHECK(read_text(folder / name) == "text");
  }

  TEST_CASE("an existing file keeps its mode") {
    ScratchFolder folder;
    write_text(folder / "f", "old");
    std::filesystem::permissions(folder / "f", std::filesystem::perms(0640));
    replace(folder / "f", "new");
    CHECK(read_text(folder / "f") == "new");
    CHECK(mode_of(folder / "f") == 0640);
  }

  TEST_CASE("a symbolic link is followed") {
    ScratchFolder folder;
    std::filesystem::create_directory(folder / "real");
    write_text(folder / "real/f", "old");
    std::filesystem::create_symlink("real/f", folder / "link");
    replace(folder / "link", "new");
    CHECK(std::filesystem::is_symlink(folder / "link"));
    CHECK(read_text(folder / "real/f") == "new");
    std::filesystem::create_symlink("real/g", folder / "dangling");
    replace(folder / "dangling", "new");
    CHECK(read_text(folder / "real/g") == "new");
    std::filesystem::create_symlink("loop", folder / "loop");
    CHECK_THROWS_AS(replace(folder / "loop", "new"), IoError);
  }

  TEST_CASE("a disk that fills up leaves what was there") {
    ScratchFolder folder;
    write_text(folder / "f", "old");
    const std::string large(100000, 'x');
    {
      const FileSizeLimit limit(65536);
      CHECK_THROWS_WITH_AS(replace(folder / "f", "head", large),
                           "test: 'f': cannot write: file too large", IoError);
      CHECK_THROWS_AS(replace(folder / "g", "head", large), IoError);
    }
    CHECK(read_text(folder / "f") == "old");
    CHECK(folder.names() == std::vector<std::string>{"f"});
  }

  TEST_CASE("devices are written as they are") {
    CHECK_THROWS_WITH_AS(replace("/dev/full", "text"),
                         "test: 'f': cannot write: no space left on device", IoError);
    CHECK(std::filesystem::is_character_file("/dev/full"));
    replace("/dev/null", "text");
    CHECK(std::filesystem::is_character_file("/dev/null"));
  }

  TEST_CASE("places that cannot be written") {
    ScratchFolder folder;
    CHECK_THROWS_WITH_AS(replace(folder.path(), "text"), "test: 'f': cannot write: is a directory",
                         IoError);
    CHECK_THROWS_WITH_AS(replace(folder / "none/f", "text"),
                         "test: 'f': cannot create: no such file or directory", IoError);
  }

  TEST_CASE("mapped and read files hold the same bytes") {
    ScratchFolder folder;
    for (const std::string& text :
         {std::string(), std::string("short"), std::string(300000, 'y')}) {
      write_text(folder / "f", text);
      const io::FileBytes mapped = io::map_file(folder / "f", "test"),
                          read = io::read_file(folder / "f", "test");
      CHECK(text_of(mapped) == text);
      CHECK(text_of(read) == text);
      CHECK(mapped.read_only == !text.empty());
      CHECK_FALSE(read.read_only);
    }
  }

  TEST_CASE("a pipe is read to its end") {
    ScratchFolder folder;
    const auto path = folder / "pipe";
    REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
    const std::string text(200000, 'z');
    for (const bool mapped : {true, false}) {
      std::thread writer([&] { write_text(path, text); });
      const io::FileBytes file = mapped ? io::map_file(path, "test") : io::read_file(path, "test");
      writer.join();
      CHECK(text_of(file) == text);
    }
  }
}
