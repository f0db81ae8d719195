// SPDX-License-Identifier: Apache-2.0
// Expressions over placeholders, compiled once and called many times.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "expr.h"

namespace einkern {

/// A size that is known only when the plan is called; equal names are equal sizes.
std::int64_t dyn(std::string_view name);

/// A placeholder of this dtype and shape; sizes may be `dyn("name")`. `term` labels its axes.
Expr input(DType dtype, const Shape& shape, std::string_view term = {});

/// A reusable plan: immutable, called from any number of threads at once.
class Compiled {
 public:
  /// Values of the outputs. ShapeError or TypeError naming the input that does not fit.
  std::vector<Tensor> operator()(const std::vector<Tensor>& inputs,
                                 const EvalOptions& options = {}) const;
  /// Writes the outputs into the given tensors.
  void into(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs,
            const EvalOptions& options = {}) const;

  struct State;
  explicit Compiled(std::shared_ptr<const State> state) : state_(std::move(state)) {}

 private:
  std::shared_ptr<const State> state_;
};

/// Compiles `outputs` over `inputs` (placeholders made by `input`, every one that the outputs use;
/// ValueError otherwise).
Compiled compile(const std::vector<Expr>& inputs, const std::vector<Expr>& outputs);

}  // namespace einkern
