// SPDX-License-Identifier: Apache-2.0
// Blocks of memory kept for the next tensor instead of going back to the system.
#pragma once

#include <atomic>
#include <cstddef>
#include <mutex>
#include <vector>

namespace einkern {

/// Blocks from here up come from the pool. The heap would map and unmap them call by call: products
/// of 512 x 512, whose results have 1 MiB, took 1.75 ms, not 0.9.
inline constexpr std::size_t kPooled = std::size_t{128} << 10;

/// Huge page size: blocks from here up are aligned to it.
inline constexpr std::size_t kHugePage = std::size_t{2} << 20;

/// The class of blocks that serves `bytes` (at least kPooled), so that nearly equal sizes share
/// blocks: at most an eighth larger than needed, but from 2 MiB up whole huge pages. 0 when it
/// would overflow.
std::size_t block_class(std::size_t bytes) noexcept;

/// New memory, from 2 MiB up 2 MiB-aligned and advised for huge pages; null when the system has
/// none.
void* map_block(std::size_t capacity) noexcept;
void unmap_block(void* data, std::size_t capacity) noexcept;

/// Tells the address sanitizer, which does not know mapped memory, that only the first `bytes` of a
/// block may be touched: what lies past the end of a tensor and what waits in the pool is out of
/// bounds. Does nothing in other builds.
void mark_usable(void* data, std::size_t bytes, std::size_t capacity) noexcept;

/// A block of a class: out of the process's pool, else new; null when the system has none. Counted
/// in `blocks_in_use` until it is given back.
void* take_block(std::size_t capacity) noexcept;
void give_block(void* data, std::size_t capacity) noexcept;

/// Unused blocks, at most `bound` bytes and kMostBlocks of them; the oldest go first. Thread-safe.
class Pool {
 public:
  /// What is worth looking through.
  static constexpr std::size_t kMostBlocks = 256;

  explicit Pool(std::size_t bound) noexcept : bound_(bound) {}
  ~Pool() { clear(); }
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  /// The newest unused block of exactly this capacity, or null.
  void* take(std::size_t capacity) noexcept;
  /// Keeps the block, or gives it back to the system when it does not fit.
  void give(void* data, std::size_t capacity) noexcept;
  /// Gives everything back to the system.
  void clear() noexcept;
  std::size_t bytes() const noexcept;

 private:
  struct Block {
    void* data;
    std::size_t capacity;
  };
  static void unmap(const std::vector<Block>& blocks) noexcept;

  const std::size_t bound_;
  mutable std::mutex mutex_;
  std::vector<Block> blocks_;  // oldest first
  std::size_t bytes_ = 0;
};

/// Bytes of the blocks that tensors and running steps hold, and the most that they held since
/// `reset_peak`: what an evaluation needs beyond what was there. Thread-safe.
class BlocksInUse {
 public:
  void add(std::size_t capacity) noexcept;
  void remove(std::size_t capacity) noexcept;
  std::size_t bytes() const noexcept { return bytes_.load(std::memory_order_relaxed); }
  std::size_t peak() const noexcept { return peak_.load(std::memory_order_relaxed); }
  void reset_peak() noexcept { peak_.store(bytes(), std::memory_order_relaxed); }

 private:
  std::atomic<std::size_t> bytes_ = 0, peak_ = 0;
};
BlocksInUse& blocks_in_use() noexcept;

/// The pool of the process. It is never destroyed: tensors may outlive every static object.
Pool& process_pool();

}  // namespace einkern
