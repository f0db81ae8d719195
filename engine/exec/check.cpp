// SPDX-License-Identifier: Apache-2.0
// Refuses integers out of their range before anything depends on them.
#include <string>

#include "../base/error.h"
#include "frame.h"

namespace einkern::exec {
namespace {

template <class T>
void check(const plan::Check& step, const T* first) {
  const Layout& layout = step.in.layout;
  Dims index(layout.rank(), 0);
  for (std::int64_t left = element_count(layout.shape); left > 0; --left) {
    std::int64_t at = 0;
    for (std::size_t d = 0; d < index.size(); ++d) at += index[d] * layout.strides[d];
    // NOLINTNEXTLINE(bugprone-signed-char-misuse): an i8 is a number, not a character.
    const auto value = static_cast<std::int64_t>(widen(first[at]));
    if (value < step.low || value > step.high) {
      std::string message = step.message;
      if (const std::size_t hole = message.find("{}"); hole != std::string::npos) {
        message.replace(hole, 2, std::to_string(value));
      }
      fail<ValueError>(message);
    }
    for (std::size_t d = index.size(); d-- > 0 && ++index[d] == layout.shape[d];) index[d] = 0;
  }
}

}  // namespace

void run(const plan::Check& step, const Frame& frame) {
  // A handful of lengths or table entries: nothing to gain from vectors or threads.
  dispatch(step.in.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    check(step, reinterpret_cast<const T*>(frame.address(step.in)));
  });
}

}  // namespace einkern::exec
