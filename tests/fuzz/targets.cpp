// SPDX-License-Identifier: Apache-2.0
// Parsers under arbitrary bytes: what they accept must hold together.
#include "targets.h"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <stdexcept>
#include <utility>

#include "../../einkern.h"
#include "../../engine/tensor/io/npz.h"
#include "../../engine/tensor/io/safetensors.h"
#include "../../ops/words.h"

namespace einkern::test {
namespace {

void require(bool holds, const char* what) {
  if (!holds) throw std::logic_error(what);
}

Bytes bytes_of(const std::string& text) {
  const auto* begin = reinterpret_cast<const std::byte*>(text.data());
  return {begin, begin + text.size()};
}

bool same_bytes(const Tensor& a, const Tensor& b) {
  const Tensor x = a.copy(), y = b.copy();
  return x.dtype() == y.dtype() && x.shape() == y.shape() &&
         (x.size() == 0 ||
          std::memcmp(x.bytes(), y.bytes(),
                      static_cast<std::size_t>(x.size()) * size_of(x.dtype())) == 0);
}

template <class Read>
Verdict tried(Read read) {
  try {
    read();
    return Verdict::read;
  } catch (const Error&) {
    return Verdict::refused;
  }
}

}  // namespace

Verdict fuzz_program(std::span<const std::byte> bytes) {
  const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return tried([&] {
    const Program program = Program::parse(text, "fuzz.ein");
    const std::string canonical = program.str();
    require(Program::parse(canonical).str() == canonical, "the canonical form is not stable");
    std::map<std::string, InputType> types;
    for (const std::string& name : program.inputs()) {
      if (!program.declared(name)) types.emplace(name, InputType({2, 3}));
    }
    program.outline(types);
    // Numbers need no data: whatever is left to be a tensor is small.
    program.compile(types);
  });
}

Verdict fuzz_npy(std::span<const std::byte> bytes) {
  return tried([&] {
    const Tensor tensor = parse_npy(bytes);
    require(same_bytes(parse_npy(format_npy(tensor)).astype(tensor.dtype()), tensor),
            "written and read it differs");
  });
}

Verdict fuzz_npz(std::span<const std::byte> bytes) {
  return tried([&] {
    const NamedTensors tensors = parse_npz(bytes);
    const NamedTensors again = parse_npz(format_npz(tensors));
    require(again.size() == tensors.size(), "written and read it has other members");
    for (const auto& [name, tensor] : tensors) {
      require(same_bytes(again[name].astype(tensor.dtype()), tensor),
              "written and read it differs");
    }
  });
}

Verdict fuzz_safetensors(std::span<const std::byte> bytes) {
  return tried([&] {
    const Safetensors content = parse_safetensors(bytes);
    const Safetensors again = parse_safetensors(format_safetensors(content));
    require(again.metadata == content.metadata, "written and read its metadata differ");
    for (const auto& [name, tensor] : content.tensors) {
      require(same_bytes(again.tensors[name], tensor), "written and read it differs");
    }
  });
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

}  // namespace einkern::test
