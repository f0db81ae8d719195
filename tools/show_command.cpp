// SPDX-License-Identifier: Apache-2.0
// `einkern show`: dtype, shape, order and statistics of the tensors of a file, then their elements.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "commands.h"
#include "files.h"
#include "options.h"
#include "tensor_files.h"

namespace einkern::tools {
namespace {

/// Of the elements that are numbers; `mean` of the finite ones.
struct Statistics {
  std::int64_t nans = 0, infinities = 0, finite = 0;
  double smallest = 0, largest = 0, mean = 0;
};

Statistics statistics_of(const Tensor& tensor) {
  Statistics result;
  long double sum = 0;
  bool first = true;
  const auto add = [&](double value) {
    if (std::isnan(value)) {
      ++result.nans;
      return;
    }
    result.smallest = first ? value : std::min(result.smallest, value);
    result.largest = first ? value : std::max(result.largest, value);
    first = false;
    if (std::isinf(value)) {
      ++result.infinities;
    } else {
      ++result.finite;
      sum += value;
    }
  };
  const Tensor packed = tensor.is_contiguous() ? tensor : tensor.copy();
  dispatch(tensor.dtype(), [&]<class T>(std::type_identity<T>) {
    const T* const elements = packed.data<const T>();
    for (std::int64_t i = 0; i < packed.size(); ++i) add(static_cast<double>(widen(elements[i])));
  });
  if (result.finite > 0) {
    result.mean = static_cast<double>(sum / static_cast<long double>(result.finite));
  }
  return result;
}

std::string order_of(const Tensor& tensor) {
  if (tensor.rank() < 2 || tensor.size() == 0) return "C and Fortran order";
  Dims order;
  for (std::size_t axis = tensor.rank(); axis-- > 0;)
    order.push_back(static_cast<std::int64_t>(axis));
  const bool fortran = is_contiguous(permuted(tensor.layout(), order));
  if (tensor.is_contiguous()) return fortran ? "C and Fortran order" : "C order";
  return fortran ? "Fortran order" : fmt::format("strides {}", to_string(tensor.strides()));
}

std::string describe(const Tensor& tensor) {
  std::string text = fmt::format("{} {}, {}\n", name_of(tensor.dtype()),
                                 einkern::to_string(tensor.shape()), order_of(tensor));
  const Statistics of = statistics_of(tensor);
  if (of.finite + of.infinities == 0) {
    text += of.nans == 0 ? "no elements" : "no numbers";
  } else {
    text += fmt::format("min {:.8g}, max {:.8g}, mean {:.8g}", of.smallest, of.largest, of.mean);
    if (of.infinities > 0) text += " of the finite ones";
  }
  if (is_float(tensor.dtype())) {
    text += fmt::format("; {} NaN, {} infinite", of.nans, of.infinities);
  }
  return text + "\n";
}

}  // namespace

void show_command(const std::vector<std::string>& arguments) {
  Options options({
      .command = "show",
      .usage = "FILE",
      .summary =
          "Prints dtype, shape, order and statistics of every tensor of a file, then its elements.",
      .examples = {"einkern show O.npy", "einkern show w.safetensors",
                   "einkern show all.npz:weights"},
  });
  const auto positional = options.parse(arguments);
  if (!positional) return;
  if (positional->size() != 1) {
    options.refuse(fmt::format("one file is needed, not {}", positional->size()));
  }
  for (const auto& [name, tensor] : load_all(positional->front())) {
    if (!name.empty()) print(fmt::format("{}: ", name));
    print(describe(tensor));
    print_tensor(tensor);
  }
}

}  // namespace einkern::tools
