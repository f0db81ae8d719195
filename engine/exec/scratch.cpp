// SPDX-License-Identifier: Apache-2.0
// Takes scratch blocks out of the pool.
#include "scratch.h"

#include <algorithm>
#include <string>

#include "../base/error.h"

namespace einkern::exec {

ScratchBlock::ScratchBlock(std::size_t bytes)
    : bytes_(bytes),
      capacity_(block_class(bytes <= kPooled ? kPooled : std::max(bytes, kHugePage))),
      data_(take_block(capacity_)) {
  if (data_ == nullptr) {
    fail<MemoryLimitError>("scratch: the system has no " + std::to_string(bytes) + " bytes");
  }
  mark_usable(data_, bytes_, capacity_);
}

std::shared_ptr<Storage> allocate_scratch(std::size_t bytes) {
  return Storage::allocate(std::max(bytes, kHugePage));
}

}  // namespace einkern::exec
