// SPDX-License-Identifier: Apache-2.0
// Finds what each row tile has to visit: the ranges of the scores over ever smaller boxes decide.
#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>

#include "attend_form.h"
#include "attend_scores.h"
#include "parallel.h"
#include "parts.h"

namespace einkern::exec {
namespace {

using map::IndexRange;
using map::Range;

constexpr Range kNothing{std::numeric_limits<double>::infinity(),
                         -std::numeric_limits<double>::infinity(), false};

Range both(const Range& a, const Range& b) {
  return {std::min(a.low, b.low), std::max(a.high, b.high), a.maybe_nan || b.maybe_nan};
}

/// The range of booleans that lie side by side: eight at a time, since masks are read whole.
Range range_of_bytes(const std::uint8_t* data, std::span<const std::int64_t> rows,
                     std::int64_t first, std::int64_t count) {
  constexpr std::uint64_t kAllTrue = 0x0101010101010101;
  std::uint64_t every = kAllTrue, any = 0;
  for (const std::int64_t row : rows) {
    const std::uint8_t* const from = data + row + first;
    std::int64_t k = 0;
    for (; k + 8 <= count; k += 8) {
      std::uint64_t eight;
      std::memcpy(&eight, from + k, sizeof(eight));
      every &= eight;
      any |= eight;
    }
    for (; k < count; ++k) {
      every &= from[k] == 0 ? 0 : kAllTrue;
      any |= from[k];
    }
  }
  return {every == kAllTrue ? 1.0 : 0.0, any == 0 ? 0.0 : 1.0, false};
}

/// The range of the elements at data[row + key].
template <class T>
Range range_of(const T* data, std::span<const std::int64_t> rows,
               std::span<const std::int64_t> keys) {
  const auto last = static_cast<std::int64_t>(keys.size()) - 1;
  const bool dense = keys.back() - keys.front() == last;
  if constexpr (std::is_same_v<T, bool>) {
    if (dense) {
      return range_of_bytes(reinterpret_cast<const std::uint8_t*>(data), rows, keys.front(),
                            last + 1);
    }
  }
  using Number = Widened<T>;
  using Limits = std::numeric_limits<Number>;
  Number low = Limits::has_infinity ? Limits::infinity() : Limits::max();
  Number high = Limits::lowest();
  if constexpr (Limits::has_infinity) high = -Limits::infinity();
  bool nan = false;
  const auto take = [&](T element) {
    const Number x = widen(element);
    low = x < low ? x : low;
    high = x > high ? x : high;
    nan |= x != x;
  };
  for (const std::int64_t row : rows) {
    if (dense) {
      const T* const from = data + row + keys.front();
      for (std::int64_t k = 0; k <= last; ++k) take(from[k]);
    } else {
      for (const std::int64_t key : keys) take(data[row + key]);
    }
  }
  return {static_cast<double>(low), static_cast<double>(high), nan};
}

/// Adds the ranges that the positions first .. first + count - 1 of flattened axes span.
void span_axes(const AttendAxes& axes, std::int64_t first, std::int64_t count, std::size_t rank,
               std::vector<IndexRange>& ranges) {
  Dims low(rank, 0), high(rank, 0);
  axes.locate(first, low);
  axes.locate(first + count - 1, high);
  bool whole = false;  // an outer axis moves: all of the inner ones are touched
  axes.each([&](std::int64_t axis, std::int64_t size) {
    const auto a = static_cast<std::size_t>(axis);
    ranges[a] = whole ? IndexRange{0, size - 1} : IndexRange{low[a], high[a]};
    whole |= low[a] != high[a];
  });
}

/// Inputs that a condition reads, by load; ranges of the others decide nothing.
std::vector<bool> deciding_loads(const map::Program& program, std::size_t loads) {
  std::vector<bool> deciding(program.code.size(), false), result(loads, false);
  for (std::size_t i = program.code.size(); i-- > 0;) {
    const map::Instruction& code = program.code[i];
    if (!deciding[i] && code.dtype != DType::boolean) continue;
    for (const std::int32_t r : {code.a, code.b, code.c}) {
      if (r >= 0) deciding[static_cast<std::size_t>(r)] = true;
    }
    if (code.op == map::Op::load) result[static_cast<std::size_t>(code.arg)] = true;
  }
  return result;
}

}  // namespace

/// The search over the keys of one row tile, each key counted from `origin` before the first.
class AttendScores::BoxSearch {
 public:
  /// `origin`: whole blocks; 0 unless keys have one axis and inputs that decide none.
  BoxSearch(AttendScores& scores, std::int64_t batch, const RowTiles::Tile& tile,
            std::int64_t origin = 0)
      : scores_(scores),
        row_(tile.row),
        rows_(tile.rows),
        origin_(origin),
        axes_(scores.step_.axes.size()),
        inputs_(scores.inputs_.size() + 1, map::kAnything) {
    span_axes(scores.batch_, batch, 1, axes_.size(), axes_);
    span_axes(scores.rows_, row_, rows_, axes_.size(), axes_);
    for (std::size_t i = 0; i < scores.inputs_.size(); ++i) {
      if (scores.inputs_[i].decides) summarise(i, batch);
    }
  }

  /// What is not hidden, by key; runs of keys with the same form are one.
  std::vector<Segment> run() {
    const std::int64_t keys = origin_ + scores_.keys_.count();
    if (keys > 0) search(0, keys);
    return std::move(found_);
  }

 private:
  /// An input's ranges by group of keys; one group when it does not depend on the key.
  struct Summary {
    std::size_t input;
    std::vector<Range> groups;
  };

  void summarise(std::size_t i, std::int64_t batch) {
    const Input& input = scores_.inputs_[i];
    const std::int64_t base = scores_.batch_.offset(batch, input.strides);
    std::vector<std::int64_t> row_at;
    for (std::int64_t r = row_; r < row_ + rows_; ++r) {
      const std::int64_t at = base + scores_.rows_.offset(r, input.strides);
      if (row_at.empty() || at != row_at.back()) row_at.push_back(at);
    }
    std::vector<std::int64_t> key_at = scores_.keys_.offsets(input.strides);
    const bool constant =
        std::all_of(key_at.begin(), key_at.end(), [](std::int64_t at) { return at == 0; });
    if (constant) key_at.resize(std::min<std::size_t>(key_at.size(), 1));
    Summary summary{i + 1, {}};
    dispatch(input.dtype, [&]<class T>(std::type_identity<T>) {
      const auto* const data = reinterpret_cast<const T*>(input.data);
      for (std::size_t k = 0; k < key_at.size(); k += kKeyGroup) {
        const std::size_t count = std::min<std::size_t>(kKeyGroup, key_at.size() - k);
        summary.groups.push_back(range_of(data, row_at, std::span(key_at).subspan(k, count)));
      }
    });
    summaries_.push_back(std::move(summary));
  }

  /// Moves the box to keys first .. first + count - 1.
  void span_keys(std::int64_t first, std::int64_t count) {
    if (origin_ == 0) return span_axes(scores_.keys_, first, count, axes_.size(), axes_);
    axes_[static_cast<std::size_t>(scores_.keys_.innermost())] = {first - origin_,
                                                                  first + count - 1 - origin_};
  }

  void search(std::int64_t first, std::int64_t last) {
    span_keys(first, last - first);
    for (const Summary& summary : summaries_) {
      Range range = kNothing;
      const auto groups = static_cast<std::int64_t>(summary.groups.size());
      const std::int64_t begin = std::min(first / kKeyGroup, groups - 1);
      const std::int64_t end = std::min(divide_up(last, kKeyGroup), groups);
      for (std::int64_t g = begin; g < end; ++g) {
        range = both(range, summary.groups[static_cast<std::size_t>(g)]);
      }
      inputs_[summary.input] = range;
    }
    const map::Program& program = scores_.step_.scores;
    std::vector<Range>& ranges = ranges_;  // of this box until its halves are looked at
    map::evaluate_ranges(program, axes_, inputs_, scores_.frame_.scalars, ranges);
    if (may_skip(ranges, axes_)) return;
    if (is_decided(ranges)) return take(first, last, ranges, {});
    if (last - first <= kKeyGroup) {
      if (!take_keys(first, last)) take(first, last, ranges, rows_that_see());
      return;
    }
    // Halves that end at whole blocks, then at whole groups.
    const std::int64_t unit = last - first > kKeyBlock ? kKeyBlock : kKeyGroup;
    const std::int64_t units = divide_up(last, unit) - first / unit;
    const std::int64_t middle = (first / unit + units / 2) * unit;
    if (middle <= first || middle >= last) return take(first, last, ranges, {});
    search(first, middle);
    search(middle, last);
  }

  /// Takes keys one by one when each is decided for all rows, as lengths decide them.
  bool take_keys(std::int64_t first, std::int64_t last) {
    std::vector<std::vector<Range>> all;
    std::vector<bool> skipped;
    for (std::int64_t key = first; key < last; ++key) {
      span_keys(key, 1);
      map::evaluate_ranges(scores_.step_.scores, axes_, inputs_, scores_.frame_.scalars,
                           all.emplace_back());
      skipped.push_back(may_skip(all.back(), axes_));
      if (!is_decided(all.back())) break;
    }
    span_keys(first, last - first);
    if (!is_decided(all.back())) return false;
    for (std::int64_t key = first; key < last; ++key) {
      const auto at = static_cast<std::size_t>(key - first);
      if (!skipped[at]) take(key, key + 1, all[at], {});
    }
    return true;
  }

  /// Do the keys of a box contribute nothing?
  bool may_skip(const std::vector<Range>& ranges, const std::vector<IndexRange>& axes) const {
    return scores_.may_skip(ranges.back(), axes, inputs_);
  }

  /// Is every condition the same on the whole box?
  bool is_decided(const std::vector<Range>& ranges) const {
    const map::Program& program = scores_.step_.scores;
    if (map::is_minus_infinity(ranges.back())) return true;
    bool decided = true;
    for (std::size_t i = 0; i < ranges.size(); ++i) {
      decided &= program.code[i].dtype != DType::boolean || map::is_surely_true(ranges[i]) ||
                 map::is_surely_false(ranges[i]);
    }
    return decided;
  }

  /// The vectors of rows between the first and the last that may see a group of keys.
  Segment rows_that_see() {
    const std::int64_t lanes = scores_.lanes_, vectors = divide_up(rows_, lanes);
    vector_axes_ = axes_;
    const auto sees = [&](std::int64_t v) {
      span_axes(scores_.rows_, row_ + v * lanes, std::min(lanes, rows_ - v * lanes),
                vector_axes_.size(), vector_axes_);
      map::evaluate_ranges(scores_.step_.scores, vector_axes_, inputs_, scores_.frame_.scalars,
                           vector_ranges_);
      return !may_skip(vector_ranges_, vector_axes_);
    };
    std::int64_t begin = 0, end = vectors;
    while (begin < end && !sees(begin)) ++begin;
    while (end > begin + 1 && !sees(end - 1)) --end;
    if (begin == 0 && end == vectors) return {};
    return {.first_vector = begin, .vectors = end - begin};
  }

  /// `rows` tells which rows see the keys.
  void take(std::int64_t first, std::int64_t last, const std::vector<Range>& ranges,
            const Segment& rows) {
    if (rows.vectors == 0 && rows.first_vector > 0) return;  // each vector by itself sees nothing
    const ScoreForm* const form = scores_.form_for(ranges);
    const bool joins = !found_.empty() && found_.back().form == form &&
                       found_.back().same_rows(rows) &&
                       found_.back().key + found_.back().keys == first;
    if (joins) {
      found_.back().keys += last - first;
    } else {
      found_.push_back({.key = first,
                        .keys = last - first,
                        .form = form,
                        .first_vector = rows.first_vector,
                        .vectors = rows.vectors});
    }
  }

  AttendScores& scores_;
  std::int64_t row_, rows_, origin_;
  std::vector<IndexRange> axes_;
  std::vector<Range> inputs_;
  std::vector<Range> ranges_, vector_ranges_;
  std::vector<IndexRange> vector_axes_;
  std::vector<Summary> summaries_;
  std::vector<Segment> found_;
};

/// Segments by key, moved by `shift`, as tiles visit them: cut at the ends of the keys and at whole
/// blocks, and in an order in which references start high, so that few blocks have to shift them:
/// by keys that all rows see; of biases, those of late keys, which fall with the distance as a
/// rule, edges among them; other edges last.
std::vector<Segment> AttendScores::in_order(const std::vector<Segment>& found,
                                            std::int64_t shift) const {
  std::vector<Segment> pieces;
  for (const Segment& segment : found) {
    std::int64_t key = std::max<std::int64_t>(0, segment.key + shift);
    const std::int64_t last = std::min(keys_.count(), segment.key + segment.keys + shift);
    while (key < last) {
      const std::int64_t end = std::min(last, (key / kKeyBlock + 1) * kKeyBlock);
      pieces.push_back(segment);
      pieces.back().key = key;
      pieces.back().keys = end - key;
      key = end;
    }
  }
  const bool biased = std::any_of(pieces.begin(), pieces.end(), [](const Segment& segment) {
    return !segment.form->plain() && !segment.form->undecided;
  });
  const auto rank = [&](const Segment& segment) {
    return segment.form->plain() ? 0 : segment.form->undecided && !biased ? 2 : 1;
  };
  std::stable_sort(pieces.begin(), pieces.end(), [&](const Segment& a, const Segment& b) {
    if (rank(a) != rank(b)) return rank(a) < rank(b);
    return rank(a) == 1 && a.key > b.key;
  });
  return pieces;
}

/// Do the conditions ask for the difference of row and key alone, so that every whole tile sees the
/// same keys, moved along with it? `mentioned` tells the axes that conditions depend on.
bool AttendScores::moves_along(const std::vector<bool>& mentioned) const {
  const std::int64_t row_axis = rows_.innermost(), key_axis = keys_.innermost();
  // Groups of keys must begin where they do for tiles by themselves.
  if (row_axis < 0 || key_axis < 0 || keys_.run() != keys_.count() || rows_.run() < tiles_.most() ||
      tiles_.most() % kKeyGroup != 0) {
    return false;
  }
  bool outside = false;
  rows_.each([&](std::int64_t axis, std::int64_t) {
    outside |= axis != row_axis && mentioned[static_cast<std::size_t>(axis)];
  });
  std::vector<bool> constant(inputs_.size() + 1, true);
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    const Dims& strides = inputs_[i].strides;
    constant[i + 1] = !inputs_[i].decides || (strides[static_cast<std::size_t>(row_axis)] == 0 &&
                                              strides[static_cast<std::size_t>(key_axis)] == 0);
  }
  const auto by_difference = [&](const map::Program& program) {
    return program.code.empty() || depends_on_difference(program, row_axis, key_axis, constant);
  };
  return !outside && by_difference(step_.scores) && by_difference(step_.factor);
}

void AttendScores::find_segments() {
  const map::Program& program = step_.scores;
  const std::vector<bool> deciding = deciding_loads(program, inputs_.size() + 1);
  for (std::size_t i = 0; i < inputs_.size(); ++i) inputs_[i].decides = deciding[i + 1];
  const bool conditions = has_conditions(program);
  // Hidden keys are left out only where their factors are numbers.
  const map::Program& factor = step_.factor;
  for (const map::Instruction& code : factor.code) {
    if (code.op == map::Op::load && code.arg > 0) {
      inputs_[static_cast<std::size_t>(code.arg) - 1].decides = true;
    }
  }

  std::vector<bool> mentioned(step_.axes.size(), false);  // by conditions, or by the factor
  for (const map::Program* asked : {&program, &factor}) {
    for (const map::Instruction& code : asked->code) {
      if (code.op == map::Op::index) mentioned[static_cast<std::size_t>(code.arg)] = true;
    }
  }
  for (const Input& input : inputs_) {
    for (std::size_t axis = 0; axis < mentioned.size(); ++axis) {
      if (input.decides && input.strides[axis] != 0) mentioned[axis] = true;
    }
  }

  // A class of batch positions is where the axes stand that conditions mention.
  Dims class_strides(step_.axes.size(), 0);
  std::int64_t classes = 1;
  batch_.each([&](std::int64_t axis, std::int64_t size) {
    if (!mentioned[static_cast<std::size_t>(axis)] || !conditions) return;
    class_strides[static_cast<std::size_t>(axis)] = classes;
    classes *= size;
  });
  class_of_ = batch_.offsets(class_strides);
  std::vector<std::int64_t> example(static_cast<std::size_t>(classes), 0);
  for (std::size_t b = 0; b < class_of_.size(); ++b) {
    example[static_cast<std::size_t>(class_of_[b])] = static_cast<std::int64_t>(b);
  }

  one_list_ = !conditions;
  if (one_list_) {
    segments_.push_back(in_order(BoxSearch(*this, 0, tiles_.at(0)).run(), 0));
    return;
  }
  const std::int64_t tiles = tiles_.count();
  segments_.resize(static_cast<std::size_t>(classes * tiles));
  const double tile_work = 64.0 * static_cast<double>(divide_up(keys_.count(), kKeyGroup));
  const auto search_tile = [&](std::int64_t at) {
    const std::int64_t batch = example[static_cast<std::size_t>(at / tiles)];
    segments_[static_cast<std::size_t>(at)] =
        in_order(BoxSearch(*this, batch, tiles_.at(at % tiles)).run(), 0);
  };
  if (!moves_along(mentioned)) {
    parallel_for(classes * tiles, tile_work * static_cast<double>(segments_.size()), search_tile);
    return;
  }
  const std::int64_t origin = divide_up(rows_.run(), kKeyBlock) * kKeyBlock;
  for (std::int64_t c = 0; c < classes; ++c) {
    const std::int64_t batch = example[static_cast<std::size_t>(c)];
    const auto found = BoxSearch(*this, batch, {0, tiles_.most()}, origin).run();
    for (std::int64_t tile = 0; tile < tiles; ++tile) {
      const auto [row, rows] = tiles_.at(tile);
      const std::int64_t at = c * tiles + tile;
      if (rows < tiles_.most()) {
        search_tile(at);
      } else {
        segments_[static_cast<std::size_t>(at)] = in_order(found, row % rows_.run() - origin);
      }
    }
  }
}

}  // namespace einkern::exec
