// SPDX-License-Identifier: Apache-2.0
// Products with a short sum whose large operand is read once and whose result is written around the
// caches, while the next block is on its way.
#pragma once

#include <array>
#include <cstdint>

namespace einkern::kernel {

/// Vectors of a packed panel of columns, on every target.
inline constexpr std::int64_t kStreamVectors = 3;
/// Rows of the tallest tile of any target.
inline constexpr std::int64_t kStreamRows = 9;
/// Longest sum.
inline constexpr std::int64_t kStreamSteps = 512;
/// Elements that may be touched, never changed, behind a packed block.
inline constexpr std::int64_t kStreamSlack = 16;

/// How a block of columns is read. Position p of a block and step s lie at
///   across: outer[p / (run * row_count)] + p / row_count % run + rows[p % row_count] + steps[s]
///   steps:  rows[p] + steps[s - s % run] + s % run
///   lanes:  rows[p / run] + p % run + steps[s]
/// Every `rows` is followed by repetitions of its last entry, up to a multiple of kStreamSlack.
enum class StreamRead : std::uint8_t { across, steps, lanes };

/// A block to be packed: panels of kStreamVectors vectors, [panel][step][lane]; only the last panel
/// is narrower, of whole vectors. Positions behind the last one are not written.
template <class T>
struct StreamPack {
  StreamRead read = StreamRead::lanes;
  const std::int64_t* rows = nullptr;
  const std::int64_t* outer = nullptr;
  const std::int64_t* steps = nullptr;
  std::int64_t row_count = 0, outer_count = 1, run = 1, positions = 0, step_count = 0;
  const T* source = nullptr;
  T* packed = nullptr;
};

/// Where products go that have left the registers but not yet for memory: the vectors of one group
/// of tiles. They are written one by one while the next group is multiplied: a burst of streaming
/// stores would wait for the line buffers.
template <class T>
struct StreamWriter {
  static constexpr std::int64_t kMostElements = 12288;
  T* stage[2] = {};       // kMostElements + kStreamSlack each, on a cache line
  T** targets = nullptr;  // kMostElements / lanes + kStreamSlack
  std::int64_t count = 0;
  int filling = 0;      // stage of the group being multiplied
  bool stream = false;  // targets are on cache lines and come in whole ones
};

/// Where a block of products lies in c. Columns lie in runs: position p is c[run_at[p / run] +
/// p % run]. Where a run is no number of lines, rows that follow each other without a gap are
/// staged as one, so that whole lines come together.
struct StreamPlace {
  const std::int64_t* run_at = nullptr;
  const std::int64_t* vector_at = nullptr;  // the same for vectors, where runs are whole ones
  std::int64_t run = 1;
  bool joined = false;            // row r + 1 lies `run` behind row r, within a group
  std::int64_t group_panels = 1;  // panels that are staged together: whole runs where ragged
  const std::int64_t* row_at = nullptr;
};

/// Sums of a group of tiles in the stage: row r and position p of the group lie at
/// stage[p / run * segment + r * row_stride + p % run].
template <class T>
struct StreamGroup {
  T* stage = nullptr;
  std::int64_t first_row = 0, rows = 0;            // of those that row_at counts
  std::int64_t first_position = 0, positions = 0;  // of the block
  std::int64_t run = 1, segment = 0, row_stride = 0;
};

/// A block of products: c[row_at[i] + column j] = sum over steps of y x.
template <class T>
struct StreamBlock {
  const T* x = nullptr;  // packed columns
  const T* y = nullptr;  // packed rows: groups as `first_row` says, [group][step][row]
  // Not null: y is not packed; step s of row i lies at y[y_at[i] + s], rows of a group y_stride
  // apart.
  const std::int64_t* y_at = nullptr;
  std::int64_t y_stride = 0;
  T* c = nullptr;
  StreamPlace place;
  std::int64_t positions = 0, step_count = 0;
  const std::int64_t* first_row = nullptr;  // of every group; then the number of rows
  std::int64_t groups = 0;
  StreamWriter<T>* writer = nullptr;
  // Not null: may change the sums of a group in the stage before they are written.
  void (*complete)(void* caller, const StreamGroup<T>& group) noexcept = nullptr;
  void* caller = nullptr;
  const StreamPack<T>* next = nullptr;  // packed and fetched meanwhile, unless null
};

template <class T>
struct StreamFunctions {
  void (*pack)(const StreamPack<T>& block) noexcept = nullptr;
  void (*multiply)(const StreamBlock<T>& block) noexcept = nullptr;
  /// Writes what is still staged; the last call of a task.
  void (*finish)(StreamWriter<T>& writer) noexcept = nullptr;
  std::int64_t rows = 1;  // of the tallest tile
};

struct StreamKernels {
  StreamFunctions<float> f32;
  StreamFunctions<double> f64;

  template <class T>
  const StreamFunctions<T>& of() const noexcept {
    if constexpr (sizeof(T) == sizeof(float)) {
      return f32;
    } else {
      return f64;
    }
  }
};

/// Sets every pointer to the kernels of the target that Highway dispatches to now.
void fill_stream(StreamKernels& kernels);

}  // namespace einkern::kernel
