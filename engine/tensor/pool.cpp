// SPDX-License-Identifier: Apache-2.0
// Maps, keeps and unmaps large blocks of memory.
#include "pool.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <utility>

#include "../base/machine.h"

#if defined(__SANITIZE_ADDRESS__)
#define EINKERN_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define EINKERN_ADDRESS_SANITIZER 1
#endif
#endif
#ifdef EINKERN_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#endif

namespace einkern {
namespace {

std::size_t bound_from_environment() {
  if (const char* text = std::getenv("EINKERN_POOL_MB")) {
    std::size_t mebibytes = 0;
    const char* end = text + std::strlen(text);
    const auto [stop, error] = std::from_chars(text, end, mebibytes);
    if (error == std::errc{} && stop == end && mebibytes <= SIZE_MAX >> 20) return mebibytes << 20;
  }
  return static_cast<std::size_t>(machine().memory_bytes) / 8;
}

}  // namespace

std::size_t block_class(std::size_t bytes) noexcept {
  const std::size_t least = bytes < kHugePage ? 0 : kHugePage;
  const std::size_t step = std::max(least, std::bit_floor(bytes) / 8);
  if (bytes > std::numeric_limits<std::size_t>::max() - step) return 0;
  return (bytes + step - 1) / step * step;
}

void* map_block(std::size_t capacity) noexcept {
  // mmap aligns to 4 KiB: ask for one huge page more and give both ends back.
  const std::size_t more = capacity < kHugePage ? 0 : kHugePage;
  if (capacity > static_cast<std::size_t>(std::numeric_limits<std::ptrdiff_t>::max()) - more) {
    return nullptr;
  }
  const std::size_t mapped = capacity + more;
  void* address = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (address == MAP_FAILED) return nullptr;
  if (more == 0) return address;
  auto* const begin = static_cast<std::byte*>(address);
  const std::size_t front = -reinterpret_cast<std::uintptr_t>(begin) % kHugePage;
  const std::size_t back = kHugePage - front;
  std::byte* const data = begin + front;
  if (front > 0) munmap(begin, front);
  munmap(data + capacity, back);
  madvise(data, capacity, MADV_HUGEPAGE);  // only advice: kernels without huge pages refuse it
  return data;
}

// Mapped memory is unknown to the address sanitizer: mark what lies past the end of a tensor, and
// all of a block that waits in the pool, as out of bounds.
void mark_usable([[maybe_unused]] void* data, [[maybe_unused]] std::size_t bytes,
                 [[maybe_unused]] std::size_t capacity) noexcept {
#ifdef EINKERN_ADDRESS_SANITIZER
  __asan_unpoison_memory_region(data, bytes);
  __asan_poison_memory_region(static_cast<char*>(data) + bytes, capacity - bytes);
#endif
}

void unmap_block(void* data, std::size_t capacity) noexcept {
  mark_usable(data, capacity, capacity);  // whoever gets these addresses next may use them all
  munmap(data, capacity);
}

void* Pool::take(std::size_t capacity) noexcept {
  const std::lock_guard lock(mutex_);
  const auto newest =
      std::find_if(blocks_.rbegin(), blocks_.rend(),
                   [capacity](const Block& block) { return block.capacity == capacity; });
  if (newest == blocks_.rend()) return nullptr;
  void* const data = newest->data;
  blocks_.erase(std::next(newest).base());
  bytes_ -= capacity;
  return data;
}

void Pool::give(void* data, std::size_t capacity) noexcept {
  // Unmapping a large block takes milliseconds, so it happens outside the lock.
  std::vector<Block> evicted;
  try {
    const std::lock_guard lock(mutex_);
    if (capacity <= bound_) {
      std::ptrdiff_t surplus = 0;
      std::size_t kept = bytes_;
      const std::ptrdiff_t too_many = std::ssize(blocks_) - (std::ptrdiff_t{kMostBlocks} - 1);
      while (kept > bound_ - capacity || surplus < too_many) {
        kept -= blocks_[static_cast<std::size_t>(surplus++)].capacity;
      }
      evicted.assign(blocks_.begin(), blocks_.begin() + surplus);
      blocks_.push_back({data, capacity});  // the last thing that can throw
      blocks_.erase(blocks_.begin(), blocks_.begin() + surplus);
      bytes_ = kept + capacity;
      data = nullptr;
    }
  } catch (...) {
    evicted.clear();  // no memory to keep books: the block itself goes back
  }
  if (data != nullptr) unmap_block(data, capacity);
  unmap(evicted);
}

void Pool::clear() noexcept {
  std::vector<Block> blocks;
  {
    const std::lock_guard lock(mutex_);
    blocks.swap(blocks_);
    bytes_ = 0;
  }
  unmap(blocks);
}

std::size_t Pool::bytes() const noexcept {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

void Pool::unmap(const std::vector<Block>& blocks) noexcept {
  for (const auto& [data, capacity] : blocks) unmap_block(data, capacity);
}

void BlocksInUse::add(std::size_t capacity) noexcept {
  const std::size_t now = bytes_.fetch_add(capacity, std::memory_order_relaxed) + capacity;
  std::size_t peak = peak_.load(std::memory_order_relaxed);
  while (peak < now && !peak_.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
  }
}

void BlocksInUse::remove(std::size_t capacity) noexcept {
  bytes_.fetch_sub(capacity, std::memory_order_relaxed);
}

BlocksInUse& blocks_in_use() noexcept {
  static constinit BlocksInUse blocks;  // trivially destroyed: tensors may outlive it
  return blocks;
}

void* take_block(std::size_t capacity) noexcept {
  if (capacity == 0) return nullptr;
  void* data = process_pool().take(capacity);
  if (data == nullptr) data = map_block(capacity);
  if (data == nullptr) {
    process_pool().clear();  // unused blocks of other sizes may be what is missing
    data = map_block(capacity);
  }
  if (data != nullptr) blocks_in_use().add(capacity);
  return data;
}

void give_block(void* data, std::size_t capacity) noexcept {
  mark_usable(data, 0, capacity);
  blocks_in_use().remove(capacity);
  process_pool().give(data, capacity);
}

Pool& process_pool() {
  static Pool& pool = *new Pool(bound_from_environment());
  return pool;
}

}  // namespace einkern
