// SPDX-License-Identifier: Apache-2.0
// npy: files written by NumPy give its values, and tensors give its bytes.

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "../../../../engine/tensor/create.h"
#include "npy_text.h"
#include "scratch.h"

using namespace einkern;
using namespace einkern::test;

namespace {

std::string text_of(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Loads by every route, requires that they agree, and returns the mapped one.
Tensor load(const std::string& name) {
  Tensor mapped = load_npy(golden(name));
  const Tensor read = load_npy(golden(name), {.mmap = false});
  const Tensor parsed = parse(read_text(golden(name)));
  for (const Tensor& other : {read, parsed}) {
    REQUIRE(other.dtype() == mapped.dtype());
    REQUIRE(other.shape() == mapped.shape());
    CHECK_FALSE(other.read_only());
    CHECK(format_npy(other) == format_npy(mapped));
  }
  CHECK(mapped.labels().empty());
  return mapped;
}

template <class T>
std::vector<T> ramp(double scale, double shift) {
  std::vector<T> values;
  for (int i = 0; i < 24; ++i) values.push_back(static_cast<T>(i * scale + shift));
  return values;
}

template <class T>
void check_ends(const std::string& name) {
  using Limits = std::numeric_limits<T>;
  for (const std::string order : {"little_", "big_"}) {
    CAPTURE(order);
    const Tensor tensor = load(order + name);
    CHECK(tensor.dtype() == dtype_of<T>);
    CHECK(tensor.to_vector<T>() == std::vector<T>{0, 1, -1, Limits::max(), Limits::min()});
  }
}

}  // namespace

TEST_SUITE("io") {
  TEST_CASE("floats in both byte orders") {
    for (const std::string order : {"little_", "big_"}) {
      CAPTURE(order);
      const Tensor single = load(order + "f4");
      CHECK(single.dtype() == f32);
      CHECK(single.shape() == Shape{2, 3, 4});
      CHECK(single.to_vector<float>() == ramp<float>(0.25, -1));
      const Tensor twice = load(order + "f8");
      CHECK(twice.dtype() == f64);
      CHECK(twice.to_vector<double>() == ramp<double>(0.25, -1));
    }
  }

  TEST_CASE("integers in both byte orders") {
    check_ends<std::int8_t>("i1");
    check_ends<std::int16_t>("i2");
    check_ends<std::int32_t>("i4");
    check_ends<std::int64_t>("i8");
  }

  TEST_CASE("bool") {
    const Tensor tensor = load("bool");
    CHECK(tensor.dtype() == boolean);
    CHECK(tensor.shape() == Shape{2, 3});
    CHECK(tensor.to_vector<bool>() == std::vector<bool>{true, false, true, false, false, true});
  }

  TEST_CASE("a bool byte that is neither 0 nor 1 is true, as in NumPy") {
    std::string file = read_text(golden("bool"));
    file[file.size() - 2] = '\x02';
    file[file.size() - 1] = '\xff';
    ScratchFolder folder;
    write_text(folder / "odd.npy", file);
    const std::vector<bool> want{true, false, true, false, true, true};
    CHECK(load_npy(folder / "odd.npy").to_vector<bool>() == want);
    CHECK(parse(file).to_vector<bool>() == want);
  }

  TEST_CASE("half precision becomes f32 exactly") {
    const float infinity = std::numeric_limits<float>::infinity();
    const std::vector<float> want{
        1,        -2,        65504,         0x1p-14f,    0x1p-24f, -1023 * 0x1p-24f,
        infinity, -infinity, std::nanf(""), 0x1.998p-4f, -0.0f};
    for (const std::string order : {"little_", "big_"}) {
      CAPTURE(order);
      const Tensor tensor = load(order + "f2");
      CHECK(tensor.dtype() == f32);
      const auto got = tensor.to_vector<float>();
      REQUIRE(got.size() == want.size());
      for (std::size_t i = 0; i < got.size(); ++i) {
        CAPTURE(i);
        CHECK(std::isnan(got[i]) == std::isnan(want[i]));
        CHECK(std::signbit(got[i]) == std::signbit(want[i]));
        if (!std::isnan(want[i])) CHECK(got[i] == want[i]);
      }
    }
  }

  TEST_CASE("Fortran order is a matter of strides") {
    for (const std::string order : {"little_", "big_"}) {
      CAPTURE(order);
      const Tensor tensor = load(order + "fortran_f8");
      CHECK(tensor.shape() == Shape{2, 3, 4});
      CHECK(tensor.strides() == Strides{1, 2, 6});
      CHECK(tensor.to_vector<double>() == ramp<double>(1, 0));
      const Tensor half = load(order + "fortran_f2");
      CHECK(half.strides() == Strides{1, 3});
      CHECK(half(2, 1).item<float>() == 9);
    }
  }

  TEST_CASE("no axes, no elements") {
    const Tensor scalar = load("scalar_f8");
    CHECK(scalar.rank() == 0);
    CHECK(scalar.item<double>() == 3.25);
    CHECK(load("empty_0x3_f4").shape() == Shape{0, 3});
    CHECK(load("empty_3x0x2_i8").shape() == Shape{3, 0, 2});
    CHECK(load("empty_3x0x2_i8").dtype() == i64);
  }

  TEST_CASE("versions 2 and 3") {
    CHECK(load("version_2_f4").to_vector<float>() == ramp<float>(1, 0));
    CHECK(load("version_3_f4").to_vector<float>() == ramp<float>(1, 0));
  }

  TEST_CASE("the written bytes are NumPy's") {
    for (const char* name :
         {"little_f4", "little_f8", "little_i1", "little_i2", "little_i4", "little_i8", "bool",
          "scalar_f8", "empty_0x3_f4", "empty_3x0x2_i8", "large_first_f4", "aligned_f4"}) {
      CAPTURE(name);
      CHECK(text_of(format_npy(load_npy(golden(name)))) == read_text(golden(name)));
    }
    CHECK(text_of(format_npy(load_npy(golden("big_f8")))) == read_text(golden("little_f8")));
    ScratchFolder folder;
    save_npy(folder / "a.npy", load_npy(golden("big_f4")));
    CHECK(read_text(folder / "a.npy") == read_text(golden("little_f4")));
  }

  TEST_CASE("strided tensors are written in C order") {
    const Tensor base = load("little_i4");
    const Tensor reversed = base.slice(0, {}, {}, -2);
    CHECK(parse_npy(format_npy(reversed)).to_vector<std::int32_t>() ==
          std::vector<std::int32_t>{-2147483647 - 1, -1, 0});
    const Tensor cube = load("little_f4").permute({2, 0, 1});
    const Tensor back = parse_npy(format_npy(cube));
    CHECK(back.shape() == Shape{4, 2, 3});
    CHECK(back.is_contiguous());
    CHECK(back.to_vector<float>() == cube.to_vector<float>());
    const Tensor spread = tensor<float>({7}).broadcast({2, 3});
    CHECK(parse_npy(format_npy(spread)).to_vector<float>() == std::vector<float>(6, 7));
  }

  TEST_CASE("mapped memory is read-only and outlives the file's name") {
    ScratchFolder folder;
    save_npy(folder / "a.npy", arange(100000));
    const Tensor mapped = load_npy(folder / "a.npy");
    CHECK(mapped.read_only());
    CHECK_THROWS_AS(mapped.fill(1), ValueError);
    save_npy(folder / "a.npy", zeros({3}));
    std::filesystem::remove(folder / "a.npy");
    CHECK(mapped(99999).item<std::int64_t>() == 99999);
    CHECK(reinterpret_cast<std::uintptr_t>(mapped.bytes()) % 64 == 0);
  }

  TEST_CASE("data that lie askew are copied") {
    // NumPy pads headers to 64 bytes; this writer does not pad at all, with 61 bytes before the
    // data.
    const std::string dict = "{'shape':(2,),'descr':'<f8','fortran_order':False}\n";
    std::string file =
        std::string("\x93NUMPY\1\0", 8) + static_cast<char>(dict.size()) + '\0' + dict;
    const double values[] = {1.5, -2.5};
    file.append(reinterpret_cast<const char*>(values), sizeof values);
    ScratchFolder folder;
    write_text(folder / "askew.npy", file);
    for (const bool mmap : {true, false}) {
      const Tensor tensor = load_npy(folder / "askew.npy", {.mmap = mmap});
      CHECK_FALSE(tensor.read_only());
      CHECK(reinterpret_cast<std::uintptr_t>(tensor.bytes()) % alignof(double) == 0);
      CHECK(tensor.to_vector<double>() == std::vector<double>{1.5, -2.5});
    }
  }

  TEST_CASE("a header beyond 64 KiB makes it version 2") {
    const Shape shape(std::size_t{25000}, 1);
    const auto bytes = format_npy(full(shape, 4));
    CHECK(bytes[6] == std::byte{2});
    CHECK((bytes.size() - 4) % 64 == 0);
    const Tensor back = parse_npy(bytes);
    CHECK(back.shape() == shape);
    CHECK(back.item<float>() == 4);
  }

  TEST_CASE("f16 is written as half precision, which comes back as f32; bf16 has no form") {
    const Tensor values = random({3, 5}, 4, f16);
    const Tensor across = values.permute({1, 0});
    for (const Tensor& tensor : {values, across}) {
      const auto bytes = format_npy(tensor);
      const std::string text(reinterpret_cast<const char*>(bytes.data()), 128);
      CHECK(text.find("'descr': '<f2'") != text.npos);
      CHECK(bytes.size() == 128 + 30);
      const Tensor back = parse_npy(bytes);
      CHECK(back.dtype() == f32);
      CHECK(allclose(back, tensor, 0, 0));
    }
    CHECK_THROWS_WITH_AS(format_npy(values.astype(bf16)),
                         "format_npy: an npy file cannot hold bf16; convert it with astype first",
                         IoError);
    const ScratchFolder folder;
    const std::string path = folder / "b.npy";
    CHECK_THROWS_WITH_AS(
        save_npy(path, values.astype(bf16)),
        ("save_npy: '" + path + "': an npy file cannot hold bf16; convert it with astype first")
            .c_str(),
        IoError);
    CHECK_FALSE(std::filesystem::exists(path));
  }

  TEST_CASE("random shapes and dtypes survive a round trip") {
    std::mt19937 generator(7);
    int scalars = 0, empties = 0;
    for (int round = 0; round < 200; ++round) {
      Shape shape(std::size_t{generator() % 5}, 0);
      for (auto& size : shape) size = generator() % 8 == 0 ? 0 : 1 + generator() % 5;
      constexpr DType kStored[] = {boolean, i8, i16, i32, i64, f32, f64};
      const DType dtype = kStored[generator() % std::size(kStored)];
      const Tensor source = random(shape, round, f64);
      for (const Tensor& tensor :
           {is_float(dtype) ? source.astype(dtype) : full(shape, 1, dtype)}) {
        const Tensor back = parse_npy(format_npy(tensor));
        CHECK(back.dtype() == dtype);
        CHECK(back.shape() == shape);
        CHECK(allclose(back, tensor, 0, 0));
      }
      scalars += shape.empty();
      empties += source.size() == 0;
    }
    CHECK(scalars > 10);
    CHECK(empties > 10);
  }
}
