// SPDX-License-Identifier: Apache-2.0
// Tensors from and to files of every format, by the endings of their names.
#include "tensor_files.h"

#include <fmt/format.h>

#include "../engine/base/error.h"
#include "../engine/tensor/io/npy.h"
#include "../engine/tensor/io/npz.h"
#include "../engine/tensor/io/safetensors.h"

namespace einkern::tools {
namespace {

using Format = TensorName::Format;

constexpr const char* kInput = "/dev/stdin";

Format format_of(std::string_view path) {
  if (path.ends_with(".npz")) return Format::npz;
  if (path.ends_with(".safetensors")) return Format::safetensors;
  return Format::npy;
}

/// Users know standard input as `-`.
Tensor load_stream() {
  try {
    return load_npy(kInput);
  } catch (const IoError& error) {
    std::string message = error.what();
    const std::string shown = fmt::format("'{}'", kInput);
    if (const auto at = message.find(shown); at != message.npos) {
      message.replace(at, shown.size(), "standard input");
    }
    fail<IoError>(message);
  }
}

NamedTensors all_of(const TensorName& name) {
  return name.format == Format::npz ? load_npz(name.path) : load_safetensors(name.path).tensors;
}

}  // namespace

TensorName parse_tensor_name(std::string_view text) {
  for (const std::string_view ending : {".npz:", ".safetensors:"}) {
    const auto at = text.find(ending);
    if (at == text.npos) continue;
    const std::string_view path = text.substr(0, at + ending.size() - 1);
    return {std::string(path), std::string(text.substr(path.size() + 1)), format_of(path)};
  }
  return {std::string(text), "", format_of(text)};
}

Tensor load_tensor(const std::string& text) {
  const TensorName name = parse_tensor_name(text);
  if (name.is_stream()) return load_stream();
  if (name.format == Format::npy) return load_npy(name.path);
  if (name.format == Format::npz && !name.member.empty()) return load_npz(name.path, name.member);
  const NamedTensors tensors = all_of(name);
  std::string list;
  for (const auto& [key, tensor] : tensors) {
    if (!name.member.empty() ? key == name.member : tensors.size() == 1) return tensor;
    list += fmt::format("{}'{}'", list.empty() ? "" : ", ", key);
  }
  const char* const function = name.format == Format::npz ? "load_npz" : "load_safetensors";
  if (!name.member.empty()) {
    fail<ValueError>(fmt::format("{}: '{}': no tensor '{}'; the names are {}", function, name.path,
                                 name.member, list.empty() ? "none" : list));
  }
  fail<ValueError>(list.empty() ? fmt::format("{}: '{}': holds no tensor", function, name.path)
                                : fmt::format("{0}: '{1}': holds {2}; name one as in '{1}:NAME'",
                                              function, name.path, list));
}

std::vector<std::pair<std::string, Tensor>> load_all(const std::string& text) {
  const TensorName name = parse_tensor_name(text);
  if (name.is_stream() || name.format == Format::npy || !name.member.empty()) {
    return {{name.member, load_tensor(text)}};
  }
  std::vector<std::pair<std::string, Tensor>> result;
  for (const auto& [key, tensor] : all_of(name)) result.emplace_back(key, tensor);
  return result;
}

void save_tensors(const std::string& path, Format format,
                  const std::vector<std::pair<std::string, Tensor>>& tensors) {
  switch (format) {
    case Format::npy:
      return save_npy(path, tensors.at(0).second);
    case Format::npz: {
      NamedTensors named;
      for (const auto& [key, tensor] : tensors) named.add(key, tensor);
      return save_npz(path, named);
    }
    case Format::safetensors:
      break;
  }
  Safetensors content;
  for (const auto& [key, tensor] : tensors) content.tensors.add(key, tensor);
  save_safetensors(path, content);
}

}  // namespace einkern::tools
