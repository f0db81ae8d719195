// SPDX-License-Identifier: Apache-2.0
// The free list behind scratch blocks.
#include "scratch.h"

#include <algorithm>
#include <utility>

namespace einkern::exec {
namespace {

// Blocks of this size and more are kept by the pool of storages.
constexpr std::size_t kPooled = std::size_t{2} << 20;
// Up to here the allocator reuses mapped pages itself.
constexpr std::size_t kSmall = std::size_t{64} << 10;

}  // namespace

std::shared_ptr<Storage> allocate_scratch(std::size_t bytes) {
  return Storage::allocate(bytes <= kSmall ? bytes : std::max(bytes, kPooled));
}

std::shared_ptr<Storage> ScratchPool::take() {
  {
    const std::lock_guard lock(mutex_);
    if (!free_.empty()) {
      std::shared_ptr<Storage> block = std::move(free_.back());
      free_.pop_back();
      return block;
    }
    free_.reserve(++made_);  // so that giving back cannot fail
  }
  return allocate_scratch(bytes_);
}

void ScratchPool::give(std::shared_ptr<Storage> block) noexcept {
  const std::lock_guard lock(mutex_);
  free_.push_back(std::move(block));
}

}  // namespace einkern::exec
