// SPDX-License-Identifier: Apache-2.0
// Runs the steps of a plan in order, giving temporaries memory and taking it back.
#include "execute.h"

#include <memory>
#include <variant>

#include "../base/error.h"
#include "../plan/operands.h"
#include "../tensor/storage.h"
#include "frame.h"
#include "parallel.h"

namespace einkern::exec {
namespace {

void run_steps(const plan::Plan& plan, Frame& frame) {
  std::vector<std::shared_ptr<Storage>> storages(plan.values.size());
  const auto place = [&](const plan::Operand& operand) {
    const auto id = static_cast<std::size_t>(operand.value);
    if (operand.value < 0 || frame.values[id] != nullptr) return;
    const plan::Value& value = plan.values[id];
    if (value.role != plan::Value::Role::temporary) return;  // an empty tensor may lie nowhere
    const auto bytes =
        static_cast<std::size_t>(element_count(value.layout.shape)) * size_of(value.dtype);
    storages[id] = Storage::allocate(bytes);
    frame.values[id] = static_cast<std::byte*>(storages[id]->data());
  };
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    for (const plan::Operand& operand : plan::writes_of(plan.steps[i])) place(operand);
    std::visit([&](const auto& step) { run(step, frame); }, plan.steps[i]);
    for (const plan::ValueId dead : plan.dead[i]) {
      storages[static_cast<std::size_t>(dead)].reset();
      frame.values[static_cast<std::size_t>(dead)] = nullptr;
    }
  }
}

}  // namespace

const Target& current_target() { return kernel::kernels().target; }

void execute(const plan::Plan& plan, const Bindings& bindings, int threads) {
  EINKERN_CHECK(bindings.inputs.size() == plan.inputs.size());
  EINKERN_CHECK(bindings.outputs.size() == plan.outputs.size());
  EINKERN_CHECK(bindings.scalars.size() == static_cast<std::size_t>(plan.scalars));
  std::vector<map::Scalar> scalars;
  if (!plan.constants.empty()) {
    scalars.assign(bindings.scalars.begin(), bindings.scalars.end());
    scalars.insert(scalars.end(), plan.constants.begin(), plan.constants.end());
  }
  Frame frame{.values = std::vector<std::byte*>(plan.values.size(), nullptr),
              .scalars = scalars.empty() ? bindings.scalars : scalars,
              .kernels = kernel::kernels()};
  for (std::size_t i = 0; i < plan.inputs.size(); ++i) {
    // Steps only read inputs; values of all roles share one table.
    frame.values[static_cast<std::size_t>(plan.inputs[i])] =
        static_cast<std::byte*>(const_cast<void*>(bindings.inputs[i]));
  }
  for (std::size_t i = 0; i < plan.outputs.size(); ++i) {
    frame.values[static_cast<std::size_t>(plan.outputs[i])] =
        static_cast<std::byte*>(bindings.outputs[i]);
  }
  in_arena(threads, [&](std::int64_t) { run_steps(plan, frame); });
}

}  // namespace einkern::exec
