// SPDX-License-Identifier: Apache-2.0
// npz: archives written by NumPy give its arrays, and what is written comes back.
#include "../../../../engine/tensor/io/npz.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "../../../../engine/tensor/create.h"
#include "../../../../engine/tensor/io/zip.h"
#include "scratch.h"

using namespace einkern;
using test::ScratchFolder;

namespace {

std::filesystem::path npz_data(const std::string& name) {
  return std::filesystem::path(EINKERN_TEST_DATA) / "npz" / (name + ".npz");
}

NamedTensors parse_archive(const std::string& text) {
  return parse_npz(std::as_bytes(std::span(text)));
}

void check_arrays(const NamedTensors& tensors) {
  REQUIRE(tensors.size() == 7);
  const Tensor& x = tensors["x"];
  CHECK(x.shape() == Shape{2, 3, 4});
  CHECK(x.dtype() == f32);
  for (int i = 0; i < 24; ++i) CHECK(x.to_vector<float>()[i] == i * 0.25F - 1);
  CHECK(tensors["turned"].dtype() == f64);
  CHECK(tensors["turned"].to_vector<double>() == std::vector<double>{0, 1, 2, 3, 4, 5});
  CHECK(tensors["count"].rank() == 0);
  CHECK(tensors["count"].item<std::int64_t>() == 7);
  CHECK(tensors["mask"].to_vector<bool>() == std::vector<bool>{true, false});
  CHECK(tensors["none"].shape() == Shape{0, 3});
  CHECK(tensors["größe"].to_vector<std::int16_t>() == std::vector<std::int16_t>{1, 2, 3});
  CHECK(tensors["folder/y"].to_vector<float>() == std::vector<float>(1000, 0));
}

/// Some arrays of every kind: strided, empty, large enough to deflate.
NamedTensors some_arrays() {
  return {{"random", random({50, 40}, 3)},
          {"turned", random({3, 4, 5}, 4, f64).permute({2, 0, 1})},
          {"none", zeros({0, 4}, i32)},
          {"scalar", full({}, 2.5, f64)},
          {"half", random({7}, 5).astype(f16)},
          {"größe", arange(100000)}};
}

void check_equal(const NamedTensors& got, const NamedTensors& want) {
  REQUIRE(got.size() == want.size());
  for (const auto& entry : want) {
    const auto& [name, tensor] = entry;
    CAPTURE(entry.first);
    CHECK(got[name].shape() == tensor.shape());
    CHECK(got[name].astype(f64).to_vector<double>() == tensor.astype(f64).to_vector<double>());
  }
}

}  // namespace

TEST_SUITE("io") {
  TEST_CASE("npz files that NumPy wrote: stored, deflated, ZIP64") {
    for (const char* name : {"stored", "deflated", "zip64"}) {
      CAPTURE(name);
      check_arrays(load_npz(npz_data(name)));
      check_arrays(load_npz(npz_data(name), {.mmap = false}));
      check_arrays(parse_archive(test::read_text(npz_data(name))));
      CHECK(load_npz(npz_data(name), "count").item<int>() == 7);
    }
    // The third is what it is for: its directory says that numbers stand elsewhere.
    const std::string text = test::read_text(npz_data("zip64"));
    CHECK(text.find("PK\6\6") != text.npos);
    CHECK(text.substr(text.find("PK\1\2") + 20, 8) == std::string(8, '\xff'));
  }

  TEST_CASE("npz files that are written come back") {
    ScratchFolder folder;
    const NamedTensors want = some_arrays();
    for (const bool compress : {false, true}) {
      CAPTURE(compress);
      save_npz(folder / "f", want, {.compress = compress});
      CHECK(folder.names() == std::vector<std::string>{"f"});
      check_equal(load_npz(folder / "f"), want);
      check_equal(load_npz(folder / "f", {.mmap = false}), want);
      const std::vector<std::byte> bytes = format_npz(want, {.compress = compress});
      check_equal(parse_npz(bytes), want);
      const std::string text = test::read_text(folder / "f");
      CHECK(text == std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
      CHECK((text.size() < 500000) == compress);
      CHECK(load_npz(folder / "f", "none").shape() == Shape{0, 4});
    }
    save_npz(folder / "f", {});
    CHECK(load_npz(folder / "f").empty());
  }

  TEST_CASE("stored arrays of npz are views of the mapped file") {
    ScratchFolder folder;
    save_npz(folder / "f", some_arrays());
    const NamedTensors tensors = load_npz(folder / "f");
    for (const auto& entry : tensors) {
      const auto& [name, tensor] = entry;
      CAPTURE(entry.first);
      if (tensor.size() == 0 || name == "half") continue;  // f2 is read as f32
      CHECK(tensor.read_only());
      CHECK(tensor.storage() == tensors["random"].storage());
      CHECK(reinterpret_cast<std::uintptr_t>(tensor.bytes()) % 64 == 0);
    }
    std::filesystem::remove(folder / "f");
    CHECK(tensors["größe"](99999).item<std::int64_t>() == 99999);
  }

  TEST_CASE("ZIP64 is written where numbers are large") {
    const std::string a(200, 'a'), b = "b", c(300, 'c');
    const auto bytes = [](const std::string& text) { return std::as_bytes(std::span(text)); };
    const std::vector<io::ZipContent> contents = {
        {"a", {bytes(a)}}, {"b", {bytes(b), bytes(a)}}, {"c", {bytes(c)}}, {"none", {}}};
    int with_zip64 = 0;
    for (const bool deflate : {false, true}) {
      for (const std::uint64_t size_limit : {0, 1, 201, 202, 300, 1000, 100000}) {
        for (const std::uint64_t count_limit : {4, 5}) {
          CAPTURE(size_limit);
          const io::ZipParts parts = io::format_zip(
              contents, "test",
              {.deflate = deflate, .size_limit = size_limit, .count_limit = count_limit});
          std::vector<std::byte> file;
          for (const auto piece : parts.pieces) file.insert(file.end(), piece.begin(), piece.end());
          const std::string text(reinterpret_cast<const char*>(file.data()), file.size());
          with_zip64 += text.find("PK\6\6") != text.npos ? 1 : 0;
          const auto members = io::parse_zip(file, "test");
          REQUIRE(members.size() == 4);
          for (std::size_t i = 0; i < 4; ++i) {
            std::string want;
            for (const auto piece : contents[i].pieces) {
              want.append(reinterpret_cast<const char*>(piece.data()), piece.size());
            }
            CHECK(members[i].name == contents[i].name);
            REQUIRE(members[i].size == want.size());
            std::string got(want.size(), '\0');
            io::read_member(members[i], std::as_writable_bytes(std::span(got)), "test");
            CHECK(got == want);
          }
        }
      }
    }
    CHECK(with_zip64 > 14);
    CHECK(with_zip64 < 28);
  }
}
