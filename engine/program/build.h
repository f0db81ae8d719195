// SPDX-License-Identifier: Apache-2.0
// A resolved program and values of its inputs to expressions.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "module.h"

namespace einkern::program {

/// What building a program makes.
struct Built {
  std::vector<std::pair<std::string, Expr>> outputs;  // named as they are returned
  std::vector<std::pair<std::string, Value>> steps;   // of the main text, in order
};

/// The name of every returned value: the variable's, or `out0`, `out1` by place.
std::vector<std::string> output_names(const Module& main);

/// Builds the expressions that the C++ words build. With `outline`, numbers that are known only
/// when a plan is called are allowed where a tensor is needed: shapes are right, values are not.
/// Errors of words carry file, line and carets of the innermost call, and the calls above it.
Built build(const Modules& modules, const std::map<std::string, Value>& inputs, bool outline);

}  // namespace einkern::program
