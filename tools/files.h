// SPDX-License-Identifier: Apache-2.0
// Tensors from the files of a command line and back: all outputs are written, or none is.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "../engine/tensor/tensor.h"
#include "options.h"

namespace einkern::tools {

/// A file that the command will write, and the option that named it.
struct OutputFile {
  std::string option, path;
};

/// Before any work: UsageError when an output is one of the inputs or another output, whatever its
/// name; IoError when it is a folder or lies in none.
void check_outputs(const Options& options, const std::vector<OutputFile>& outputs,
                   const std::vector<std::string>& inputs);

/// Writes .npy files: all of them, or none, and then what was there before is untouched. An
/// interrupt waits.
void write_outputs(const std::vector<std::pair<std::string, Tensor>>& outputs);

/// Prints the array as NumPy would, with a line end. IoError when standard output is closed or
/// full.
void print_tensor(const Tensor& tensor);
/// The same for any text.
void print(const std::string& text);

}  // namespace einkern::tools
