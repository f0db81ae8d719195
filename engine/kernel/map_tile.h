// SPDX-License-Identifier: Apache-2.0
// Interprets a map program over a tile: one vector loop per instruction, registers in L1.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "../base/dtype.h"
#include "../base/small_vector.h"
#include "../map/program.h"
#include "copy.h"

namespace einkern::kernel {

/// Why an element of a tile has no value.
enum class MapFault : std::uint8_t {
  none,
  overflow,
  division_by_zero,
  negative_power,
  out_of_range
};

inline constexpr std::size_t kMapOps = static_cast<std::size_t>(map::Op::select) + 1;
inline constexpr std::size_t kDTypes = static_cast<std::size_t>(DType::f64) + 1;

struct MapKernels {
  /// out[i] = op(a[i], b[i], c[i]) for i < n, all contiguous; `out` is none of the operands or
  /// begins where one of them does and has elements no larger. Booleans are bytes 0 and 1. An
  /// element's bits do not depend on its position.
  using Function = MapFault (*)(const void* a, const void* b, const void* c, void* out,
                                std::int64_t n) noexcept;
  /// By operation and dtype of its operands (of `b` for select); null where map::verify forbids.
  Function apply[kMapOps][kDTypes] = {};
  /// By dtype of operand and result.
  Function convert[kDTypes][kDTypes] = {};
  /// For operands that lie across a tile, and for outputs that go around the caches.
  CopyKernels copy;
};

/// Sets every pointer to the kernels of the target that Highway dispatches to now.
void fill_map(MapKernels& kernels);

/// A tensor over a tile: element (r, c) is at data + (r * row_stride + c * stride) elements.
struct TileOperand {
  std::byte* data = nullptr;
  std::int64_t row_stride = 0, stride = 0;
};

/// An axis of the iteration space over a tile: at (r, c) it is start + r * row_step + c * step.
struct TileIndex {
  std::int64_t start = 0, row_step = 0, step = 0;
};

/// A box of `rows` x `columns` elements to evaluate, at most `TileProgram::capacity()` of them.
struct Tile {
  std::int64_t rows = 1, columns = 1;
  std::span<const TileOperand> inputs = {};  // by `arg` of load; only read
  std::span<const TileIndex> indices = {};   // by `arg` of index
  TileOperand out = {};
  Stores stores = Stores::cached;  // streaming needs a fence after the last tile of a thread
};

/// The instruction and reason of a fault, as one number so that the smallest of many tiles does not
/// depend on who ran when; `kNoFault` is none.
using TileFault = std::int64_t;
inline constexpr TileFault kNoFault = INT64_MAX;
constexpr TileFault tile_fault(std::size_t instruction, MapFault fault) noexcept {
  return static_cast<TileFault>(instruction) * 8 + static_cast<TileFault>(fault);
}
constexpr std::size_t instruction_of(TileFault fault) noexcept {
  return static_cast<std::size_t>(fault / 8);
}
constexpr MapFault reason_of(TileFault fault) noexcept { return static_cast<MapFault>(fault % 8); }

/// A program made ready to run many tiles: scalars bound, every register given a place in scratch
/// memory (places of dead registers are used again).
class TileProgram {
 public:
  TileProgram(const map::Program& program, std::span<const map::Scalar> scalars,
              const MapKernels& kernels);

  /// Most elements of a tile: as many as keep all registers in L1.
  std::int64_t capacity() const noexcept { return capacity_; }
  /// Bytes of 64-byte-aligned scratch memory that `prepare` and `run` need.
  std::size_t scratch_bytes() const noexcept {
    return places_ * place_bytes_ + steps_.size() * sizeof(std::byte*);
  }

  /// Sets up a scratch block for tiles of at most `most` elements and evaluates what depends on
  /// scalars only; once before any number of `run`s with that block.
  TileFault prepare(std::byte* scratch, std::int64_t most) const noexcept;
  /// Evaluates one tile. Loads that lie contiguous are read in place and the last instruction
  /// writes `out` directly where it is contiguous; `out` may be one of the inputs, element for
  /// element.
  TileFault run(const Tile& tile, std::byte* scratch) const noexcept;

 private:
  struct Step {
    map::Instruction code;
    MapKernels::Function function = nullptr;  // null for sources
    std::size_t place = 0;                    // in scratch
    bool uniform = false;                     // depends on scalars only
  };
  /// Where each register lies now: kept behind the places.
  std::byte** registers_in(std::byte* scratch) const noexcept {
    return reinterpret_cast<std::byte**>(scratch + places_ * place_bytes_);
  }
  MapFault evaluate(const Step& step, std::int64_t n, std::byte* const* registers,
                    std::byte* out) const noexcept;

  // Usual programs cost no allocation: this is built for every run of a step.
  SmallVector<Step, 16> steps_;
  SmallVector<map::Scalar, 8> scalars_;
  CopyKernels copy_;
  std::int64_t capacity_ = 0;
  std::size_t places_ = 0, place_bytes_ = 0;
};

}  // namespace einkern::kernel
