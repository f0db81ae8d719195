// SPDX-License-Identifier: Apache-2.0
// safetensors: what the format's own package writes is read, and files put together by hand are
// given back byte by byte.
#include "../../../../engine/tensor/io/safetensors.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "../../../../engine/tensor/create.h"
#include "safetensors_bytes.h"
#include "scratch.h"

using namespace einkern;
using test::safetensors_file;
using test::ScratchFolder;

namespace {

const std::filesystem::path kMixed =
    std::filesystem::path(EINKERN_TEST_DATA) / "safetensors/mixed.safetensors";

Safetensors parse_text(const std::string& text) {
  return parse_safetensors(std::as_bytes(std::span(text)));
}

std::string text_of(const Safetensors& content) {
  const std::vector<std::byte> bytes = format_safetensors(content);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

template <class T>
void check_ends_of(const Tensor& tensor) {
  using Limits = std::numeric_limits<T>;
  CHECK(tensor.dtype() == dtype_of<T>);
  CHECK(tensor.to_vector<T>() == std::vector<T>{Limits::min(), Limits::max()});
}

template <class T>
std::vector<std::uint16_t> bits_of(const Tensor& tensor) {
  std::vector<std::uint16_t> bits;
  for (const T value : tensor.to_vector<T>()) bits.push_back(value.bits);
  return bits;
}

void check_mixed(const Safetensors& content) {
  CHECK(content.metadata ==
        std::map<std::string, std::string>{{"origin", "make.py"}, {"größe", "10"}});
  const NamedTensors& tensors = content.tensors;
  REQUIRE(tensors.size() == 10);
  CHECK(tensors["mask"].to_vector<bool>() == std::vector<bool>{true, false, true});
  check_ends_of<std::int8_t>(tensors["small"]);
  check_ends_of<std::int16_t>(tensors["short"]);
  check_ends_of<std::int32_t>(tensors["int"]);
  CHECK(tensors["int"].shape() == Shape{2, 1});
  check_ends_of<std::int64_t>(tensors["long"]);
  CHECK(tensors["half"].dtype() == f16);
  CHECK(bits_of<Float16>(tensors["half"]) ==
        std::vector<std::uint16_t>{0x3c00, 0xc000, 0x7bff, 0x0001});
  CHECK(tensors["brain"].dtype() == bf16);
  CHECK(bits_of<BFloat16>(tensors["brain"]) ==
        std::vector<std::uint16_t>{0x3f80, 0xc000, 0x7f7f, 0x0001});
  CHECK(tensors["single"].shape() == Shape{1, 2, 3});
  CHECK(tensors["single"].to_vector<float>() ==
        std::vector<float>{0, 0.25F, 0.5F, 0.75F, 1, 1.25F});
  CHECK(tensors["double"].rank() == 0);
  CHECK(tensors["double"].item<double>() == 3.25);
  CHECK(tensors["none"].shape() == Shape{2, 0});
}

}  // namespace

TEST_SUITE("io") {
  TEST_CASE("safetensors of every dtype, written by the format's own package") {
    const std::string text = test::read_text(kMixed);
    check_mixed(load_safetensors(kMixed));
    check_mixed(load_safetensors(kMixed, {.mmap = false}));
    check_mixed(parse_text(text));
    check_mixed(parse_text(text_of(parse_text(text))));
  }

  TEST_CASE("aligned safetensors are views of one mapped file, which outlives its name") {
    ScratchFolder folder;
    const Tensor a = arange(100000, i64), b = full({3}, 0.5, bf16);
    save_safetensors(folder / "f", {.tensors = {{"b", b}, {"a", a}}, .metadata = {}});
    CHECK(folder.names() == std::vector<std::string>{"f"});
    const Safetensors content = load_safetensors(folder / "f");
    const Tensor& mapped = content.tensors["a"];
    CHECK(mapped.read_only());
    CHECK_THROWS_AS(mapped.fill(1), ValueError);
    CHECK(mapped.storage() == content.tensors["b"].storage());
    CHECK(reinterpret_cast<std::uintptr_t>(mapped.bytes()) % 64 == 0);
    save_safetensors(folder / "f", {});
    std::filesystem::remove(folder / "f");
    CHECK(mapped(99999).item<std::int64_t>() == 99999);
    CHECK(content.tensors["b"].to_vector<BFloat16>() == b.to_vector<BFloat16>());
  }

  TEST_CASE("safetensors put together by hand, read and written byte by byte") {
    const std::string data = {'\0',   '\0',   '\x80', '\x3f', '\0', '\0', '\0', '\xc0',  // 1, -2
                              '\x80', '\x3f', '\1'};  // bf16 1, true
    const std::string json =
        R"({"__metadata__":{"k":"a \"b\""},"w":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]},)"
        R"("s":{"dtype":"BF16","shape":[],"data_offsets":[8,10]},)"
        R"("t":{"dtype":"BOOL","shape":[1],"data_offsets":[10,11]}})";
    // Padded so that data begin at a multiple of 64.
    const std::string padded = json + std::string(63 - (json.size() + 8 + 63) % 64, ' ');
    const std::string file = safetensors_file(padded, data);
    for (const std::string& text : {file, safetensors_file(json, data)}) {
      const Safetensors content = parse_text(text);
      CHECK(content.metadata.at("k") == "a \"b\"");
      CHECK(content.tensors["w"].to_vector<float>() == std::vector<float>{1, -2});
      CHECK(static_cast<float>(content.tensors["s"].item<BFloat16>()) == 1);
      CHECK(content.tensors["t"].to_vector<bool>() == std::vector<bool>{true});
      CHECK(text_of(content) == file);
    }
    // The writer puts wide elements first, whatever the order it is given, and packs strided ones.
    const Safetensors content = parse_text(file);
    const Tensor spread = tensor<float>({1, 7, -2}).slice(0, 0, 3, 2).split(0, {"a", "b"}, {2, 1});
    CHECK(text_of(
              {.tensors = {{"t", content.tensors["t"]}, {"w", spread}, {"s", content.tensors["s"]}},
               .metadata = content.metadata}) == file);
  }

  TEST_CASE("safetensors that lie askew are copied, and odd truth values are true") {
    const std::string json = R"({"t":{"dtype":"BOOL","shape":[3],"data_offsets":[0,3]},)"
                             R"("x":{"dtype":"F64","shape":[1],"data_offsets":[3,11]}})";
    const std::string padded = json + std::string(7 - (json.size() + 7) % 8, ' ');
    const std::string file =
        safetensors_file(padded, std::string("\2\0\xff\0\0\0\0\0\0\xf8\x3f", 11));
    ScratchFolder folder;
    test::write_text(folder / "f", file);
    for (const Safetensors& content : {load_safetensors(folder / "f"), parse_text(file)}) {
      CHECK(content.tensors["t"].to_vector<bool>() == std::vector<bool>{true, false, true});
      CHECK(content.tensors["x"].to_vector<double>() == std::vector<double>{1.5});
      CHECK_FALSE(content.tensors["x"].read_only());
    }
  }

  TEST_CASE("tensors of a file are in the order of their data") {
    const std::string json = R"({"b":{"dtype":"I8","shape":[1],"data_offsets":[1,2]},)"
                             R"("a":{"dtype":"I8","shape":[1],"data_offsets":[0,1]},)"
                             R"("none":{"dtype":"F64","shape":[0,4],"data_offsets":[1,1]}})";
    const Safetensors content = parse_text(safetensors_file(json, "\5\6"));
    std::string order;
    for (const auto& [name, tensor] : content.tensors) order += name + " ";
    CHECK(order == "a none b ");
    CHECK(content.tensors["b"].item<int>() == 6);
    CHECK(parse_text(safetensors_file("{}", "")).tensors.empty());
  }

  TEST_CASE("tensors under names") {
    NamedTensors tensors{{"a", zeros({2})}};
    CHECK_THROWS_WITH_AS(tensors.add("a", zeros({1})), "NamedTensors: 'a' is there already",
                         ValueError);
    CHECK_THROWS_WITH_AS(tensors["b"], "NamedTensors: no 'b'; the names are 'a'", ValueError);
    CHECK_THROWS_WITH_AS(NamedTensors()["b"], "NamedTensors: no 'b'; there are no tensors",
                         ValueError);
    for (int i = 0; i < 24; ++i) tensors.add("t" + std::to_string(i), zeros({1}));
    CHECK(tensors.contains("t23"));
    CHECK_FALSE(tensors.contains("t24"));
    CHECK_THROWS_WITH_AS(
        tensors["x"],
        "NamedTensors: no 'x'; the names are 'a', 't0', 't1', 't2', 't3', 't4', 't5', 't6', 't7', "
        "'t8', 't9', 't10', 't11', 't12', 't13', 't14', 't15', 't16', 't17', 't18', ... (25 in "
        "all)",
        ValueError);
  }
}
