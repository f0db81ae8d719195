// SPDX-License-Identifier: Apache-2.0
// Memory: aligned blocks from a bounded process-wide pool, or somebody else's memory kept alive.
#pragma once

#include <cstddef>
#include <memory>

namespace einkern {

/// A block of memory. Blocks of 128 KiB and more go back to a pool when released; those of 2 MiB
/// and more are 2 MiB-aligned and advised for huge pages, smaller ones at least 64-byte aligned.
class Storage {
  struct Token {};  // only members make one

 public:
  /// `bytes` of uninitialised memory; MemoryLimitError when the system has none.
  static std::shared_ptr<Storage> allocate(std::size_t bytes);
  /// Memory owned by somebody else; `keep_alive` is released with the storage.
  static std::shared_ptr<Storage> borrow(void* data, std::size_t bytes,
                                         std::shared_ptr<const void> keep_alive);

  explicit Storage(Token) noexcept {}
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;
  ~Storage();

  void* data() const noexcept { return data_; }
  std::size_t bytes() const noexcept { return bytes_; }

 private:
  static std::shared_ptr<Storage> allocate_small(std::size_t bytes);

  void* data_ = nullptr;
  std::size_t bytes_ = 0;
  std::size_t capacity_ = 0;  // of a block of the pool; 0: small or borrowed
  std::shared_ptr<const void> keep_alive_;
};

/// Gives every unused block of the pool back to the system. The pool holds at most an eighth of the
/// machine's memory (a container's limit honoured), or EINKERN_POOL_MB mebibytes.
void trim() noexcept;
/// Bytes of unused blocks that the pool holds now.
std::size_t pool_bytes() noexcept;

}  // namespace einkern
