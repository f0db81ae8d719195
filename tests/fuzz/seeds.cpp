// SPDX-License-Identifier: Apache-2.0
// The targets by name, with the inputs and pieces that fuzzers begin with.
#include <filesystem>
#include <fstream>
#include <iterator>

#include "../../einkern.h"
#include "../../engine/tensor/io/npz.h"
#include "../../engine/tensor/io/safetensors.h"
#include "../../ops/words.h"
#include "targets.h"

namespace einkern::test {
namespace {

Bytes bytes_of(const std::string& text) {
  const auto* begin = reinterpret_cast<const std::byte*>(text.data());
  return {begin, begin + text.size()};
}

std::vector<Bytes> equation_seeds() {
  std::vector<Bytes> seeds;
  for (const char* text :
       {"ij,jk->ik", "bhqd,bhkd->bhqk", "ij->", "", "ii->i", "ijji->jii", "...ij,...jk->...ik",
        "b...a", "[batch head q],[batch head k]->qk", "[m2 k2],[n2,k2]->[n2 m2]",
        "\u03b1\u03b2,\u03b2\u03b3->\u03b1\u03b3", " i j , j k -> i k", ",i->i"}) {
    seeds.push_back(bytes_of(text));
  }
  return seeds;
}

std::vector<Bytes> program_seeds() {
  std::vector<Bytes> seeds;
  const std::filesystem::path folder =
      std::filesystem::path(EINKERN_SOURCE_ROOT) / "examples/programs";
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().extension() != ".ein") continue;
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    if (text.find("import") == text.npos) seeds.push_back(bytes_of(text));
  }
  for (const Word& word : ops_words()) seeds.push_back(bytes_of("return " + word.signature()));
  return seeds;
}

std::vector<Bytes> npy_seeds() {
  return {format_npy(arange(6)), format_npy(random({2, 3}, 1)), format_npy(full({}, 2.5, f64)),
          format_npy(zeros({0, 3}, boolean)), format_npy(random({4}, 2).astype(f16))};
}

std::vector<Bytes> npz_seeds() {
  const NamedTensors named = {{"weights", random({16}, 1)}, {"b", arange(3)}};
  return {format_npz({{"a", arange(6)}}), format_npz(named), format_npz(named, {.compress = true}),
          format_npz({{"zeros", zeros({500})}}, {.compress = true})};
}

std::vector<Bytes> safetensors_seeds() {
  return {format_safetensors({{{"a", arange(6)}, {"b", random({2, 3}, 1).astype(bf16)}}, {}}),
          format_safetensors({{{"empty", zeros({0, 3})}}, {{"format", "pt"}}})};
}

}  // namespace

const std::vector<FuzzTarget>& fuzz_targets() {
  static const std::vector<FuzzTarget> kTargets = {
      {"equation",
       fuzz_equation,
       equation_seeds,
       {"->", ",", "...", "[", "]", " ", "i", "[k2]", "\xCE\xB1", "\xFF", "-", ".", ">",
        "[ab ...]"}},
      {"program",
       fuzz_program,
       program_seeds,
       {"(",
        ")",
        "[",
        "]",
        "\"",
        ",",
        ":",
        "=",
        "def f(x):\n    return x\n",
        "import \"a\"\n",
        "input x: f32[n]\n",
        "return ",
        "and ",
        "not ",
        "...",
        "**",
        "//",
        "-",
        "inf",
        "nan",
        "true",
        "9223372036854775807",
        "1e308",
        "index(k)",
        "size(x, 0)",
        ".output",
        "x[1:2]",
        "[\"ij\"]",
        "\n",
        "# ",
        "\xCE\xB1",
        "\xFF"}},
      {"npy",
       fuzz_npy,
       npy_seeds,
       {"{'descr': '", "<f8", ">i4", "|b1", "True", "(", ",", "0", "18446744073709551616", " "}},
      {"npz",
       fuzz_npz,
       npz_seeds,
       {"PK\x03\x04", "PK\x01\x02", "PK\x05\x06", "PK\x06\x06", ".npy"}},
      {"safetensors",
       fuzz_safetensors,
       safetensors_seeds,
       {"{", "}", "\"", ":", ",", "[", "]", "\"dtype\":\"F32\"", "\"shape\":[",
        "\"data_offsets\":[", "__metadata__", "BF16", "-1", "1e3", "18446744073709551616", "null"}},
  };
  return kTargets;
}

}  // namespace einkern::test
