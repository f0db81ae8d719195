// SPDX-License-Identifier: Apache-2.0
// Takes scratch blocks out of the pool.
#include "scratch.h"

#include <algorithm>
#include <string>

#include "../base/error.h"

namespace einkern::exec {
namespace {

std::size_t capacity_for(std::size_t bytes) noexcept {
  return block_class(bytes <= kPooled ? kPooled : std::max(bytes, kHugePage));
}

class PoolResource : public std::pmr::memory_resource {
  void* do_allocate(std::size_t bytes, std::size_t) override { return take_scratch(bytes); }
  void do_deallocate(void* data, std::size_t bytes, std::size_t) override {
    give_scratch(data, bytes);
  }
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override {
    return this == &other;
  }
};

}  // namespace

std::byte* take_scratch(std::size_t bytes) {
  const std::size_t capacity = capacity_for(bytes);
  void* const data = take_block(capacity);
  if (data == nullptr) {
    fail<MemoryLimitError>("scratch: the system has no " + std::to_string(bytes) + " bytes");
  }
  mark_usable(data, bytes, capacity);
  return static_cast<std::byte*>(data);
}

void give_scratch(void* data, std::size_t bytes) noexcept { give_block(data, capacity_for(bytes)); }

std::pmr::memory_resource* pool_resource() noexcept {
  static PoolResource resource;
  return &resource;
}

std::shared_ptr<Storage> allocate_scratch(std::size_t bytes) {
  return Storage::allocate(std::max(bytes, kHugePage));
}

}  // namespace einkern::exec
