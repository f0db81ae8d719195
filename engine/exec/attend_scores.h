// SPDX-License-Identifier: Apache-2.0
// The score program of an Attend step over boxes: which boxes are hidden or need no mask, and the
// scores or biases of the rest.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "../kernel/map_tile.h"
#include "../map/interval.h"
#include "../plan/attend_cut.h"
#include "../tensor/storage.h"
#include "frame.h"

namespace einkern::exec {

using plan::AttendAxes;
using plan::kKeyBlock;
using plan::RowTiles;

/// Rows and keys of one batch position, all flattened.
struct AttendBox {
  std::int64_t batch = 0;
  std::int64_t row = 0, rows = 1;
  std::int64_t key = 0, keys = 1;
};

/// How the scores of a box come about.
struct ScoreForm {
  bool linear = false;  // factor * dot + program (or 0), else program(dot)
  double factor = 1;
  double cap = 0;  // unless 0, cap * tanh(factor * dot) in place of the product
  std::optional<kernel::TileProgram> program;
  bool by_difference = false;  // the bias depends on the difference of row and key alone,
  bool same_outside = false;   // along their innermost axes, on no outer one of theirs,
  bool by_batch = false;       // and on the batch position

  bool undecided = false;  // some keys may be hidden

  /// The bias by difference of key and row, falling from `most`, where it has been evaluated: then
  /// tiles read it in place.
  struct Differences {
    std::shared_ptr<Storage> values;
    std::int64_t most = 0, count = 0;
    std::int64_t batch_stride = 0;  // 0: the same for all
  };
  Differences differences;

  bool plain() const noexcept { return linear && !program; }
};

/// Keys of a row tile that share a form; never across a multiple of kKeyBlock.
struct Segment {
  std::int64_t key = 0, keys = 0;
  const ScoreForm* form = nullptr;
  // Vectors of rows that may see some of the keys; 0: all vectors.
  std::int64_t first_vector = 0, vectors = 0;

  bool same_rows(const Segment& other) const noexcept {
    return first_vector == other.first_vector && vectors == other.vectors;
  }
};

/// Keys of the smallest box that is looked at.
inline constexpr std::int64_t kKeyGroup = 16;

/// Does a program compute a boolean?
bool has_conditions(const map::Program& program);

class AttendScores {
 public:
  AttendScores(const plan::Attend& step, const Frame& frame, const AttendAxes& batch,
               const AttendAxes& rows, const AttendAxes& keys, const RowTiles& row_tiles,
               std::int64_t lanes);

  /// What a row tile has to visit: plain boxes first, so that references are set by visible keys.
  std::span<const Segment> segments(std::int64_t batch, std::int64_t row_tile) const;

  /// The scores as written, for boxes whose linear form met an infinity or NaN.
  const ScoreForm& general() const noexcept { return general_; }
  /// Is there a program of visible keys?
  const kernel::TileProgram* visible() const noexcept { return visible_ ? &*visible_ : nullptr; }
  /// What changes the weights, if anything does.
  const kernel::TileProgram* factor() const noexcept { return factor_ ? &*factor_ : nullptr; }

  /// Largest scratch that any program here needs, and the elements `prepare` must expect.
  std::size_t scratch_bytes() const noexcept { return scratch_bytes_; }

  /// Program over a box, `bytes` an element; neighbours in `dots` and `out` are `steps` apart.
  /// `scratch` has been prepared.
  struct Steps {
    std::int64_t key, row;
  };
  void evaluate(const kernel::TileProgram& program, const AttendBox& box, const std::byte* dots,
                const Steps& steps, std::byte* out, std::size_t bytes,
                std::byte* scratch) const noexcept;

  /// The biases of a form, element 0 for the largest difference; null where they are not evaluated.
  const std::byte* differences_of(const ScoreForm& form, std::int64_t batch) const noexcept {
    const ScoreForm::Differences& all = form.differences;
    if (all.values == nullptr) return nullptr;
    return static_cast<const std::byte*>(all.values->data()) +
           static_cast<std::size_t>(batch * all.batch_stride) * dot_bytes_;
  }
  /// Does a box lie along one axis of rows and one of keys?
  bool is_simple(const AttendBox& box) const noexcept;
  /// out[i] = program where key - row is `most - i`, for a simple box (whatever its ends).
  void evaluate_differences(const kernel::TileProgram& program, const AttendBox& box,
                            std::int64_t most, std::int64_t count, std::byte* out,
                            std::size_t bytes, std::byte* scratch) const noexcept;

 private:
  struct Input {
    const std::byte* data;
    DType dtype;
    Dims strides;
    bool decides = false;  // a condition reads it
  };
  class BoxSearch;

  ScoreForm* form_for(const std::vector<map::Range>& ranges);
  bool may_skip(const map::Range& scores, std::span<const map::IndexRange> axes,
                std::span<const map::Range> inputs) const;
  void find_segments();
  std::vector<Segment> in_order(const std::vector<Segment>& found, std::int64_t shift) const;
  bool moves_along(const std::vector<bool>& mentioned) const;
  void evaluate_all_differences();
  void evaluate_differences_of(ScoreForm& form, std::int64_t least, std::int64_t most);
  void note_axes(const map::Program& bias, ScoreForm& form) const;

  const plan::Attend& step_;
  const Frame& frame_;
  const AttendAxes &batch_, &rows_, &keys_;
  std::vector<Input> inputs_;         // load 1 first
  std::vector<map::Scalar> scalars_;  // the caller's and a 0
  std::size_t dot_bytes_;

  ScoreForm general_;
  std::optional<kernel::TileProgram> visible_, factor_;
  bool skips_ = true;  // boxes whose weights are 0 need not be read
  std::size_t scratch_bytes_ = 0;

  const RowTiles& tiles_;
  std::int64_t lanes_;
  std::mutex mutex_;  // of the forms
  std::vector<std::pair<map::Program, std::unique_ptr<ScoreForm>>> forms_;
  std::map<std::string, ScoreForm*> form_of_;  // by what is decided

  // Batch positions that the conditions do not tell apart share their segments.
  std::vector<std::int64_t> class_of_;          // by batch position
  bool one_list_ = false;                       // serves all
  std::vector<std::vector<Segment>> segments_;  // by class and row tile
};

}  // namespace einkern::exec
