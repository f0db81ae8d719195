// SPDX-License-Identifier: Apache-2.0
// Byte counts into aligned memory: small blocks from the heap, large ones from the pool.
#include "storage.h"

#include <cstdint>
#include <new>
#include <string>
#include <utility>

#include "../base/error.h"
#include "pool.h"

namespace einkern {
namespace {

constexpr std::size_t kAlignment = 64;

/// Allocates an object and `room` bytes behind it, whose address it leaves in `place`: a small
/// tensor is one allocation. Three, one of them aligned, were 1,150 of the 9,700 instructions of an
/// 8 x 8 einsum.
template <class T>
struct WithRoom {
  using value_type = T;
  std::size_t room;
  std::byte** place;  // only `allocate` looks there

  WithRoom(std::size_t bytes, std::byte** where) noexcept : room(bytes), place(where) {}
  template <class U>
  WithRoom(const WithRoom<U>& other) noexcept : room(other.room), place(other.place) {}

  T* allocate(std::size_t count) {
    void* const memory = ::operator new(count * sizeof(T) + room);
    *place = static_cast<std::byte*>(memory) + count * sizeof(T);
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, std::size_t count) noexcept {
    mark_usable(memory + count, room, room);
    ::operator delete(memory);
  }
  template <class U>
  friend bool operator==(const WithRoom& a, const WithRoom<U>& b) noexcept {
    return a.room == b.room;
  }
};

[[noreturn]] void fail_allocation(std::size_t bytes) {
  fail<MemoryLimitError>("allocate: the system has no " + std::to_string(bytes) + " bytes");
}

}  // namespace

std::shared_ptr<Storage> Storage::allocate(std::size_t bytes) {
  if (bytes < kPooled) return allocate_small(bytes);
  auto storage = std::make_shared<Storage>(Token{});
  storage->bytes_ = bytes;
  const std::size_t capacity = block_class(bytes);
  storage->data_ = take_block(capacity);
  if (storage->data_ == nullptr) fail_allocation(bytes);
  storage->capacity_ = capacity;
  mark_usable(storage->data_, bytes, capacity);
  return storage;
}

std::shared_ptr<Storage> Storage::allocate_small(std::size_t bytes) {
  const std::size_t room = bytes + kAlignment;
  std::byte* place = nullptr;
  std::shared_ptr<Storage> storage;
  try {
    storage = std::allocate_shared<Storage>(WithRoom<Storage>(room, &place), Token{});
  } catch (const std::bad_alloc&) {
    fail_allocation(bytes);
  }
  const std::size_t gap = -reinterpret_cast<std::uintptr_t>(place) % kAlignment;
  mark_usable(place, 0, room);
  mark_usable(place + gap, bytes, room - gap);
  storage->data_ = place + gap;
  storage->bytes_ = bytes;
  return storage;
}

std::shared_ptr<Storage> Storage::borrow(void* data, std::size_t bytes,
                                         std::shared_ptr<const void> keep_alive) {
  auto storage = std::make_shared<Storage>(Token{});
  storage->data_ = data;
  storage->bytes_ = bytes;
  storage->keep_alive_ = std::move(keep_alive);
  return storage;
}

Storage::~Storage() {
  if (capacity_ != 0) give_block(data_, capacity_);
}

void trim() noexcept { process_pool().clear(); }

std::size_t pool_bytes() noexcept { return process_pool().bytes(); }

}  // namespace einkern
