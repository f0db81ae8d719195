// SPDX-License-Identifier: Apache-2.0
// Programs of arbitrary text: what is accepted must hold together.
#include <map>

#include "../../einkern.h"
#include "targets.h"
#include "verdict.h"

namespace einkern::test {

Verdict fuzz_program(std::span<const std::byte> bytes) {
  const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return tried([&] {
    const Program program = Program::parse(text, "fuzz.ein");
    const std::string canonical = program.str();
    require(Program::parse(canonical).str() == canonical, "the canonical form is not stable");
    std::map<std::string, InputType> types;
    for (const std::string& name : program.inputs()) {
      if (!program.declared(name)) types.emplace(name, InputType({2, 3}));
    }
    program.outline(types);
    // Numbers need no data: whatever is left to be a tensor is small.
    program.compile(types);
  });
}

}  // namespace einkern::test
