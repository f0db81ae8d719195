// SPDX-License-Identifier: Apache-2.0
// Scratch memory of steps and of the tasks of parallel loops.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <memory_resource>
#include <utility>

#include "../tensor/pool.h"
#include "../tensor/storage.h"

namespace einkern::exec {

/// Memory that a step or one of its tasks uses and gives back, not initialised. Blocks come from
/// the process-wide pool, so that a step that runs again allocates nothing and finds its memory in
/// the caches; those above the pool's smallest have huge pages of their own. MemoryLimitError when
/// the system has none.
std::byte* take_scratch(std::size_t bytes);
/// Gives back what take_scratch(bytes) returned.
void give_scratch(void* data, std::size_t bytes) noexcept;

/// Scratch memory with one owner.
class ScratchBlock {
 public:
  explicit ScratchBlock(std::size_t bytes) : bytes_(bytes), data_(take_scratch(bytes)) {}
  ScratchBlock(ScratchBlock&& other) noexcept
      : bytes_(other.bytes_), data_(std::exchange(other.data_, nullptr)) {}
  ScratchBlock& operator=(ScratchBlock&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    std::swap(data_, other.data_);
    return *this;
  }
  ~ScratchBlock() {
    if (data_ != nullptr) give_scratch(data_, bytes_);
  }

  std::byte* data() const noexcept { return static_cast<std::byte*>(data_); }
  template <class T>
  T* as() const noexcept {
    return static_cast<T*>(data_);
  }
  std::size_t bytes() const noexcept { return bytes_; }

 private:
  std::size_t bytes_;
  void* data_;
};

/// A block of at least `bytes` bytes that several owners may share.
std::shared_ptr<Storage> allocate_scratch(std::size_t bytes);

/// Equal blocks for the tasks of one loop. Never thread-local: a waiting worker may enter the
/// library again.
class ScratchPool {
 public:
  explicit ScratchPool(std::size_t bytes) : bytes_(bytes) {}

  /// A block for as long as the lease lives.
  class Lease : public ScratchBlock {
   public:
    explicit Lease(const ScratchPool& pool) : ScratchBlock(pool.bytes_) {}
  };

 private:
  std::size_t bytes_;
};

/// The pool as upstream of a monotonic resource: tables of a step that grow as they are made.
std::pmr::memory_resource* pool_resource() noexcept;

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
