// SPDX-License-Identifier: Apache-2.0
// safetensors: whatever is no such file is refused, naming the file and the tensor.
#include <doctest/doctest.h>

#include <random>
#include <span>
#include <string>
#include <vector>

#include "../../../../engine/base/error.h"
#include "../../../../engine/tensor/create.h"
#include "../../../../engine/tensor/io/safetensors.h"
#include "safetensors_bytes.h"
#include "scratch.h"

using namespace einkern;
using test::safetensors_file;
using test::ScratchFolder;

namespace {

/// What is said about these bytes, without the function's name.
std::string refusal(const std::string& file) {
  try {
    const Safetensors content = parse_safetensors(std::as_bytes(std::span(file)));
    return "read " + std::to_string(content.tensors.size());
  } catch (const IoError& error) {
    const std::string text = error.what();
    REQUIRE(text.starts_with("parse_safetensors: "));
    return text.substr(std::string("parse_safetensors: ").size());
  }
}

std::string entry(const std::string& name, const std::string& dtype, const std::string& shape,
                  const std::string& offsets) {
  return "\"" + name + R"(":{"dtype":)" + dtype + R"(,"shape":)" + shape + R"(,"data_offsets":)" +
         offsets + "}";
}

/// A file of one tensor `x` and eight bytes of data.
std::string one(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return safetensors_file("{" + entry("x", dtype, shape, offsets) + "}", "12345678");
}

}  // namespace

TEST_SUITE("io") {
  TEST_CASE("safetensors that are not there, or something else") {
    ScratchFolder folder;
    const auto path = folder / "none";
    CHECK_THROWS_WITH_AS(
        load_safetensors(path),
        ("load_safetensors: '" + path.string() + "': cannot open: no such file or directory")
            .c_str(),
        IoError);
    test::write_text(path, "PK\3\4 and so on");
    CHECK_THROWS_WITH_AS(load_safetensors(path),
                         ("load_safetensors: '" + path.string() +
                          "': not a safetensors file: a header of 7236828441365138256 bytes, more "
                          "than 100000000")
                             .c_str(),
                         IoError);
    CHECK(refusal("") == "not a safetensors file: 0 bytes, which are too few");
    CHECK(refusal("1234567") == "not a safetensors file: 7 bytes, which are too few");
  }

  TEST_CASE("headers of safetensors that are cut off or no object") {
    CHECK(refusal(std::string("\4\0\0\0\0\0\0\0{}", 10)) ==
          "the file ends inside its header, after 10 of 12 bytes");
    CHECK(refusal(safetensors_file("", "")) == "the header does not begin with '{'");
    CHECK(refusal(safetensors_file(" {}", "")) == "the header does not begin with '{'");
    CHECK(refusal(safetensors_file("[]", "")) == "the header does not begin with '{'");
    CHECK(refusal(safetensors_file("{", "")) == "the header is no JSON from byte 2 on");
    CHECK(refusal(safetensors_file("{} x", "")) == "the header is no JSON from byte 4 on");
    CHECK(refusal(safetensors_file("{\"a\xff\":1}", "")) == "the header is no JSON from byte 4 on");
  }

  TEST_CASE("every truncation of a safetensors file is an error") {
    const std::string file =
        test::read_text(std::filesystem::path(EINKERN_TEST_DATA) / "safetensors/mixed.safetensors");
    REQUIRE(refusal(file) == "read 10");
    for (std::size_t size = 0; size < file.size(); ++size) {
      CAPTURE(size);
      CHECK_FALSE(refusal(file.substr(0, size)).starts_with("read"));
    }
    const std::string cut = refusal(file.substr(0, file.size() - 1));
    CHECK(cut.find("': data_offsets [") != cut.npos);
    CHECK(refusal(file + "x").ends_with("of the data belong to no tensor"));
  }

  TEST_CASE("values of the header of safetensors that are of another kind") {
    const auto check = [](const std::string& json, const std::string& fact) {
      CHECK(refusal(safetensors_file(json, "")) == fact);
    };
    check(R"({"x":1})", "tensor 'x' is 1, not an object");
    check(R"({"x":[]})", "tensor 'x' is an array, not an object");
    check(R"({"x":null})", "tensor 'x' is null, not an object");
    check(R"({"__metadata__":{"a":1}})", "__metadata__ has 1 for 'a', not a text");
    check(R"({"__metadata__":{"a":{}}})", "__metadata__ has an object for 'a', not a text");
    check(R"({"__metadata__":{"a":"b","a":"c"}})", "__metadata__ has the key 'a' twice");
    check(R"({"x":{}})", "tensor 'x' lacks the key 'dtype'");
    check(R"({"x":{"dtype":"F32"}})", "tensor 'x' lacks the key 'shape'");
    check(R"({"x":{"dtype":"F32","shape":[0]}})", "tensor 'x' lacks the key 'data_offsets'");
    check(R"({"x":{"dtype":"F32","dtype":"F64"}})", "tensor 'x' has the key 'dtype' twice");
    check(R"({"x":{"strides":[1]}})", "tensor 'x' has the unknown key 'strides'");
    check(R"({"x":{"dtype":4}})", "tensor 'x' has 4 for its 'dtype'");
    check(R"({"x":{"dtype":["F32"]}})", "tensor 'x' has an array for its 'dtype'");
    check(R"({"x":{"shape":"2"}})", "tensor 'x' has the text '2' for its 'shape'");
    check(R"({"x":{"shape":{"a":1}}})", "tensor 'x' has an object for its 'shape'");
    check(R"({"x":{"shape":[[1]]}})", "tensor 'x' has an array in its 'shape'");
    check(R"({"x":{"shape":[true]}})", "tensor 'x' has true in its 'shape'");
    check(R"({"x":{"shape":[1.5]}})", "tensor 'x' has 1.5 in its 'shape'");
    check(R"({"x":{"shape":[1e3]}})", "tensor 'x' has 1e3 in its 'shape'");
    check(R"({"x":{"shape":[-1]}})", "tensor 'x' has the negative number -1 in its 'shape'");
    check(R"({"x":{"shape":[9223372036854775808]}})",
          "tensor 'x' has a number beyond 64 bits in its 'shape'");
    check(R"({"x":{"data_offsets":[1]}})",
          "tensor 'x' has 1 numbers in its 'data_offsets', which are two");
    check(R"({"x":{"data_offsets":[1,2,3]}})",
          "tensor 'x' has 3 numbers in its 'data_offsets', which are two");
    check("{" + entry("x", "\"F32\"", "[0]", "[0,0]") + "," +
              entry("x", "\"F32\"", "[0]", "[0,0]") + "}",
          "'x' stands twice in the header");
    check(R"({"__metadata__":{},"__metadata__":{}})", "'__metadata__' stands twice in the header");
    check(R"({"\u001b[31m":1})", "tensor '?[31m' is 1, not an object");
  }

  TEST_CASE("nesting without end in the header of safetensors") {
    const std::string deep = R"({"x":{"shape":)" + std::string(100000, '[');
    CHECK(refusal(safetensors_file(deep, "")) == "tensor 'x' has an array in its 'shape'");
  }

  TEST_CASE("dtypes of safetensors that are not supported") {
    for (const std::string dtype :
         {"U8", "U16", "U32", "U64", "F8_E4M3", "F8_E5M2", "C64", "f32"}) {
      CHECK(refusal(one("\"" + dtype + "\"", "[2]", "[0,8]")) ==
            "tensor 'x': dtype '" + dtype +
                "' is not supported; the choices are BOOL, I8, I16, I32, I64, F16, BF16, F32, F64");
    }
  }

  TEST_CASE("shapes and places of safetensors that do not fit") {
    CHECK(refusal(one("\"F32\"", "[2]", "[0,8]")) == "read 1");
    CHECK(refusal(one("\"F32\"", "[3]", "[0,8]")) ==
          "tensor 'x': shape (3,) of F32 needs 12 bytes, data_offsets [0, 8] hold 8");
    CHECK(refusal(one("\"F32\"", "[0]", "[0,8]")) ==
          "tensor 'x': shape (0,) of F32 needs 0 bytes, data_offsets [0, 8] hold 8");
    CHECK(refusal(one("\"F32\"", "[2]", "[4,12]")) ==
          "tensor 'x': data_offsets [4, 12] do not lie in the 8 bytes of data");
    CHECK(refusal(one("\"F32\"", "[2]", "[8,0]")) ==
          "tensor 'x': data_offsets [8, 0] do not lie in the 8 bytes of data");
    CHECK(refusal(one("\"F32\"", "[4294967296,4294967296]", "[0,8]")) ==
          "tensor 'x': shape (4294967296, 4294967296) has more bytes than 64 bits can count");
    CHECK(refusal(one("\"F32\"", "[9223372036854775807,0]", "[0,0]")) ==
          "bytes 0 to 8 of the data belong to no tensor");
    CHECK(refusal(one("\"I8\"", "[4]", "[0,4]")) == "bytes 4 to 8 of the data belong to no tensor");
    CHECK(refusal(one("\"I8\"", "[4]", "[4,8]")) == "bytes 0 to 4 of the data belong to no tensor");
  }

  TEST_CASE("safetensors that overlap or leave holes") {
    const auto two = [](const std::string& a, const std::string& b, const std::string& sizes) {
      return refusal(safetensors_file("{" + entry("a", "\"I8\"", "[" + sizes + "]", a) + "," +
                                          entry("b", "\"I8\"", "[" + sizes + "]", b) + "}",
                                      "12345678"));
    };
    CHECK(two("[4,8]", "[0,4]", "4") == "read 2");
    CHECK(two("[0,5]", "[3,8]", "5") == "tensors 'a' [0, 5] and 'b' [3, 8] overlap");
    CHECK(two("[0,8]", "[0,8]", "8") == "tensors 'a' [0, 8] and 'b' [0, 8] overlap");
    CHECK(two("[0,3]", "[5,8]", "3") == "bytes 3 to 5 of the data belong to no tensor");
  }

  TEST_CASE("what safetensors cannot hold") {
    CHECK_THROWS_WITH_AS(
        format_safetensors({.tensors = {{"__metadata__", zeros({1})}}, .metadata = {}}),
        "format_safetensors: no tensor may be called '__metadata__'", IoError);
    CHECK_THROWS_WITH_AS(format_safetensors({.tensors = {{"a\xff", zeros({1})}}, .metadata = {}}),
                         "format_safetensors: 'a?' is no UTF-8", IoError);
    ScratchFolder folder;
    const auto path = folder / "f";
    test::write_text(path, "old");
    CHECK_THROWS_WITH_AS(save_safetensors(path, {.tensors = {}, .metadata = {{"k", "\x80"}}}),
                         ("save_safetensors: '" + path.string() + "': '?' is no UTF-8").c_str(),
                         IoError);
    CHECK(test::read_text(path) == "old");
    CHECK(folder.names() == std::vector<std::string>{"f"});
  }

  TEST_CASE("random damage to safetensors gives an error or tensors, never anything else") {
    const std::string file =
        test::read_text(std::filesystem::path(EINKERN_TEST_DATA) / "safetensors/mixed.safetensors");
    std::mt19937 generator(12);
    int refused = 0, read = 0;
    for (int round = 0; round < 5000; ++round) {
      std::string damaged = file;
      for (std::uint32_t i = 0; i <= generator() % 2; ++i) {
        // The digits and brackets of the header most of all.
        damaged[8 + generator() % (damaged.size() - 8)] =
            "0123456789[]{},:\"\xff"[generator() % 18];
      }
      refusal(damaged).starts_with("read") ? ++read : ++refused;
    }
    CHECK(refused > 1000);
    CHECK(read > 100);
  }
}
