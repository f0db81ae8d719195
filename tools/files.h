// SPDX-License-Identifier: Apache-2.0
// Tensors from the files of a command line and back: all outputs are written, or none is.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "../engine/tensor/tensor.h"
#include "options.h"
#include "tensor_files.h"

namespace einkern::tools {

/// A file that the command will write, and the option that named it.
struct OutputFile {
  std::string option, path;
};

/// Before any work: UsageError when an output is one of the inputs or another output, whatever its
/// name; IoError when it is a folder or lies in none.
void check_outputs(const Options& options, const std::vector<OutputFile>& outputs,
                   const std::vector<std::string>& inputs);

/// A file and what goes into it, under names.
struct WrittenFile {
  TensorName name;
  std::vector<std::pair<std::string, Tensor>> tensors;
};

/// Writes files: all of them, or none, and then what was there before is untouched. `-` is standard
/// output. An interrupt waits.
void write_outputs(const std::vector<WrittenFile>& outputs);
/// The same for .npy files.
void write_outputs(const std::vector<std::pair<std::string, Tensor>>& outputs);
/// Replaces a text file.
void write_text_output(const std::string& path, const std::string& text);

/// Prints the array as NumPy would, with a line end. IoError when standard output is closed or
/// full.
void print_tensor(const Tensor& tensor);
/// The same for any text.
void print(const std::string& text);

}  // namespace einkern::tools
