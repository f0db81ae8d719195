// SPDX-License-Identifier: Apache-2.0
// An equation whose labels are known, shared by all nodes made of one text.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "../base/labels.h"
#include "../spec/spec.h"
#include "expr.h"

namespace einkern::graph {

/// An equation resolved for operands of some ranks, the labels of its result, and what stands for
/// it in keys. Nodes share it: copying the labels, and writing the key anew, was a sixth of a small
/// call.
struct NamedEquation {
  ResolvedEquation equation;
  Labels labels;
  std::string key;

  explicit NamedEquation(ResolvedEquation resolved);
};

/// The equation for these operands. Parsed when its text is met for the first time with operands of
/// these ranks, later found among the last 512: parsing takes longer than an 8 x 8 product.
std::shared_ptr<const NamedEquation> named_equation(std::string_view text,
                                                    std::span<const Expr> operands);

}  // namespace einkern::graph
