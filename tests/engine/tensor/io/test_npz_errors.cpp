// SPDX-License-Identifier: Apache-2.0
// npz: whatever is no such archive is refused, naming the file and the member.
#include <doctest/doctest.h>

#include <random>
#include <span>
#include <string>
#include <vector>

#include "../../../../engine/base/error.h"
#include "../../../../engine/tensor/create.h"
#include "../../../../engine/tensor/io/npz.h"
#include "scratch.h"

using namespace einkern;
using test::ScratchFolder;

namespace {

std::string npz_text(const std::string& name) {
  return test::read_text(std::filesystem::path(EINKERN_TEST_DATA) / "npz" / (name + ".npz"));
}

/// What is said about these bytes, without the function's name.
std::string npz_refusal(const std::string& file) {
  try {
    return "read " + std::to_string(parse_npz(std::as_bytes(std::span(file))).size());
  } catch (const IoError& error) {
    const std::string text = error.what();
    REQUIRE(text.starts_with("parse_npz: "));
    return text.substr(std::string("parse_npz: ").size());
  }
}

std::string archive_of(const NamedTensors& tensors, bool compress = false) {
  const std::vector<std::byte> bytes = format_npz(tensors, {.compress = compress});
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// The text with bytes from `at` on replaced.
std::string patched(std::string text, std::size_t at, const std::string& bytes) {
  return text.replace(at, bytes.size(), bytes);
}

/// Places in an archive of one member.
struct Places {
  explicit Places(const std::string& text)
      : central(text.find("PK\1\2")), end(text.rfind("PK\5\6")) {}
  std::size_t local = 0, central, end;
};

}  // namespace

TEST_SUITE("io") {
  TEST_CASE("npz files that are not there, or something else") {
    ScratchFolder folder;
    const auto path = folder / "none";
    const std::string quoted = "load_npz: '" + path.string() + "': ";
    CHECK_THROWS_WITH_AS(load_npz(path),
                         (quoted + "cannot open: no such file or directory").c_str(), IoError);
    test::write_text(path, "\x93NUMPY and so on");
    CHECK_THROWS_WITH_AS(
        load_npz(path), (quoted + "not a zip archive: it does not begin with PK").c_str(), IoError);
    CHECK(npz_refusal("") == "not a zip archive: it does not begin with PK");
    CHECK(npz_refusal("PK\3\4") == "the archive has no end record; it is cut off or damaged");
    CHECK(npz_refusal(std::string("PK\5\6") + std::string(18, '\0')) == "read 0");
  }

  TEST_CASE("every truncation of an npz file is an error") {
    for (const char* name : {"stored", "deflated", "zip64"}) {
      const std::string file = npz_text(name);
      REQUIRE(npz_refusal(file) == "read 7");
      for (std::size_t size = 0; size < file.size(); size += 1 + size % 3) {
        CAPTURE(size);
        CHECK_FALSE(npz_refusal(file.substr(0, size)).starts_with("read"));
      }
      CHECK(npz_refusal(file + "x") == "the archive has no end record; it is cut off or damaged");
    }
  }

  TEST_CASE("members of npz that are no arrays, and methods that are not known") {
    CHECK(npz_refusal(npz_text("text")) == "member 'note.txt' is no .npy file");
    CHECK(npz_refusal(npz_text("bzip2")) ==
          "member 'x.npy': method 12 is not supported; the choices are stored and deflated");
    ScratchFolder folder;
    save_npz(folder / "f", {{"a", zeros({1})}, {"b", zeros({1})}});
    CHECK_THROWS_WITH_AS(
        load_npz(folder / "f", "c"),
        ("load_npz: '" + (folder / "f").string() + "': no array 'c'; the names are 'a', 'b'")
            .c_str(),
        ValueError);
  }

  TEST_CASE("damaged bytes of npz") {
    for (const bool compress : {false, true}) {
      const std::string file = archive_of({{"x", random({100}, 1)}}, compress);
      const Places at(file);
      const std::string flipped = patched(
          file, at.central - 20, std::string(1, static_cast<char>(file[at.central - 20] ^ 1)));
      const std::string message = npz_refusal(flipped);
      CAPTURE(message);
      const bool sum = message.starts_with("member 'x.npy': its check sum is ");
      CHECK((sum || (compress && message.starts_with("member 'x.npy': "))));
      CHECK(npz_refusal(patched(file, at.central + 16, "\1\2\3\4"))
                .ends_with("not 04030201: it is damaged"));
    }
    // A member whose bytes are no .npy file, with the right check sum, is told from the file
    // itself.
    const std::string file = npz_text("stored");
    const std::size_t head = file.find("\x93NUMPY");
    CHECK(npz_refusal(patched(file, head, "\x93numpy"))
              .starts_with("member 'x.npy': its check sum is "));
  }

  TEST_CASE("directories of npz that say what cannot be") {
    const std::string file = archive_of({{"x", zeros({4})}});
    const Places at(file);
    const auto with = [&](std::size_t place, const std::string& bytes) {
      return npz_refusal(patched(file, place, bytes));
    };
    REQUIRE(npz_refusal(file) == "read 1");
    CHECK(with(at.central, "PK\1\3") == "entry 0 of its directory is damaged");
    CHECK(with(at.central + 28, "\xff\x7f") == "entry 0 of its directory is damaged");
    CHECK(with(at.central + 28, std::string("\0\0", 2)) ==
          "the name of member 0 has 0 bytes, not 1 to 4096, or a zero");
    CHECK(with(at.central + 46, std::string(1, '\0')) ==
          "the name of member 0 has 5 bytes, not 1 to 4096, or a zero");
    CHECK(with(at.central + 46, "y") ==
          "member 'y.npy': the member and the directory disagree about it");
    CHECK(with(at.central + 8, "\1") == "member 'x.npy': encrypted members are not supported");
    CHECK(with(at.central + 10, "\x8") ==
          "member 'x.npy': the member and the directory disagree about it");
    CHECK(with(at.central + 20, "\xff") ==
          "member 'x.npy': its 255 bytes reach beyond the members");
    CHECK(with(at.central + 24, "\xff") ==
          "member 'x.npy': 144 bytes cannot hold the 255 that it claims");
    CHECK(with(at.central + 24, "\xff\xff\xff\xff") ==
          "member 'x.npy': its ZIP64 field is missing");
    CHECK(with(at.central + 34, "\1") == "archives in several files are not supported");
    CHECK(with(at.central + 42, "\1") == "member 'x.npy': there is no member at byte 1");
    CHECK(with(at.central + 42, "\xff\xff\xff\x7f") ==
          "member 'x.npy': there is no member at byte 2147483647");
    CHECK(with(at.end + 4, "\1") == "archives in several files are not supported");
    CHECK(with(at.end + 8, "\2") == "archives in several files are not supported");
    CHECK(with(at.end + 8, std::string("\2\0\2\0", 4)) ==
          "its directory of 51 bytes cannot hold 2 members");
    CHECK(with(at.end + 8, std::string("\0\0\0\0", 4)) ==
          "its directory has 51 bytes after its last entry");
    CHECK(with(at.end + 12, "\1").starts_with("its directory, 1 bytes from 208 on, does not end"));
    CHECK(with(at.end + 16, "\xff\xff\xff\xff")
              .starts_with("its directory, 51 bytes from 4294967295 on, does not end"));
  }

  TEST_CASE("npz members that stand twice or overlap") {
    const std::string file = archive_of({{"x", zeros({4})}, {"y", zeros({4})}});
    std::string twice = file;
    for (std::size_t at = 0; (at = twice.find("y.npy", at)) != twice.npos;) twice[at] = 'x';
    CHECK(npz_refusal(twice) == "member 'x.npy': stands twice in the archive");
    // The second entry of the directory points to the first member, which has the same name here.
    const std::size_t first = file.find("PK\1\2"), second = file.find("PK\1\2", first + 4);
    std::string both = patched(file, second + 42, file.substr(first + 42, 4));
    CHECK(npz_refusal(both) == "member 'y.npy': the member and the directory disagree about it");
    // The first one claims to go on into the second.
    const std::string size = std::string("\xf0\0\0\0", 4);
    CHECK(npz_refusal(patched(file, first + 20, size + size)) ==
          "members 'x.npy' and 'y.npy' overlap");
  }

  TEST_CASE("deflated members of npz that give too much or too little") {
    const std::string file = archive_of({{"x", zeros({1000})}}, true);
    const Places at(file);
    REQUIRE(npz_refusal(file) == "read 1");
    // 4128 bytes; the size stands in the directory.
    CHECK(npz_refusal(patched(file, at.central + 24, std::string("\x1f\x10", 2)))
              .ends_with("are not the 4127 that the file announces"));
    CHECK(npz_refusal(patched(file, at.central + 24, std::string("\x21\x10", 2)))
              .ends_with("are not the 4129 that the file announces"));
    CHECK(npz_refusal(patched(file, at.central + 24, std::string("\xff\xff\xff\x7f", 4)))
              .ends_with("bytes cannot hold the 2147483647 that it claims"));
  }

  TEST_CASE("what npz cannot hold") {
    CHECK_THROWS_WITH_AS(
        format_npz({{"w", zeros({1}, bf16)}}),
        "format_npz: member 'w': an npy file cannot hold bf16; convert it with astype first",
        IoError);
    CHECK_THROWS_WITH_AS(format_npz({{"", zeros({1})}}), "format_npz: an array has an empty name",
                         IoError);
    CHECK_THROWS_WITH_AS(format_npz({{std::string(4093, 'n'), zeros({1})}}),
                         ("format_npz: the name '" + std::string(100, 'n') +
                          "...' has 4097 bytes, not 1 to 4096, or a zero")
                             .c_str(),
                         IoError);
    ScratchFolder folder;
    test::write_text(folder / "f", "old");
    CHECK_THROWS_AS(save_npz(folder / "f", {{"w", zeros({1}, bf16)}}), IoError);
    CHECK(test::read_text(folder / "f") == "old");
    CHECK(folder.names() == std::vector<std::string>{"f"});
  }

  TEST_CASE("random damage to npz gives an error or arrays, never anything else") {
    std::mt19937 generator(13);
    int refused = 0, read = 0;
    for (const char* name : {"stored", "deflated", "zip64"}) {
      const std::string file = npz_text(name);
      for (int round = 0; round < 2000; ++round) {
        std::string damaged = file;
        for (std::uint32_t i = 0; i <= generator() % 3; ++i) {
          damaged[generator() % damaged.size()] = static_cast<char>(generator());
        }
        npz_refusal(damaged).starts_with("read") ? ++read : ++refused;
      }
    }
    CHECK(refused > 1000);
    CHECK(read > 10);
  }
}
