// SPDX-License-Identifier: Apache-2.0
// npy: whatever is no such file gives one message that names the file and the fact.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <random>
#include <span>
#include <string>
#include <vector>

#include "../../../../engine/base/error.h"
#include "npy_text.h"
#include "scratch.h"

using namespace einkern;
using namespace einkern::test;

namespace {

/// A file with this dictionary, padded by nothing, and this many bytes of data.
std::string file_with(const std::string& dict, std::size_t data_bytes = 0) {
  const std::size_t length = dict.size() + 1;
  std::string file("\x93NUMPY\1\0", 8);
  file += static_cast<char>(length & 255);
  file += static_cast<char>(length >> 8);
  return file + dict + '\n' + std::string(data_bytes, '\0');
}

std::string with_shape(const std::string& shape) {
  return "{'descr': '<f4', 'fortran_order': False, 'shape': " + shape + ", }";
}

/// The message of the error, or what the tensor looks like when there is none.
std::string error_of(const std::string& file) {
  try {
    return "no error: shape " + to_string(parse(file).shape());
  } catch (const IoError& error) {
    return error.what();
  }
}

}  // namespace

TEST_SUITE("io") {
  TEST_CASE("messages name the function and the file") {
    ScratchFolder folder;
    const auto path = folder / "a.npy";
    const std::string quoted = fmt::format("'{}'", path.string());
    CHECK_THROWS_WITH_AS(
        load_npy(path),
        ("load_npy: " + quoted + ": cannot open: no such file or directory").c_str(), IoError);
    CHECK_THROWS_WITH_AS(
        load_npy(folder.path()),
        ("load_npy: '" + folder.path().string() + "': cannot read: is a directory").c_str(),
        IoError);
    for (const std::string content : {"", "PK\3\4", "x"}) {
      write_text(path, content);
      for (const bool mmap : {true, false}) {
        CHECK_THROWS_WITH_AS(
            load_npy(path, {.mmap = mmap}),
            ("load_npy: " + quoted + ": not an npy file: it does not begin with \\x93NUMPY")
                .c_str(),
            IoError);
      }
    }
  }

  TEST_CASE("dtypes that are not supported are named, with the choices") {
    const auto check = [](const char* name, const std::string& descr) {
      const std::string message =
          "load_npy: '" + golden(name).string() + "': dtype '" + descr +
          "' is not supported; the choices are b1, i1, i2, i4, i8, f2, f4, f8";
      CHECK_THROWS_WITH_AS(load_npy(golden(name)), message.c_str(), IoError);
    };
    check("unsupported_u1", "|u1");
    check("unsupported_c8", "<c8");
    check("unsupported_f16", "<f16");
    check("unsupported_object", "|O");
    check("unsupported_text", "<U3");
    check("unsupported_time", "<M8[D]");
    check("unsupported_record", "[('a', '<i4'), ('b', '<f8')]");
  }

  TEST_CASE("every truncation is an error") {
    for (const char* name : {"little_f4", "version_2_f4", "bool", "scalar_f8", "empty_0x3_f4"}) {
      const std::string file = read_text(golden(name));
      for (std::size_t size = 0; size < file.size(); ++size) {
        CAPTURE(size);
        CHECK(error_of(file.substr(0, size)).starts_with("parse_npy: "));
      }
    }
    const std::string file = read_text(golden("little_f4"));
    CHECK(error_of(file.substr(0, 9)) ==
          "parse_npy: the file ends inside its header, after 9 bytes");
    CHECK(error_of(file.substr(0, 50)) ==
          "parse_npy: the file ends inside its header, after 50 of 128 bytes");
    CHECK(error_of(file.substr(0, 200)) ==
          "parse_npy: 72 bytes of data where shape (2, 3, 4) of 4-byte items needs 96");
    CHECK(error_of(file + "x") ==
          "parse_npy: 97 bytes of data where shape (2, 3, 4) of 4-byte items needs 96");
  }

  TEST_CASE("versions") {
    std::string file = read_text(golden("little_f4"));
    for (const auto& [major, minor, text] : {std::tuple{'\0', '\0', "0.0"},
                                             {'\4', '\0', "4.0"},
                                             {'\1', '\1', "1.1"},
                                             {'\xff', '\xff', "255.255"}}) {
      file[6] = major;
      file[7] = minor;
      CHECK(error_of(file) == std::string("parse_npy: npy version ") + text +
                                  " is not supported; the choices are 1.0, 2.0, 3.0");
    }
  }

  TEST_CASE("a header length out of all proportion") {
    std::string file("\x93NUMPY\2\0\xff\xff\xff\xff", 12);
    CHECK(error_of(file) == "parse_npy: the header has 4294967295 bytes, more than 1048576");
  }

  TEST_CASE("shapes") {
    const auto check = [](const std::string& shape, const std::string& fact) {
      CHECK(error_of(file_with(with_shape(shape))) ==
            "parse_npy: the header has " + fact + ": " +
                "{'descr': '<f4', 'fortran_order': False, 'shape': " + shape + ", }");
    };
    check("(-1,)", "a negative size");
    check("(2, -3)", "a negative size");
    check("(3)", "a 'shape' that is not a tuple");
    check("3", "no '(' at character 50");
    check("(a,)", "a 'shape' that is not a tuple of sizes");
    check("(,)", "a 'shape' that is not a tuple of sizes");
    check("(1 2)", "a 'shape' that is not a tuple");
    check("(9223372036854775808,)", "a size beyond 64 bits");
    CHECK(error_of(file_with(with_shape("(9223372036854775807,)"))) ==
          "parse_npy: shape (9223372036854775807,) has more bytes than 64 bits can count");
    CHECK(error_of(file_with(with_shape("(4294967296, 4294967296)"))) ==
          "parse_npy: shape (4294967296, 4294967296) has more bytes than 64 bits can count");
    CHECK(error_of(file_with(with_shape("(1099511627776,)"))) ==
          "parse_npy: 0 bytes of data where shape (1099511627776,) of 4-byte items needs "
          "4398046511104");
    // No element, however large the other sizes are.
    CHECK(parse(file_with(with_shape("(0, 4294967296)"))).size() == 0);
  }

  TEST_CASE("other spellings of the same header") {
    for (const char* dict : {"{'shape': (2,), 'fortran_order': False, 'descr': '<f4'}",
                             "{\"descr\":\"<f4\",\"fortran_order\":False,\"shape\":(2,)}",
                             "{'descr': '=f4', 'fortran_order': False, 'shape': (2L,), }   "}) {
      CAPTURE(dict);
      CHECK(error_of(file_with(dict, 8)) == "no error: shape (2,)");
    }
  }

  TEST_CASE("garbage for a dictionary") {
    const auto check = [](const std::string& dict, const std::string& fact) {
      CHECK(error_of(file_with(dict)) == "parse_npy: the header " + fact + ": " + dict);
    };
    check("", "has no '{' at character 1");
    check("{}", "lacks one of 'descr', 'fortran_order', 'shape'");
    check("{'descr': '<f4', 'shape': (), }", "lacks one of 'descr', 'fortran_order', 'shape'");
    check("{'descr': '<f4', 'descr': '<f4'}", "does not expect the key 'descr' here");
    check("{'color': 1}", "does not expect the key 'color' here");
    check("{descr: '<f4'}", "has no quoted name at character 1");
    check("{'descr", "has a quoted name without an end");
    check("{'descr' '<f4'}", "has no ':' at character 9");
    check("{'descr': '<f4' 'shape': ()}", "has no ',' or '}' after a value");
    check("{'descr': [('a', '<f4'}", "has a list without an end");
    check("{'fortran_order': 1}", "has neither True nor False for 'fortran_order'");
    check("{'descr': '<f4', 'fortran_order': False, 'shape': ()} x", "has something after its '}'");
  }

  TEST_CASE("control characters and long headers are not repeated in messages") {
    CHECK(error_of(file_with("{'\x1b[31m\xff': 1}")) ==
          "parse_npy: the header does not expect the key '?[31m?' here: {'?[31m?': 1}");
    const std::string message = error_of(file_with("{'" + std::string(5000, 'a') + "': 1}"));
    CHECK(message.size() < 300);
  }

  TEST_CASE("random damage gives an error or a tensor, never anything else") {
    std::mt19937 generator(11);
    int refused = 0, read = 0;
    for (const char* name : {"little_f4", "version_3_f4", "big_fortran_f2", "bool"}) {
      const std::string file = read_text(golden(name));
      for (int round = 0; round < 5000; ++round) {
        std::string damaged = file;
        for (std::uint32_t i = 0; i <= generator() % 3; ++i) {
          damaged[generator() % damaged.size()] = static_cast<char>(generator());
        }
        error_of(damaged).starts_with("no error") ? ++read : ++refused;
      }
    }
    CHECK(refused > 1000);
    CHECK(read > 1000);
  }
}
