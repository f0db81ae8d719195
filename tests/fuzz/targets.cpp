// SPDX-License-Identifier: Apache-2.0
// Parsers of equations and of files under arbitrary bytes: what they accept must hold together.
#include "targets.h"

#include <cstring>
#include <utility>

#include "../../einkern.h"
#include "../../engine/tensor/io/npz.h"
#include "../../engine/tensor/io/safetensors.h"
#include "verdict.h"

namespace einkern::test {
namespace {

bool same_bytes(const Tensor& a, const Tensor& b) {
  const Tensor x = a.copy(), y = b.copy();
  return x.dtype() == y.dtype() && x.shape() == y.shape() &&
         (x.size() == 0 ||
          std::memcmp(x.bytes(), y.bytes(),
                      static_cast<std::size_t>(x.size()) * size_of(x.dtype())) == 0);
}

}  // namespace

Verdict fuzz_equation(std::span<const std::byte> bytes) {
  const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return tried([&] {
    const Equation equation = parse_equation(text);
    const std::string canonical = equation.str();
    require(parse_equation(canonical).str() == canonical, "the canonical form is not stable");
    std::vector<std::size_t> ranks;
    std::vector<Shape> shapes;
    std::size_t labels = 0;
    for (const Term& term : equation.inputs) {
      // An ellipsis stands for two axes, or none: it is one item of its term.
      ranks.push_back(term.items.size() + (term.has_ellipsis() && labels % 2 == 0 ? 1 : 0) -
                      (term.has_ellipsis() && labels % 2 == 1 ? 1 : 0));
      shapes.emplace_back(ranks.back(), 2);
      labels += term.items.size();
    }
    const ResolvedEquation resolved = einkern::resolve(equation, ranks);
    require(resolved.inputs.size() == equation.inputs.size(), "an operand is lost");
    const Spec spec = einkern::bind(resolved, shapes);
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      require(spec.inputs[i].size() == ranks[i], "an axis is lost");
    }
    require(spec.output_shape().size() == spec.output.size(), "the output has other axes");
    // The plan is bounded by what programs use: searching paths of many operands takes long.
    if (ranks.size() <= 6 && labels <= 16) {
      std::vector<Expr> operands;
      for (const Shape& shape : shapes) operands.push_back(input(f32, shape));
      require(einsum(text, operands).shape() == spec.output_shape(), "two shapes of one result");
    }
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

}  // namespace einkern::test
