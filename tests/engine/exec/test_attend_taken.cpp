// SPDX-License-Identifier: Apache-2.0
// Attend steps whose keys or values a table picks give the bits of keys in order, on every target.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include "../../../engine/kernel/kernels.h"
#include "../../../engine/plan/attend_cut.h"
#include "attend_case.h"
#include "loop_offsets.h"

using namespace einkern;
using namespace einkern::test;

namespace {

struct TakenSizes {
  std::int64_t batch, heads, rows, blocks, size;
};

/// Copies keys or values of a case (batch, heads, rows, keys) to pages (page, head, key, element)
/// in any order, with a table of these integers, and makes the step read those.
template <class T, class Entry>
plan::TakenRows move_to_pages(AttendCase<T>& attend, const TakenSizes& n, plan::Operand& operand,
                              std::int64_t ScoreAxis::*stride, plan::Loops& loops) {
  std::vector<ScoreAxis>& axes = attend.step.axes;
  const std::vector<std::int64_t> elements = offsets(loops, &plan::Loop::b);
  const auto width = static_cast<std::int64_t>(elements.size());
  const std::int64_t page = n.heads * n.size * width;
  std::vector<std::int64_t> order(static_cast<std::size_t>(n.batch * n.blocks));
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), attend.random);
  StoredTensor pages, table;
  pages.bytes.resize(order.size() * static_cast<std::size_t>(page) * sizeof(T));
  table.bytes.resize(order.size() * sizeof(Entry));
  const T* const from = attend.tensors[static_cast<std::size_t>(operand.value)].template data<T>() +
                        operand.layout.offset;
  for (std::int64_t b = 0; b < n.batch; ++b) {
    for (std::int64_t t = 0; t < n.blocks; ++t) {
      const std::int64_t at = order[static_cast<std::size_t>(b * n.blocks + t)];
      table.data<Entry>()[b * n.blocks + t] = static_cast<Entry>(at);
      for (std::int64_t h = 0; h < n.heads; ++h) {
        for (std::int64_t s = 0; s < n.size; ++s) {
          const T* const row = from + b * (axes[0].*stride) + h * (axes[1].*stride) +
                               (t * n.size + s) * (axes[3].*stride);
          T* const to = pages.data<T>() + at * page + (h * n.size + s) * width;
          for (std::int64_t i = 0; i < width; ++i)
            to[i] = row[elements[static_cast<std::size_t>(i)]];
        }
      }
    }
  }
  axes[0].*stride = axes[3].*stride = 0;
  axes[1].*stride = n.size * width;
  std::int64_t inside = 1;
  for (std::size_t l = loops.size(); l-- > 0; inside *= loops[l].size) loops[l].b = inside;
  const auto add = [&](StoredTensor& stored, DType dtype) {
    stored.operand.value = static_cast<plan::ValueId>(attend.tensors.size());
    stored.operand.dtype = dtype;
    attend.tensors.push_back(std::move(stored));
    return attend.tensors.back().operand;
  };
  operand = add(pages, dtype_of<T>);
  plan::TakenRows taken;
  taken.at = add(table, dtype_of<Entry>);
  taken.stride = page;
  taken.batch = {n.blocks, 0, 0, 0};
  taken.parts = {{3, n.blocks, 0, 1}, {3, n.size, width, 0}};
  return taken;
}

template <class T>
void check_taken(const TakenSizes& n, bool keys, bool values) {
  CAPTURE(n.rows);
  CAPTURE(n.size);
  const std::vector<typename AttendCase<T>::Axis> axes = {{Role::batch, n.batch},
                                                          {Role::batch, n.heads},
                                                          {Role::row, n.rows},
                                                          {Role::streamed, n.blocks * n.size}};
  AttendCase<T> attend(axes, {3, 8}, {17}, {.shuffle = true, .pad = true}, 1);
  attend.add_logsumexp();
  Writer write = attend.writer();
  write.emit(map::Op::mul, write.real, write.dot(), write.number(1 / std::sqrt(24.0)));
  attend.step.scores = write.program;
  const auto rows = attend.rows();
  AttendCase<T> taken = attend;
  if (keys) {
    taken.step.k_taken =
        move_to_pages<T, std::int16_t>(taken, n, taken.step.k, &ScoreAxis::k, taken.step.inner);
  }
  if (values) {
    taken.step.v_taken =
        move_to_pages<T, std::int64_t>(taken, n, taken.step.v, &ScoreAxis::v, taken.step.columns);
  }
  for (const kernel::Kernels* kernels : kernel::supported_kernels()) {
    CAPTURE(kernels->target.name);
    const plan::AttendCut cut = plan::cut_attend(taken.step, kernels->target);
    CHECK_FALSE((cut.copies_keys && keys));
    CHECK_FALSE((cut.copies_values && values));
    for (AttendCase<T>* each : {&attend, &taken}) {
      each->clear(3);
      each->run(*kernels);
    }
    CHECK(taken.worst(rows).out <= (sizeof(T) == 4 ? 5e-7 : 1e-12));
    CHECK(taken.tensors[3].bytes == attend.tensors[3].bytes);
    CHECK(taken.tensors[4].bytes == attend.tensors[4].bytes);
  }
}

}  // namespace

TEST_SUITE("exec") {
  TEST_CASE("attend: pages of every size give the bits of keys in order") {
    for (const std::int64_t size : {1, 2, 8, 16, 128, 255, 256, 512, 1024}) {
      for (const std::int64_t rows : {1, 5, 256}) {
        const std::int64_t blocks = (size + 63) / size;
        check_taken<float>({2, 2, rows, blocks, size}, true, true);
        check_taken<double>({1, 2, rows, blocks, size}, true, true);
      }
    }
  }

  TEST_CASE("attend: keys and values in pages give the bits of those in order") {
    for (const std::int64_t rows : {1, 3, 16, 70, 300}) {
      for (const TakenSizes& n : std::vector<TakenSizes>{
               {2, 3, rows, 40, 1}, {3, 1, rows, 7, 3}, {2, 2, rows, 5, 64}, {1, 2, rows, 1, 50}}) {
        check_taken<float>(n, true, true);
        check_taken<double>(n, true, true);
      }
    }
    check_taken<float>({1, 1, 2, 300, 16}, true, true);  // pieces of keys
    check_taken<float>({2, 2, 5, 6, 16}, true, false);
    check_taken<double>({2, 2, 50, 6, 16}, false, true);
  }
}
