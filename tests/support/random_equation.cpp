// SPDX-License-Identifier: Apache-2.0
// Random einsum equations over random strided memory, counting what they have covered.
#include "random_equation.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>

namespace einkern::test {
namespace {

constexpr int kMostEllipsisAxes = 2;

/// One axis of an operand or of the output: a letter, or an axis of the ellipsis counted from the
/// right.
struct Slot {
  char letter = 0;     // 0: of the ellipsis
  int from_right = 0;  // of the ellipsis only
  std::int64_t size = 1;
};

struct Sketch {
  std::vector<Slot> slots;
  std::string text;
};

std::vector<std::int64_t> shape_of(const Sketch& sketch) {
  std::vector<std::int64_t> shape;
  for (const Slot& slot : sketch.slots) shape.push_back(slot.size);
  return shape;
}

void store(RandomTensor& tensor, std::size_t at, int value) {
  dispatch(tensor.dtype, [&]<class T>(std::type_identity<T>) {
    reinterpret_cast<T*>(tensor.memory.data())[at] = static_cast<T>(value);
  });
}

}  // namespace

RandomEquations::RandomEquations(std::uint64_t seed, RandomEquationOptions options)
    : random_(seed), options_(std::move(options)) {
  for (const char* feature :
       {"one_operand", "two_operands", "three_or_more_operands", "scalar_operand", "scalar_output",
        "implicit_output", "explicit_output", "zero_size", "empty_output", "broadcast_of_one",
        "repeated_in_operand", "repeated_in_output", "summed_alone", "contracted", "batch",
        "shared_by_three", "transposed_output"}) {
    counts_[feature] = 0;
  }
  if (options_.ellipses) {
    for (const char* feature : {"ellipsis", "empty_ellipsis", "ellipsis_in_output",
                                "ellipsis_summed", "ellipsis_broadcast"}) {
      counts_[feature] = 0;
    }
  }
  if (options_.strided) {
    for (const char* feature : {"permuted", "padded", "negative_stride", "zero_stride"}) {
      counts_[feature] = 0;
    }
  }
  for (const DType dtype : options_.dtypes) counts_["dtype_" + std::string(name_of(dtype))] = 0;
}

bool RandomEquations::chance(double probability) {
  return std::uniform_real_distribution<double>(0, 1)(random_) < probability;
}

std::int64_t RandomEquations::integer(std::int64_t low, std::int64_t high) {
  return std::uniform_int_distribution<std::int64_t>(low, high)(random_);
}

std::int64_t RandomEquations::random_size() {
  if (chance(0.02)) return 0;
  if (chance(0.1)) return 1;
  return chance(0.1) ? integer(6, 20) : integer(2, 5);
}

/// Families keep whole equations of one kind frequent: 0 any dtype, 1 integers, 2 one float.
DType RandomEquations::random_dtype(int family) {
  std::vector<DType> choices = options_.dtypes;
  if (family == 1) std::erase_if(choices, [](DType d) { return !is_integer(d); });
  if (choices.empty()) choices = options_.dtypes;
  return choices[static_cast<std::size_t>(
      integer(0, static_cast<std::int64_t>(choices.size()) - 1))];
}

RandomTensor RandomEquations::random_tensor(const std::vector<std::int64_t>& shape, DType dtype,
                                            bool strided, bool may_overlap) {
  RandomTensor tensor;
  tensor.dtype = dtype;
  tensor.shape = shape;
  tensor.strides.assign(shape.size(), 0);
  std::vector<std::size_t> order(shape.size());  // innermost first
  std::iota(order.rbegin(), order.rend(), std::size_t{0});
  const bool permuted = strided && chance(0.4);
  if (permuted) {
    std::shuffle(order.begin(), order.end(), random_);
    if (!std::is_sorted(order.rbegin(), order.rend())) count("permuted");
  }
  std::int64_t reach = 1;
  if (strided && chance(0.15)) {
    reach = integer(2, 3);
    count("padded");
  }
  for (const std::size_t axis : order) {
    const std::int64_t size = std::max<std::int64_t>(shape[axis], 1);
    if (strided && may_overlap && chance(0.06)) {
      if (size > 1) count("zero_stride");
      continue;
    }
    tensor.strides[axis] = reach;
    if (strided && chance(0.15)) {
      tensor.strides[axis] = -reach;
      tensor.offset += (size - 1) * reach;
      if (size > 1) count("negative_stride");
    }
    reach *= size;
    if (strided && chance(0.15)) {
      reach += integer(1, 3);
      count("padded");
    }
  }
  tensor.memory.resize(static_cast<std::size_t>(reach + tensor.offset) * size_of(dtype));
  count("dtype_" + std::string(name_of(dtype)));
  return tensor;
}

void RandomEquations::fill(RandomTensor& tensor) {
  for (std::size_t i = 0; i < tensor.memory.size() / size_of(tensor.dtype); ++i) {
    store(tensor, i, static_cast<int>(integer(-3, 3)));
  }
}

RandomEquation RandomEquations::next() {
  // Labels and their sizes.
  std::string alphabet = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  std::shuffle(alphabet.begin(), alphabet.end(), random_);
  const std::string letters =
      alphabet.substr(0, static_cast<std::size_t>(integer(1, options_.labels)));
  const bool ellipses = options_.ellipses && chance(0.3);
  std::vector<std::int64_t> sizes;  // of the letters, then of the ellipsis axes from the right
  for (std::size_t i = 0; i < letters.size() + kMostEllipsisAxes; ++i)
    sizes.push_back(random_size());
  const auto work = [&] {
    double product = 1;
    for (std::size_t i = 0; i < letters.size() + (ellipses ? kMostEllipsisAxes : 0); ++i) {
      product *= static_cast<double>(std::max<std::int64_t>(sizes[i], 1));
    }
    return product;
  };
  while (work() > options_.work) --*std::max_element(sizes.begin(), sizes.end());

  // Operands.
  const std::int64_t operands = integer(1, options_.operands);
  std::vector<Sketch> inputs(static_cast<std::size_t>(operands));
  int ellipsis_rank = 0;
  bool any_ellipsis = false;
  for (Sketch& input : inputs) {
    std::map<char, std::int64_t> sizes_here;  // repeated labels of one operand agree, 1 included
    const std::int64_t rank = chance(0.08) ? 0 : integer(1, 4);
    for (std::int64_t i = 0; i < rank; ++i) {
      const auto pick =
          static_cast<std::size_t>(integer(0, static_cast<std::int64_t>(letters.size()) - 1));
      const char letter = letters[pick];
      if (sizes_here.contains(letter) && chance(0.5)) continue;
      if (!sizes_here.contains(letter)) sizes_here[letter] = chance(0.1) ? 1 : sizes[pick];
      input.slots.push_back({letter, 0, sizes_here[letter]});
      input.text += letter;
    }
    if (!ellipses || chance(0.3)) continue;
    any_ellipsis = true;
    const int axes = static_cast<int>(integer(0, kMostEllipsisAxes));
    ellipsis_rank = std::max(ellipsis_rank, axes);
    count("ellipsis");
    if (axes == 0) count("empty_ellipsis");
    const std::int64_t at = integer(0, static_cast<std::int64_t>(input.slots.size()));
    std::vector<Slot> covered;
    for (int from_right = axes - 1; from_right >= 0; --from_right) {
      const std::int64_t size = sizes[letters.size() + static_cast<std::size_t>(from_right)];
      const bool one = chance(0.2);
      if (one && size > 1) count("ellipsis_broadcast");
      covered.push_back({0, from_right, one ? 1 : size});
    }
    input.slots.insert(input.slots.begin() + at, covered.begin(), covered.end());
    input.text.insert(static_cast<std::size_t>(at), "...");
  }

  // The size of each label over all operands: what is not 1 wins.
  std::map<std::pair<char, int>, std::int64_t> bound;
  std::map<char, int> occurrences;
  for (const Sketch& input : inputs) {
    for (const Slot& slot : input.slots) {
      auto [entry, added] = bound.try_emplace({slot.letter, slot.from_right}, slot.size);
      if (!added && entry->second == 1) entry->second = slot.size;
      if (slot.letter != 0) ++occurrences[slot.letter];
    }
  }

  // Output.
  Sketch output;
  const auto append_ellipsis = [&] {
    for (int from_right = ellipsis_rank - 1; from_right >= 0; --from_right) {
      output.slots.push_back({0, from_right, 1});
    }
  };
  const bool implicit = chance(0.25);
  if (implicit) {
    append_ellipsis();
    for (const auto& [letter, times] : occurrences) {
      if (times == 1) output.slots.push_back({letter, 0, 1});
    }
    count("implicit_output");
  } else {
    std::string picked;
    for (const auto& [letter, times] : occurrences) {
      if (chance(0.5)) picked += letter;
    }
    if (!picked.empty() && chance(0.12)) picked += picked.front();
    std::shuffle(picked.begin(), picked.end(), random_);
    const bool shown = any_ellipsis ? chance(0.7) : options_.ellipses && chance(0.03);
    const std::int64_t at = shown ? integer(0, static_cast<std::int64_t>(picked.size())) : -1;
    for (std::int64_t i = 0; i <= static_cast<std::int64_t>(picked.size()); ++i) {
      if (i == at) {
        append_ellipsis();
        output.text += "...";
        count("ellipsis_in_output");
      }
      if (i == static_cast<std::int64_t>(picked.size())) break;
      output.slots.push_back({picked[static_cast<std::size_t>(i)], 0, 1});
      output.text += picked[static_cast<std::size_t>(i)];
    }
    if (!shown && ellipsis_rank > 0) count("ellipsis_summed");
    count("explicit_output");
  }
  for (Slot& slot : output.slots) slot.size = bound.at({slot.letter, slot.from_right});

  // The Spec, with ids in random order.
  RandomEquation equation;
  std::vector<LabelId> ids(bound.size());
  std::iota(ids.begin(), ids.end(), 0);
  std::shuffle(ids.begin(), ids.end(), random_);
  std::map<std::pair<char, int>, LabelId> id_of;
  equation.spec.sizes.resize(bound.size());
  equation.spec.names.resize(bound.size());
  for (const auto& [label, size] : bound) {
    const LabelId id = ids[id_of.size()];
    id_of[label] = id;
    equation.spec.sizes[static_cast<std::size_t>(id)] = size;
    if (label.first != 0) {
      equation.spec.names[static_cast<std::size_t>(id)] = std::string(1, label.first);
    }
  }
  const auto ids_of = [&](const Sketch& sketch) {
    std::vector<LabelId> labels;
    for (const Slot& slot : sketch.slots) {
      labels.push_back(id_of.at({slot.letter, slot.from_right}));
    }
    return labels;
  };
  const int family = static_cast<int>(integer(0, 2));
  const DType one_dtype = random_dtype(family);
  DType promoted = one_dtype;
  for (std::size_t p = 0; p < inputs.size(); ++p) {
    const DType dtype = family == 2 ? one_dtype : random_dtype(family);
    promoted = p == 0 ? promote(dtype, dtype) : promote(promoted, dtype);
    if (!is_float(promoted)) promoted = i64;
    equation.text += (p > 0 ? "," : "") + inputs[p].text;
    equation.spec.inputs.push_back(ids_of(inputs[p]));
    equation.operands.push_back(random_tensor(shape_of(inputs[p]), dtype, options_.strided, true));
    fill(equation.operands.back());
    equation.spec.shapes.emplace_back(equation.operands.back().shape);
  }
  if (!implicit) equation.text += "->" + output.text;
  equation.spec.output = ids_of(output);
  equation.out = random_tensor(shape_of(output), promoted, options_.strided_out, false);
  for (std::size_t i = 0; i < equation.out.memory.size() / size_of(promoted); ++i) {
    store(equation.out, i, 77);
  }
  count_labels(equation);
  return equation;
}

void RandomEquations::count_labels(const RandomEquation& equation) {
  const Spec& spec = equation.spec;
  count(spec.inputs.size() == 1   ? "one_operand"
        : spec.inputs.size() == 2 ? "two_operands"
                                  : "three_or_more_operands");
  if (spec.output.empty()) count("scalar_output");
  const auto occurs = [](const std::vector<LabelId>& labels, LabelId label) {
    return std::count(labels.begin(), labels.end(), label);
  };
  for (std::size_t p = 0; p < spec.inputs.size(); ++p) {
    if (spec.inputs[p].empty()) count("scalar_operand");
  }
  bool zero_in_output = false;
  for (std::size_t l = 0; l < spec.sizes.size(); ++l) {
    const auto label = static_cast<LabelId>(l);
    std::int64_t holders = 0;
    for (std::size_t p = 0; p < spec.inputs.size(); ++p) {
      const auto times = occurs(spec.inputs[p], label);
      if (times > 0) ++holders;
      if (times > 1 && spec.sizes[l] > 1) count("repeated_in_operand");
      for (std::size_t axis = 0; axis < spec.inputs[p].size(); ++axis) {
        const bool one = spec.inputs[p][axis] == label && spec.shapes[p][axis] == 1;
        if (one && spec.sizes[l] != 1) count("broadcast_of_one");
      }
    }
    const auto shown = occurs(spec.output, label);
    if (spec.sizes[l] == 0) count("zero_size");
    if (spec.sizes[l] == 0 && shown > 0) zero_in_output = true;
    if (shown > 1 && spec.sizes[l] > 1) count("repeated_in_output");
    if (holders == 1 && shown == 0) count("summed_alone");
    if (holders == 2) count(shown > 0 ? "batch" : "contracted");
    if (holders > 2) count("shared_by_three");
  }
  if (zero_in_output) count("empty_output");
  std::vector<LabelId> first_seen;
  for (const LabelId label : spec.inputs[0]) {
    if (occurs(spec.output, label) == 1 && occurs(spec.inputs[0], label) == 1) {
      first_seen.push_back(label);
    }
  }
  const auto place = [&](LabelId label) {
    return std::find(spec.output.begin(), spec.output.end(), label);
  };
  if (!std::is_sorted(first_seen.begin(), first_seen.end(),
                      [&](LabelId x, LabelId y) { return place(x) < place(y); })) {
    count("transposed_output");
  }
}

std::string RandomEquations::missing() const {
  std::string text;
  for (const auto& [feature, times] : counts_) {
    if (times == 0) text += (text.empty() ? "" : " ") + feature;
  }
  return text;
}

std::string RandomEquations::coverage() const {
  std::string text;
  for (const auto& [feature, times] : counts_) text += feature + " " + std::to_string(times) + "\n";
  return text;
}

}  // namespace einkern::test
