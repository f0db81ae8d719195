// SPDX-License-Identifier: Apache-2.0
// Checks alignment, the pool's bound and reuse, and what happens when memory runs out.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <thread>
#include <vector>

#include "../../../engine/base/error.h"
#include "../../../engine/base/machine.h"
#include "../../../engine/tensor/create.h"
#include "../../../engine/tensor/pool.h"
#include "../../../engine/tensor/storage.h"

using namespace einkern;

namespace {

bool aligned(const void* data, std::size_t to) {
  return reinterpret_cast<std::uintptr_t>(data) % to == 0;
}

void* must_map(std::size_t capacity) {
  void* const data = map_block(capacity);
  REQUIRE(data != nullptr);
  return data;
}

}  // namespace

TEST_SUITE("tensor") {
  TEST_CASE("small blocks are aligned to a cache line, large ones to a huge page") {
    for (const std::size_t bytes : {0u, 1u, 63u, 64u, 65u, 4096u, (2u << 20) - 1}) {
      const auto storage = Storage::allocate(bytes);
      CHECK(storage->bytes() == bytes);
      CHECK(storage->data() != nullptr);
      CHECK(aligned(storage->data(), 64));
      std::memset(storage->data(), 1, bytes);
    }
    for (const std::size_t bytes : {2u << 20, (2u << 20) + 1, 5u << 20}) {
      const auto storage = Storage::allocate(bytes);
      CHECK(aligned(storage->data(), kHugePage));
      std::memset(storage->data(), 1, bytes);
    }
  }

  TEST_CASE("small blocks of any size lie apart, and keep what is written to them") {
    std::vector<std::shared_ptr<Storage>> blocks;
    for (std::size_t bytes = 0; bytes < 300; ++bytes) blocks.push_back(Storage::allocate(bytes));
    for (const std::size_t bytes : {kPooled - 65, kPooled - 64, kPooled - 1, kPooled}) {
      blocks.push_back(Storage::allocate(bytes));
    }
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      std::memset(blocks[i]->data(), static_cast<int>(i % 251), blocks[i]->bytes());
    }
    // A neighbour gone, or written over, changes nothing.
    for (std::size_t i = 0; i < blocks.size(); i += 2) blocks[i].reset();
    for (std::size_t i = 1; i < blocks.size(); i += 2) {
      CHECK(aligned(blocks[i]->data(), 64));
      const auto* const bytes = static_cast<const unsigned char*>(blocks[i]->data());
      CHECK(std::count(bytes, bytes + blocks[i]->bytes(), i % 251) ==
            static_cast<std::ptrdiff_t>(blocks[i]->bytes()));
    }
  }

  TEST_CASE("blocks of the pool are counted while they are held, small ones are not") {
    const std::size_t before = blocks_in_use().bytes();
    blocks_in_use().reset_peak();
    {
      const auto small = Storage::allocate(kPooled - 1), none = Storage::allocate(0);
      CHECK(blocks_in_use().peak() == before);
      const auto pooled = Storage::allocate(kPooled);
      CHECK(blocks_in_use().bytes() == before + kPooled);
    }
    CHECK(blocks_in_use().bytes() == before);
    CHECK(blocks_in_use().peak() == before + kPooled);
  }

  TEST_CASE("block classes are at most an eighth too large but for whole huge pages") {
    for (std::size_t bytes = kPooled; bytes <= kHugePage; bytes += bytes / 7 + 1) {
      const std::size_t block = block_class(bytes);
      CHECK(block >= bytes);
      CHECK(block - bytes <= bytes / 8);
      CHECK(block_class(block) == block);
      CHECK(block % (kPooled / 8) == 0);
    }
    CHECK(block_class(kHugePage) == kHugePage);
    CHECK(block_class(kHugePage + 1) == 2 * kHugePage);
    CHECK(block_class(std::size_t{1} << 30) == std::size_t{1} << 30);
    CHECK(block_class((std::size_t{1} << 30) + 1) ==
          (std::size_t{1} << 30) + (std::size_t{1} << 27));
    for (std::size_t bytes = kHugePage; bytes < std::size_t{1} << 40; bytes += bytes / 3 + 1) {
      const std::size_t block = block_class(bytes);
      CHECK(block >= bytes);
      CHECK(block % kHugePage == 0);
      CHECK(block_class(block) == block);
      if (bytes >= 16 << 20) CHECK(block - bytes <= bytes / 8);
    }
    CHECK(block_class(std::numeric_limits<std::size_t>::max()) == 0);
  }

  TEST_CASE("the pool hands back the newest block of the same class only") {
    Pool pool(10 * kHugePage);
    void* const a = must_map(kHugePage);
    void* const b = must_map(kHugePage);
    void* const c = must_map(2 * kHugePage);
    CHECK(pool.take(kHugePage) == nullptr);
    pool.give(a, kHugePage);
    pool.give(b, kHugePage);
    pool.give(c, 2 * kHugePage);
    CHECK(pool.bytes() == 4 * kHugePage);
    CHECK(pool.take(3 * kHugePage) == nullptr);
    CHECK(pool.take(kHugePage) == b);
    CHECK(pool.take(kHugePage) == a);
    CHECK(pool.take(kHugePage) == nullptr);
    CHECK(pool.bytes() == 2 * kHugePage);
    pool.give(a, kHugePage);
    pool.give(b, kHugePage);
    pool.clear();
    CHECK(pool.bytes() == 0);
    CHECK(pool.take(2 * kHugePage) == nullptr);
  }

  TEST_CASE("the pool stays within its bound: the oldest blocks go first") {
    Pool pool(3 * kHugePage);
    void* const a = must_map(kHugePage);
    void* const b = must_map(kHugePage);
    pool.give(a, kHugePage);
    pool.give(b, kHugePage);
    pool.give(must_map(2 * kHugePage), 2 * kHugePage);
    CHECK(pool.bytes() == 3 * kHugePage);
    CHECK(pool.take(kHugePage) == b);
    CHECK(pool.take(kHugePage) == nullptr);
    // A block larger than the bound evicts nothing.
    pool.give(must_map(4 * kHugePage), 4 * kHugePage);
    CHECK(pool.bytes() == 2 * kHugePage);
    pool.give(b, kHugePage);

    Pool off(0);
    off.give(must_map(kHugePage), kHugePage);
    CHECK(off.bytes() == 0);
  }

  TEST_CASE("tensors give their memory to the process' pool and trim empties it") {
    trim();
    REQUIRE(pool_bytes() == 0);
    const void* first = nullptr;
    {
      const Tensor t = empty({3 << 20});
      first = t.bytes();
      const Tensor view = t.slice(0, 5, 10);
      CHECK(pool_bytes() == 0);
    }
    CHECK(pool_bytes() == 12 << 20);
    {
      const Tensor again = empty({3 << 20});
      CHECK(again.bytes() == first);
      CHECK(pool_bytes() == 0);
      again.fill(1);
    }
    CHECK(pool_bytes() <= static_cast<std::size_t>(machine().memory_bytes) / 8);
    trim();
    CHECK(pool_bytes() == 0);
  }

  // Registered a second time with EINKERN_POOL_MB=5, which has room for two of the three blocks.
  TEST_CASE("the pool keeps a bounded number of blocks") {
    Pool pool(std::size_t{1} << 40);
    std::vector<void*> blocks;
    for (std::size_t i = 0; i <= Pool::kMostBlocks; ++i) {
      blocks.push_back(must_map(kPooled));
      pool.give(blocks.back(), kPooled);
    }
    CHECK(pool.bytes() == Pool::kMostBlocks * kPooled);
    for (std::size_t i = Pool::kMostBlocks; i > 0; --i) {
      CHECK(pool.take(kPooled) == blocks[i]);
      unmap_block(blocks[i], kPooled);
    }
    CHECK(pool.take(kPooled) == nullptr);
  }

  TEST_CASE("EINKERN_POOL_MB bounds the process' pool") {
    trim();
    { const Tensor a = empty({1 << 19}), b = empty({1 << 19}), c = empty({1 << 19}); }
    const char* const mebibytes = std::getenv("EINKERN_POOL_MB");
    const std::size_t room = mebibytes ? std::strtoull(mebibytes, nullptr, 10) / 2 : 3;
    CHECK(pool_bytes() == std::min<std::size_t>(room, 3) * kHugePage);
    trim();
  }

  TEST_CASE("a view keeps the memory after its tensor is gone") {
    Tensor view;
    {
      const Tensor t = arange(1 << 20, i64);
      view = t.slice(0, 1000, 1003);
    }
    const Tensor other = full({1 << 20}, -1, i64);
    CHECK(view.to_vector<std::int64_t>() == std::vector<std::int64_t>{1000, 1001, 1002});
  }

  TEST_CASE("a view keeps a small tensor's memory, the last of many threads to let go frees it") {
    Tensor view;
    {
      const Tensor t = arange(9, i64).split(0, {"i", "j"}, {3, 3});
      view = t(1).slice(0, {}, {}, -1);
    }
    const Tensor other = full({9}, -1, i64);
    CHECK(view.to_vector<std::int64_t>() == std::vector<std::int64_t>{5, 4, 3});
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([view] {
        for (int round = 0; round < 200; ++round) {
          Tensor mine = view.slice(0, round % 3, {});
          if (mine(0).item<int>() != 5 - round % 3) std::abort();
        }
      });
    }
    view = Tensor();
    for (std::thread& thread : threads) thread.join();
  }

  TEST_CASE("threads share the pool") {
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([i] {
        for (int round = 0; round < 50; ++round) {
          const auto storage = Storage::allocate((2u + static_cast<unsigned>(round % 3)) << 20);
          auto* const bytes = static_cast<char*>(storage->data());
          bytes[0] = static_cast<char>(i);
          bytes[storage->bytes() - 1] = static_cast<char>(i);
          if (bytes[0] != i) std::abort();
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    trim();
    CHECK(pool_bytes() == 0);
  }

  TEST_CASE("memory that the system does not have is a MemoryLimitError") {
    CHECK_THROWS_WITH_AS(Storage::allocate(std::size_t{1} << 62),
                         "allocate: the system has no 4611686018427387904 bytes", MemoryLimitError);
    CHECK_THROWS_WITH_AS(Storage::allocate(std::numeric_limits<std::size_t>::max()),
                         "allocate: the system has no 18446744073709551615 bytes",
                         MemoryLimitError);
    CHECK_THROWS_WITH_AS(zeros({std::int64_t{1} << 57}, f64),
                         "allocate: the system has no 1152921504606846976 bytes", MemoryLimitError);
    CHECK_THROWS_WITH_AS(zeros({std::int64_t{1} << 40, std::int64_t{1} << 40}),
                         "empty: shape (1099511627776, 1099511627776) has more elements than "
                         "64-bit offsets can reach",
                         ShapeError);
  }

  TEST_CASE("borrowed storage releases what keeps it alive, and is not pooled") {
    trim();
    const auto owner = std::make_shared<std::vector<float>>(1 << 20);
    {
      const auto storage = Storage::borrow(owner->data(), 4 << 20, owner);
      CHECK(storage->data() == owner->data());
      CHECK(storage->bytes() == 4 << 20);
      CHECK(owner.use_count() == 2);
    }
    CHECK(owner.use_count() == 1);
    CHECK(pool_bytes() == 0);
  }
}
