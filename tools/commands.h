// SPDX-License-Identifier: Apache-2.0
// The commands of `einkern`: arguments in, text or files out, exceptions for whatever is wrong.
#pragma once

#include <string>
#include <vector>

namespace einkern::tools {

/// A command and what `einkern --help` says of it.
struct Command {
  const char* name;
  const char* summary;
  void (*run)(const std::vector<std::string>& arguments);
};

void eval_command(const std::vector<std::string>& arguments);
void explain_command(const std::vector<std::string>& arguments);
void attention_command(const std::vector<std::string>& arguments);
void show_command(const std::vector<std::string>& arguments);
void bench_command(const std::vector<std::string>& arguments);

inline constexpr Command kCommands[] = {
    {"eval", "an einsum over .npy files", eval_command},
    {"explain", "the plan of an einsum: order, steps, costs", explain_command},
    {"attention", "scaled dot-product attention over .npy files", attention_command},
    {"show", "what an .npy file holds", show_command},
    {"bench", "the speed of an einsum against the limits of this machine", bench_command},
};

}  // namespace einkern::tools
