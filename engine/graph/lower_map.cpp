// SPDX-License-Identifier: Apache-2.0
// Emits map programs from elementwise nodes, without recursion.
#include "lower_map.h"

#include <utility>

#include "../base/error.h"
#include "promote.h"
#include "views.h"

namespace einkern::graph {
namespace {

std::vector<ElementType> element_types(const Node& node) {
  std::vector<ElementType> types;
  for (const NodePtr& input : node.inputs) types.push_back({input->type.dtype, input->type.weak});
  return types;
}

}  // namespace

MapEmitter::Environment MapEmitter::own_axes(const Node& node) {
  Environment environment;
  for (std::size_t d = 0; d < node.type.shape.size(); ++d) {
    environment.push_back({static_cast<std::int32_t>(d)});
  }
  return environment;
}

std::int32_t MapEmitter::convert(std::int32_t reg, DType want) {
  if (program_.code[static_cast<std::size_t>(reg)].dtype == want) return reg;
  return program_.emit({map::Op::cast, want, reg});
}

std::int32_t MapEmitter::integer(std::int64_t value) {
  const std::int32_t slot = builder_.add_constant(map::Scalar::of(value));
  return program_.emit({map::Op::scalar, DType::i64, -1, -1, -1, slot});
}

std::int32_t MapEmitter::load(const Node& node, const Environment& environment, DType want) {
  const plan::Operand& place = places_.at(&node);
  const auto position = static_cast<std::int32_t>(inputs_.size()) + reserved_;
  const auto [found, fresh] = loaded_.try_emplace({&node, environment}, position);
  if (fresh) {
    plan::Operand input{
        place.value, place.dtype, {space_, Dims(space_.size(), 0), place.layout.offset}};
    for (std::size_t d = 0; d < place.layout.rank(); ++d) {
      if (place.layout.shape[d] == 1) continue;
      std::int64_t stride = place.layout.strides[d];
      for (std::size_t i = environment[d].size(); i-- > 0;) {
        const auto axis = static_cast<std::size_t>(environment[d][i]);
        input.layout.strides[axis] += stride;
        stride *= space_[axis];
      }
    }
    inputs_.push_back(std::move(input));
  }
  const std::int32_t reg = program_.emit({map::Op::load, place.dtype, -1, -1, -1, found->second});
  return convert(reg, want);
}

std::int32_t MapEmitter::source(const Node& node, const Environment& environment, DType want) {
  if (std::holds_alternative<Constant>(node.op)) {
    return program_.emit({map::Op::scalar, want, -1, -1, -1, scalar_of_.at(&node)});
  }
  if (std::holds_alternative<Dot>(node.op)) {
    return convert(program_.emit({map::Op::load, node.type.dtype, -1, -1, -1, 0}), want);
  }
  EINKERN_CHECK(std::holds_alternative<Index>(node.op));
  const std::vector<std::int32_t>& axes = environment.front();
  std::int32_t position = -1;
  for (const std::int32_t axis : axes) {
    if (position >= 0) {
      const std::int32_t size = integer(space_[static_cast<std::size_t>(axis)]);
      position = program_.emit({map::Op::mul, DType::i64, position, size});
    }
    const std::int32_t own = program_.emit({map::Op::index, DType::i64, -1, -1, -1, axis});
    position = position < 0 ? own : program_.emit({map::Op::add, DType::i64, position, own});
  }
  return convert(axes.empty() ? integer(0) : position, want);
}

MapEmitter::Environment MapEmitter::input_environment(const Node& node, const Alignment& alignment,
                                                      const Environment& environment) const {
  Environment result;
  for (const std::int32_t axis : alignment.axes) {
    result.push_back(environment[static_cast<std::size_t>(axis)]);
  }
  const std::size_t rank = node.type.shape.size();
  for (const std::int32_t axis : alignment.open) {
    if (axis < 0) {
      const std::int32_t open = ~axis;  // it stays open as this open axis of the node
      result.push_back(environment[rank + static_cast<std::size_t>(open)]);
    } else if (node.type.shape[static_cast<std::size_t>(axis)] == 1) {
      result.push_back({});  // whatever it is stretched to, its position is 0
    } else {
      result.push_back(environment[static_cast<std::size_t>(axis)]);
    }
  }
  return result;
}

std::int32_t MapEmitter::emit(const Node* root, const Environment& environment, DType want) {
  std::vector<Task> stack;
  std::int32_t last = -1;
  const auto enter = [&](const Node* node, Environment env, DType as) {
    while (!places_.contains(node) && is_view(*node)) {  // a view of scores that have no memory
      env = through_view(*node, env, space_);
      node = node->inputs[0].get();
    }
    if (const auto found = done_.find({node, as, env}); found != done_.end()) {
      last = found->second;
      return true;
    }
    const auto* op = std::get_if<Elementwise>(&node->op);
    if (places_.contains(node)) {
      last = load(*node, env, as);
    } else if (op == nullptr) {
      last = source(*node, env, as);
    } else {
      // A weak float term runs in the float that asks for it.
      const bool adapts = node->type.weak && is_float(node->type.dtype) && is_float(as);
      const DType compute = adapts ? as : node->type.dtype;
      stack.push_back({node, std::move(env), as, {}, compute});
      return false;
    }
    done_.emplace(Key{node, as, std::move(env)}, last);
    return true;
  };
  if (enter(root, environment, want)) return last;
  while (!stack.empty()) {
    Task& task = stack.back();
    const auto& op = std::get<Elementwise>(task.node->op);
    const std::size_t next = task.inputs.size();
    if (next < task.node->inputs.size()) {
      const DType as = operand_dtype(op.op, task.compute, element_types(*task.node), next);
      if (enter(task.node->inputs[next].get(),
                input_environment(*task.node, op.alignment[next], task.environment), as)) {
        task.inputs.push_back(last);
      }
      continue;
    }
    const auto in = [&](std::size_t i) { return i < task.inputs.size() ? task.inputs[i] : -1; };
    if (op.op == map::Op::cast) {
      last = convert(in(0), task.compute);
    } else {
      last = program_.emit({op.op, task.compute, in(0), in(1), in(2)});
    }
    last = convert(last, task.want);
    done_.emplace(Key{task.node, task.want, std::move(task.environment)}, last);
    stack.pop_back();
    if (!stack.empty()) stack.back().inputs.push_back(last);
  }
  return last;
}

map::Program MapEmitter::take_program(std::int32_t result) {
  // Instructions behind the result, found equal to earlier ones, serve nobody.
  program_.code.resize(static_cast<std::size_t>(result) + 1, program_.code.front());
  loaded_.clear();
  done_.clear();
  return std::exchange(program_, {});
}

}  // namespace einkern::graph
