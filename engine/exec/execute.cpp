// SPDX-License-Identifier: Apache-2.0
// Runs the steps of a plan in order, giving temporaries memory and taking it back.
#include "execute.h"

#include <span>
#include <variant>

#include "../base/error.h"
#include "../plan/operands.h"
#include "frame.h"
#include "parallel.h"
#include "scratch.h"

namespace einkern::exec {
namespace {

/// The temporaries of a running plan.
class Temporaries {
 public:
  explicit Temporaries(const plan::Plan& plan, Frame& frame) : plan_(plan), frame_(frame) {}
  Temporaries(const Temporaries&) = delete;
  Temporaries& operator=(const Temporaries&) = delete;
  /// Gives back what a failed step left.
  ~Temporaries() {
    for (std::size_t id = 0; id < plan_.values.size(); ++id) {
      if (plan_.values[id].role == plan::Value::Role::temporary) {
        release(static_cast<plan::ValueId>(id));
      }
    }
  }

  /// Gives the value memory if it is a temporary without any.
  void place(plan::ValueId value) {
    const auto id = static_cast<std::size_t>(value);
    if (value < 0 || frame_.values[id] != nullptr) return;
    const plan::Value& of_plan = plan_.values[id];
    if (of_plan.role != plan::Value::Role::temporary) return;  // an empty tensor may lie nowhere
    frame_.values[id] = take_scratch(bytes_of(of_plan));
  }

  /// An empty one may never have been written.
  void release(plan::ValueId value) noexcept {
    std::byte*& memory = frame_.values[static_cast<std::size_t>(value)];
    if (memory != nullptr)
      give_scratch(memory, bytes_of(plan_.values[static_cast<std::size_t>(value)]));
    memory = nullptr;
  }

 private:
  static std::size_t bytes_of(const plan::Value& value) {
    return static_cast<std::size_t>(element_count(value.layout.shape)) * size_of(value.dtype);
  }

  const plan::Plan& plan_;
  Frame& frame_;
};

void run_steps(const plan::Plan& plan, Frame& frame) {
  Temporaries temporaries(plan, frame);
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    plan::each_written(plan.steps[i],
                       [&](const plan::Operand& operand) { temporaries.place(operand.value); });
    std::visit([&](const auto& step) { run(step, frame); }, plan.steps[i]);
    for (const plan::ValueId dead : plan.dead[i]) temporaries.release(dead);
  }
}

}  // namespace

const Target& current_target() { return kernel::kernels().target; }

void execute(const plan::Plan& plan, const Bindings& bindings, int threads) {
  EINKERN_CHECK(bindings.inputs.size() == plan.inputs.size());
  EINKERN_CHECK(bindings.outputs.size() == plan.outputs.size());
  EINKERN_CHECK(bindings.scalars.size() == static_cast<std::size_t>(plan.scalars));
  SmallVector<map::Scalar, 16> scalars;
  if (!plan.constants.empty()) {
    scalars.assign(bindings.scalars.begin(), bindings.scalars.end());
    scalars.insert(scalars.end(), plan.constants.begin(), plan.constants.end());
  }
  Frame frame{.values = SmallVector<std::byte*, 16>(plan.values.size(), nullptr),
              .scalars = scalars.empty()
                             ? bindings.scalars
                             : std::span<const map::Scalar>(scalars.data(), scalars.size()),
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
