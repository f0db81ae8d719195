// SPDX-License-Identifier: Apache-2.0
// Chooses boxes of columns and groups of rows from shapes and strides, and lists their offsets.
#include "contract_stream_layout.h"

#include <algorithm>
#include <numeric>

#include "boxes.h"
#include "parts.h"

namespace einkern::exec {
namespace {

using kernel::kStreamSlack;
using kernel::StreamRead;
using plan::Loop;
using plan::Loops;

/// By insertion: the lists are short, and std::stable_sort allocates.
template <class List, class Less>
void sort_stably(List& list, const Less& less) {
  for (auto last = list.begin(); last != list.end(); ++last) {
    std::rotate(std::upper_bound(list.begin(), last, *last, less), last, last + 1);
  }
}

/// Positions that are neighbours in c within a box.
std::int64_t run_of(const Loops& columns, const Dims& size) {
  std::int64_t run = 1, extent = 1;
  for (std::size_t l = 0; l < columns.size(); ++l) {
    if (columns[l].c != extent) break;
    run *= size[l];
    extent *= columns[l].size;
    if (size[l] != columns[l].size) break;
  }
  return run;
}

/// Panels that are staged together: whole runs where runs are no whole vectors.
std::int64_t group_of(std::int64_t run, std::int64_t positions, std::int64_t lanes) {
  if (run % lanes == 0) return 1;
  const std::int64_t width = kernel::kStreamVectors * lanes;
  return std::min(std::lcm(width, run) / width, divide_up(positions, width));
}

// Packed columns of a box: two boxes stay in L2 beside the rows and what is written.
constexpr std::int64_t kPackedBytes = 512 << 10;
// Lanes and neighbours of a transposed box: whole lines on both sides, read in runs of 384 bytes,
// since shorter reads from far pages cost twice.
constexpr std::int64_t kAcrossLanes = 48, kAcrossRun = 96;
// Lanes of a box that is read along them or along the sum, and positions of one of short lanes:
// 480 lanes took 9.6 ms where 96 took 17 (deba,ce->dcba of TCCG on AVX-512).
constexpr std::int64_t kLongLanes = 480, kPositions = 288;

/// Bytes of packed rows, read again for every box.
constexpr std::int64_t kMostPackedRows = 1 << 20;

/// Lanes of a box: whole vectors, and what is left over is not less than one.
std::int64_t cut_lanes(std::int64_t size, std::int64_t wanted, std::int64_t lanes) {
  std::int64_t cut = even_part(size, wanted, kStreamSlack);
  while (cut < size && size % cut != 0 && size % cut < lanes) {
    cut = std::min(cut + kStreamSlack, size);
  }
  return cut;
}

/// How much of every loop a box takes.
Dims cut_columns(const StreamLayout& layout, std::int64_t position_bytes, std::int64_t lanes) {
  const Loops& columns = layout.columns;
  Dims cut(columns.size(), 1);
  const std::int64_t most = std::max(lanes, kPackedBytes / position_bytes);
  const bool across = layout.read == StreamRead::across;
  if (across && columns[0].size <= kAcrossRun) {
    // Short lanes stay whole: then whatever follows them in c fills lines together with them.
    cut[0] = columns[0].size;
    cut[1] = even_part(columns[1].size, std::min(most / cut[0], kAcrossRun), kStreamSlack / 2);
  } else if (across) {
    cut[1] = even_part(columns[1].size, std::min(most / lanes, kAcrossRun), kStreamSlack);
    cut[0] = cut_lanes(columns[0].size, std::min(most / cut[1], kAcrossLanes), lanes);
  } else {
    cut[0] = cut_lanes(columns[0].size, std::min(most, kLongLanes), lanes);
  }
  std::int64_t positions = across ? cut[0] * cut[1] : cut[0];
  for (std::size_t l = across ? 2 : 1; l < columns.size(); ++l) {
    cut[l] = even_part(columns[l].size, std::min(most, kPositions) / positions, 1);
    positions *= cut[l];
  }
  return cut;
}

}  // namespace

std::int64_t StreamLayout::boxes() const {
  std::int64_t count = 1;
  for (std::size_t l = 0; l < columns.size(); ++l) count *= divide_up(columns[l].size, cut[l]);
  return count;
}

std::int64_t StreamLayout::largest_box() const {
  std::int64_t positions = 1;
  for (const std::int64_t size : cut) positions *= size;
  return positions;
}

std::optional<StreamLayout> stream_layout(const plan::Contract& step,
                                          const kernel::Kernels& kernels,
                                          std::pmr::memory_resource* tables) {
  if (!step.batch.empty() || step.m.empty() || step.n.empty() || step.k.empty()) return {};
  const auto bytes = static_cast<std::int64_t>(size_of(step.c.dtype));
  const std::int64_t lanes = std::max<std::int64_t>(1, kernels.target.vector_bytes / bytes);
  const std::int64_t tallest = bytes == 4 ? kernels.stream.f32.rows : kernels.stream.f64.rows;
  if (step.n.back().c != 1 || step.n.back().size < lanes) return {};

  StreamLayout layout(tables);
  layout.steps = step.k;
  const auto unit_b = [](const Loop& loop) { return loop.b == 1; };
  Loops rest(step.n.rbegin(), step.n.rend());
  // Loops that are contiguous in c are cut as one, so that every vector and every line is full; but
  // not past the loop along which the operand is contiguous, and where it is read across the lanes
  // no further than lines are full: a loop of its own can be gone along in order of address (44 ms
  // instead of 65 at afbce,df->edcba of TCCG).
  Loop lane_loop{.size = 1, .c = 1};
  const bool along_lanes = rest[0].b == 1;
  const bool across = !along_lanes && std::any_of(rest.begin(), rest.end(), unit_b);
  while (!rest.empty() && rest[0].c == lane_loop.size) {
    if (!layout.lanes.empty() && (along_lanes || rest[0].b == 1)) break;
    if (across && lane_loop.size > 1 && lane_loop.size * bytes % kLineBytes == 0) break;
    layout.lanes.push_back(rest[0]);
    lane_loop.size *= rest[0].size;
    rest.erase(0);
  }
  lane_loop.b = layout.lanes[0].b;
  const auto k = std::find_if(layout.steps.begin(), layout.steps.end(), unit_b);
  if (along_lanes) {
    layout.read = StreamRead::lanes;
  } else if (const auto u = std::find_if(rest.begin(), rest.end(), unit_b); u != rest.end()) {
    layout.read = StreamRead::across;
    std::rotate(rest.begin(), u, u + 1);  // next to the lanes
  } else if (k != layout.steps.end()) {
    layout.read = StreamRead::steps;
    std::rotate(k, k + 1, layout.steps.end());
    layout.step_run = layout.steps.back().size;
  } else {
    return {};
  }
  layout.columns.push_back(lane_loop);
  layout.columns.insert(layout.columns.end(), rest.begin(), rest.end());
  Loops& columns = layout.columns;

  const std::int64_t sums = extent(step.k);
  if (sums > kernel::kStreamSteps) return {};
  layout.cut = cut_columns(layout, sums * bytes, lanes);
  if (extent(step.m) * sums * bytes > kMostPackedRows) {
    // Rows are broadcast from where they lie: a constant stride apart, each contiguous.
    layout.far_rows = true;
    if (step.m.size() != 1 || step.k.size() != 1 || step.k[0].a != 1 || layout.boxes() != 1) {
      return {};
    }
  }
  // The next box continues what this one has read: its pages are known, its lines near.
  for (std::size_t l = 0; l < columns.size(); ++l) layout.order.push_back(l);
  sort_stably(layout.order, [&](std::size_t x, std::size_t y) {
    return std::abs(columns[x].b) < std::abs(columns[y].b);
  });
  // Rows.
  layout.rows = step.m;
  sort_stably(layout.rows,
              [](const Loop& x, const Loop& y) { return std::abs(x.c) > std::abs(y.c); });
  const std::int64_t run = run_of(columns, layout.cut), row_count = extent(step.m);
  const std::int64_t line = 64 / bytes;
  std::int64_t joined_rows = 1;
  for (std::size_t l = layout.rows.size(); l-- > 0;) {
    if (layout.rows[l].c != run * joined_rows) break;
    joined_rows *= layout.rows[l].size;
  }
  layout.joined = run % line != 0 && joined_rows > 1;
  // Groups of even heights; joined ones fill whole lines where they can.
  std::int64_t most_rows = tallest;
  for (std::size_t shape = 0; shape < std::size_t{1} << columns.size(); ++shape) {
    Dims size = layout.cut;
    for (std::size_t l = 0; l < columns.size(); ++l) {
      const std::int64_t rest = columns[l].size % layout.cut[l];
      if ((shape >> l & 1) != 0 && rest != 0) size[l] = rest;
    }
    std::int64_t positions = 1;
    for (const std::int64_t s : size) positions *= s;
    const std::int64_t staged =
        group_of(run_of(columns, size), positions, lanes) * kernel::kStreamVectors * lanes;
    // Rows that are not joined are staged in whole lines.
    most_rows = std::min(most_rows, kernel::StreamWriter<float>::kMostElements / 2 / staged);
  }
  if (most_rows == 0) return {};
  std::int64_t multiple = layout.joined ? line / std::gcd(line, run) : 1;
  if (multiple > most_rows) multiple = 1;
  const std::int64_t part = layout.joined ? joined_rows : row_count;
  for (std::int64_t first = 0; first < row_count; first += part) {
    const std::int64_t units = divide_up(part, multiple);
    const std::int64_t groups = divide_up(units, most_rows / multiple);
    for (std::int64_t g = 0; g < groups; ++g) {
      layout.first_row.push_back(first + std::min(part, g * units / groups * multiple));
    }
  }
  layout.first_row.push_back(row_count);
  return layout;
}

void StreamBox::set(const StreamLayout& layout, std::int64_t index, std::int64_t lanes) {
  const Loops& columns = layout.columns;
  Dims sizes(columns.size(), 1);
  std::int64_t first_lane = 0;
  source = target = 0;
  for (const std::size_t l : layout.order) {
    const std::int64_t parts = divide_up(columns[l].size, layout.cut[l]);
    const std::int64_t start = index % parts * layout.cut[l];
    index /= parts;
    sizes[l] = std::min(layout.cut[l], columns[l].size - start);
    // Lanes of several loops are listed from the first one on.
    if (l == 0) first_lane = start;
    if (l > 0 || layout.lanes.size() == 1) source += start * columns[l].b;
    target += start * columns[l].c;
  }
  if (layout.lanes.size() == 1) first_lane = 0;
  const bool same_shape = sizes == size_;
  if (same_shape && first_lane == first_listed_) return;
  size_ = sizes;
  first_listed_ = first_lane;
  if (!same_shape) list_places(layout, lanes);
  list_sources(layout);
}

void StreamBox::widen(OffsetTable& table, const StreamLayout& layout, std::size_t first_loop,
                      StrideOf stride) const {
  for (std::size_t l = first_loop; l < layout.columns.size(); ++l) {
    const std::size_t filled = table.size();
    for (std::int64_t i = 1; i < size_[l]; ++i) {
      for (std::size_t j = 0; j < filled; ++j) {
        table.push_back(table[j] + i * (layout.columns[l].*stride));
      }
    }
  }
}

void StreamBox::list_places(const StreamLayout& layout, std::int64_t lanes) {
  places_ = {0};
  widen(places_, layout, 0, &Loop::c);
  positions = static_cast<std::int64_t>(places_.size());
  run = run_of(layout.columns, size_);
  group_panels = group_of(run, positions, lanes);
  const auto every = [&](std::int64_t step, OffsetTable& table) {
    table.clear();
    for (std::int64_t p = 0; p < positions; p += step) {
      table.push_back(places_[static_cast<std::size_t>(p)]);
    }
  };
  every(run, run_at);
  if (run % lanes == 0) every(lanes, vector_at);
}

void StreamBox::list_sources(const StreamLayout& layout) {
  rows.clear();
  outer = {0};
  if (layout.read == StreamRead::lanes) {
    rows = {0};
    widen(rows, layout, 1, &Loop::b);
    read_run = size_[0];
  } else {
    for (std::int64_t lane = first_listed_; lane < first_listed_ + size_[0]; ++lane) {
      std::int64_t offset = 0, index = lane;
      for (const Loop& loop : layout.lanes) {
        offset += index % loop.size * loop.b;
        index /= loop.size;
      }
      rows.push_back(offset);
    }
    if (layout.read == StreamRead::across) {
      widen(outer, layout, 2, &Loop::b);
      read_run = size_[1];
    } else {
      widen(rows, layout, 1, &Loop::b);
      read_run = layout.step_run;
    }
  }
  row_count = static_cast<std::int64_t>(rows.size());
  while (rows.size() % static_cast<std::size_t>(kernel::kStreamSlack) != 0) {
    rows.push_back(rows.back());
  }
}

}  // namespace einkern::exec
