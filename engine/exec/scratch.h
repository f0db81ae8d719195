// SPDX-License-Identifier: Apache-2.0
// Scratch memory of parallel loops: one block per task that runs at the same time, used again by
// the tasks that follow.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "../tensor/storage.h"

namespace einkern::exec {

/// A block of at least `bytes` bytes; larger ones come from the pool of storages.
std::shared_ptr<Storage> allocate_scratch(std::size_t bytes);

/// A free list of equal blocks, handed down to the tasks of one loop. Never thread-local: a waiting
/// worker may enter the library again.
class ScratchPool {
 public:
  explicit ScratchPool(std::size_t bytes) : bytes_(bytes) {}

  /// A block for as long as the lease lives.
  class Lease {
   public:
    explicit Lease(ScratchPool& pool) : pool_(pool), block_(pool.take()) {}
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    ~Lease() { pool_.give(std::move(block_)); }

    std::byte* data() const noexcept { return static_cast<std::byte*>(block_->data()); }

   private:
    ScratchPool& pool_;
    std::shared_ptr<Storage> block_;
  };

 private:
  std::shared_ptr<Storage> take();
  void give(std::shared_ptr<Storage> block) noexcept;

  std::size_t bytes_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<Storage>> free_;
  std::size_t made_ = 0;
};

/// Cuts arrays out of a block, each on a cache line of its own. Over a null block it only counts.
class Carver {
 public:
  explicit Carver(std::byte* block) noexcept : block_(block) {}

  template <class T>
  T* take(std::int64_t count) noexcept {
    constexpr std::size_t kLine = 64;
    T* const array = block_ == nullptr ? nullptr : reinterpret_cast<T*>(block_ + bytes_);
    bytes_ += (static_cast<std::size_t>(count) * sizeof(T) + kLine - 1) / kLine * kLine;
    return array;
  }
  /// Bytes taken so far.
  std::size_t bytes() const noexcept { return bytes_; }

 private:
  std::byte* block_;
  std::size_t bytes_ = 0;
};

}  // namespace einkern::exec
