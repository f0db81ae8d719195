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
void run_command(const std::vector<std::string>& arguments);
void check_command(const std::vector<std::string>& arguments);
void fmt_command(const std::vector<std::string>& arguments);
void words_command(const std::vector<std::string>& arguments);
void compare_command(const std::vector<std::string>& arguments);
void random_command(const std::vector<std::string>& arguments);
void show_command(const std::vector<std::string>& arguments);
void bench_command(const std::vector<std::string>& arguments);

inline constexpr Command kCommands[] = {
    {"eval", "an einsum over .npy files", eval_command},
    {"explain", "the plan of an einsum: order, steps, costs", explain_command},
    {"attention", "scaled dot-product attention over .npy files", attention_command},
    {"run", "a tensor program (.ein) over files", run_command},
    {"check", "names, shapes and labels of a program, without data", check_command},
    {"fmt", "the canonical form of a program", fmt_command},
    {"words", "the words of programs, or a grammar of them for editors", words_command},
    {"show", "what a file of tensors holds", show_command},
    {"compare", "how far two tensors differ", compare_command},
    {"random", "a tensor of random numbers", random_command},
    {"bench", "the speed of an einsum against the limits of this machine", bench_command},
};

}  // namespace einkern::tools
