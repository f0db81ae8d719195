// SPDX-License-Identifier: Apache-2.0
// Checks and writes the output files of a command line.
#include "files.h"

#include <unistd.h>

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <iostream>

#include "../engine/base/error.h"
#include "../engine/tensor/io/npy.h"
#include "interrupt.h"

namespace einkern::tools {
namespace fs = std::filesystem;
namespace {

/// Do both names lead to one file? The files need not exist.
bool same_file(const std::string& a, const std::string& b) {
  std::error_code error;
  if (fs::equivalent(a, b, error)) return fs::is_regular_file(a, error);
  const auto place = [&](const std::string& path) {
    return fs::weakly_canonical(fs::absolute(path, error), error);
  };
  return !fs::exists(a, error) && place(a) == place(b);
}

}  // namespace

void check_outputs(const Options& options, const std::vector<OutputFile>& outputs,
                   const std::vector<std::string>& inputs) {
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const auto& [option, path] = outputs[i];
    if (path == "-") {
      for (std::size_t j = 0; j < i; ++j) {
        if (outputs[j].path == "-") options.refuse("two outputs go to standard output");
      }
      continue;
    }
    for (const std::string& input : inputs) {
      if (same_file(path, input)) {
        options.refuse(fmt::format("{} '{}' is the input '{}'", option, path, input));
      }
    }
    for (std::size_t j = 0; j < i; ++j) {
      if (same_file(path, outputs[j].path)) {
        options.refuse(
            fmt::format("{} and {} both name '{}'", outputs[j].option, option, outputs[j].path));
      }
    }
    const fs::path folder = fs::path(path).parent_path();
    std::error_code error;
    const bool no_folder = !folder.empty() && !fs::is_directory(folder, error);
    if (no_folder || fs::is_directory(path, error)) {
      fail<IoError>(fmt::format("{}: {} '{}' {}", options.command(), option, path,
                                no_folder ? "lies in no folder" : "is a folder"));
    }
  }
}

namespace {

/// A written file that waits beside the one it will replace.
class StagedFile {
 public:
  /// `write` gets the name to write to.
  template <class Write>
  StagedFile(const std::string& path, const Write& write)
      : target_(fs::exists(path) ? fs::canonical(path) : fs::path(path)),
        waiting_(fmt::format("{}.{}.new", target_.string(), getpid())) {
    try {
      write(waiting_.string());
      if (fs::exists(target_)) fs::permissions(waiting_, fs::status(target_).permissions());
    } catch (const IoError& error) {
      // The user knows the file by its own name.
      std::string message = error.what();
      const std::string name = waiting_.string();
      if (const std::size_t at = message.find(name); at != std::string::npos) {
        message.replace(at, name.size(), path);
      }
      fail<IoError>(message);
    }
  }
  StagedFile(StagedFile&& other) noexcept
      : target_(std::move(other.target_)), waiting_(std::exchange(other.waiting_, {})) {}
  StagedFile& operator=(StagedFile&&) = delete;
  ~StagedFile() {
    std::error_code ignored;
    if (!waiting_.empty()) fs::remove(waiting_, ignored);
  }
  void replace() {
    fs::rename(waiting_, target_);
    waiting_.clear();
  }

 private:
  fs::path target_, waiting_;
};

/// Is it a regular file, or will it be one?
bool is_staged(const std::string& path) { return !fs::exists(path) || fs::is_regular_file(path); }

void write_stream(const Tensor& tensor) {
  const std::vector<std::byte> bytes = format_npy(tensor);
  std::cout.write(reinterpret_cast<const char*>(bytes.data()),
                  static_cast<std::streamsize>(bytes.size()));
  print("");
}

}  // namespace

void write_outputs(const std::vector<WrittenFile>& outputs) {
  const Uninterrupted guard;
  // Everything that can fail comes before the first file is replaced; devices, pipes and standard
  // output, which cannot be taken back, come between.
  std::vector<StagedFile> staged;
  for (const auto& [name, tensors] : outputs) {
    if (name.is_stream() || !is_staged(name.path)) continue;
    staged.emplace_back(name.path,
                        [&, format = name.format, &tensors = tensors](const std::string& path) {
                          save_tensors(path, format, tensors);
                        });
  }
  for (const auto& [name, tensors] : outputs) {
    if (name.is_stream()) {
      write_stream(tensors.at(0).second);
    } else if (!is_staged(name.path)) {
      save_tensors(name.path, name.format, tensors);
    }
  }
  for (StagedFile& file : staged) file.replace();
}

void write_outputs(const std::vector<std::pair<std::string, Tensor>>& outputs) {
  std::vector<WrittenFile> files;
  for (const auto& [path, tensor] : outputs) {
    files.push_back({{path, "", TensorName::Format::npy}, {{"", tensor}}});
  }
  write_outputs(files);
}

void write_text_output(const std::string& path, const std::string& text) {
  const Uninterrupted guard;
  const auto write = [&](const std::string& to) {
    std::ofstream file(to, std::ios::binary);
    file << text << std::flush;
    if (!file) fail<IoError>(fmt::format("cannot write '{}'", to));
  };
  if (!is_staged(path)) return write(path);
  StagedFile(path, write).replace();
}

void print_tensor(const Tensor& tensor) { print(to_string(tensor) + "\n"); }

void print(const std::string& text) {
  std::cout << text << std::flush;
  if (!std::cout) fail<IoError>("cannot write to standard output");
}

}  // namespace einkern::tools
