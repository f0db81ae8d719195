// SPDX-License-Identifier: Apache-2.0
// Byte counts into aligned memory: small blocks from the heap, large ones from the pool.
#include "storage.h"

#include <algorithm>
#include <new>
#include <string>
#include <utility>

#include "../base/error.h"
#include "pool.h"

namespace einkern {
namespace {

constexpr std::align_val_t kAlignment{64};

}  // namespace

std::shared_ptr<Storage> Storage::allocate(std::size_t bytes) {
  std::shared_ptr<Storage> storage(new Storage);
  storage->bytes_ = bytes;
  if (bytes >= kPooled) {
    const std::size_t capacity = block_class(bytes);
    storage->data_ = take_block(capacity);
    if (storage->data_ != nullptr) {
      storage->capacity_ = capacity;
      mark_usable(storage->data_, bytes, capacity);
    }
  } else {
    const std::size_t capacity = std::max<std::size_t>(bytes, 1);
    storage->data_ = ::operator new(capacity, kAlignment, std::nothrow);
    storage->capacity_ = storage->data_ != nullptr ? capacity : 0;
  }
  if (storage->data_ == nullptr) {
    fail<MemoryLimitError>("allocate: the system has no " + std::to_string(bytes) + " bytes");
  }
  return storage;
}

std::shared_ptr<Storage> Storage::borrow(void* data, std::size_t bytes,
                                         std::shared_ptr<const void> keep_alive) {
  std::shared_ptr<Storage> storage(new Storage);
  storage->data_ = data;
  storage->bytes_ = bytes;
  storage->keep_alive_ = std::move(keep_alive);
  return storage;
}

Storage::~Storage() {
  if (capacity_ == 0) return;
  if (capacity_ < kPooled) {
    ::operator delete(data_, kAlignment);
  } else {
    give_block(data_, capacity_);
  }
}

void trim() noexcept { process_pool().clear(); }

std::size_t pool_bytes() noexcept { return process_pool().bytes(); }

}  // namespace einkern
