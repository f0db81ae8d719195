// SPDX-License-Identifier: Apache-2.0
// Prepares a map program (operations to functions, registers to places) and runs it over tiles.
#include "map_tile.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "../base/error.h"
#include "map_fill.h"

namespace einkern::kernel {
namespace {

constexpr std::size_t kRegisterBytes = 32
                                       << 10;  // all places together: L1d less the tile's operands
constexpr std::int64_t kLeastCapacity = 64;    // fewer elements cost more in calls than they save
constexpr std::int64_t kMostCapacity = 1024;

/// Calls `f` with an unsigned integer type of `bytes` bytes: moving needs no more.
template <class F>
void with_word(std::size_t bytes, F&& f) {
  switch (bytes) {
    case 1:
      return f(std::uint8_t{});
    case 2:
      return f(std::uint16_t{});
    case 4:
      return f(std::uint32_t{});
    default:
      return f(std::uint64_t{});
  }
}

bool is_contiguous(const TileOperand& operand, std::int64_t rows, std::int64_t columns) {
  return (columns == 1 || operand.stride == 1) && (rows == 1 || operand.row_stride == columns);
}

/// Calls `f(position in the register, offset in the operand)` for every element, along the side on
/// which the operand's elements are nearer to one another.
template <class F>
void walk(const TileOperand& operand, std::int64_t rows, std::int64_t columns, F&& f) {
  if (std::abs(operand.row_stride) < std::abs(operand.stride) && operand.row_stride != 0) {
    for (std::int64_t c = 0; c < columns; ++c) {
      for (std::int64_t r = 0; r < rows; ++r) {
        f(r * columns + c, r * operand.row_stride + c * operand.stride);
      }
    }
  } else {
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t c = 0; c < columns; ++c) {
        f(r * columns + c, r * operand.row_stride + c * operand.stride);
      }
    }
  }
}

void gather(const TileOperand& operand, std::int64_t rows, std::int64_t columns, std::size_t bytes,
            const CopyKernels& copy, std::byte* out) {
  if (operand.row_stride == 1 && operand.stride > 1 && bytes >= 4) {
    const auto transpose = bytes == 4 ? copy.transpose_4 : copy.transpose_8;
    transpose(operand.data, operand.stride, out, columns, columns, rows, Stores::cached);
    return;
  }
  with_word(bytes, [&]<class Word>(Word) {
    const Word* from = reinterpret_cast<const Word*>(operand.data);
    Word* to = reinterpret_cast<Word*>(out);
    if (operand.stride == 0) {
      for (std::int64_t r = 0; r < rows; ++r) {
        std::fill_n(to + r * columns, columns, from[r * operand.row_stride]);
      }
    } else if (operand.stride == 1) {
      for (std::int64_t r = 0; r < rows; ++r) {
        std::memcpy(to + r * columns, from + r * operand.row_stride,
                    static_cast<std::size_t>(columns) * sizeof(Word));
      }
    } else {
      walk(operand, rows, columns, [&](std::int64_t i, std::int64_t at) { to[i] = from[at]; });
    }
  });
}

void scatter(const std::byte* in, const TileOperand& operand, std::int64_t rows,
             std::int64_t columns, std::size_t bytes, Stores stores, const CopyKernels& copy) {
  const auto size = static_cast<std::int64_t>(bytes);
  if (operand.stride == 1) {
    for (std::int64_t r = 0; r < rows; ++r) {
      const std::byte* from = in + r * columns * size;
      std::byte* to = operand.data + r * operand.row_stride * size;
      if (stores == Stores::streaming) {
        copy.stream(from, to, columns * size);
      } else {
        std::memcpy(to, from, static_cast<std::size_t>(columns * size));
      }
    }
    return;
  }
  with_word(bytes, [&]<class Word>(Word) {
    const Word* from = reinterpret_cast<const Word*>(in);
    Word* to = reinterpret_cast<Word*>(operand.data);
    walk(operand, rows, columns, [&](std::int64_t i, std::int64_t at) { to[at] = from[i]; });
  });
}

void fill_index(const TileIndex& index, std::int64_t rows, std::int64_t columns, std::byte* out) {
  std::int64_t* to = reinterpret_cast<std::int64_t*>(out);
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::int64_t first = index.start + r * index.row_step;
    for (std::int64_t c = 0; c < columns; ++c) to[r * columns + c] = first + c * index.step;
  }
}

void fill_scalar(const map::Scalar& scalar, DType dtype, std::int64_t n, std::byte* out) {
  const bool real = scalar.dtype == DType::f64;
  switch (dtype) {
    case DType::f32:
      std::fill_n(reinterpret_cast<float*>(out), n, static_cast<float>(scalar.real));
      break;
    case DType::f64:
      std::fill_n(reinterpret_cast<double*>(out), n, scalar.real);
      break;
    case DType::boolean:
      std::fill_n(reinterpret_cast<bool*>(out), n, real ? scalar.real != 0 : scalar.integer != 0);
      break;
    default:
      std::fill_n(reinterpret_cast<std::int64_t*>(out), n,
                  real ? static_cast<std::int64_t>(scalar.real) : scalar.integer);
  }
}

bool is_source(map::Op op) {
  return op == map::Op::load || op == map::Op::scalar || op == map::Op::index;
}

std::array<std::int32_t, 3> operands(const map::Instruction& code) {
  return {code.a, code.b, code.c};
}

}  // namespace

void fill_map(MapKernels& kernels) {
  fill_map_arithmetic(kernels);
  fill_map_math(kernels);
  fill_copy(kernels.copy);
}

TileProgram::TileProgram(const map::Program& program, std::span<const map::Scalar> scalars,
                         const MapKernels& kernels)
    : scalars_(scalars.begin(), scalars.end()), copy_(kernels.copy) {
  const std::vector<map::Instruction>& code = program.code;
  const auto each_operand = [&](std::size_t i, auto&& f) {
    for (int k = 0; k < map::arity(code[i].op); ++k) {
      f(static_cast<std::size_t>(operands(code[i])[static_cast<std::size_t>(k)]));
    }
  };

  SmallVector<std::size_t, 16> last_use(code.size());
  for (std::size_t i = 0; i < code.size(); ++i) {
    each_operand(i, [&](std::size_t r) { last_use[r] = i; });
  }
  last_use.back() = code.size();

  std::size_t widest = 1;
  SmallVector<std::size_t, 16> unused;  // places free to take
  steps_.reserve(code.size());
  for (std::size_t i = 0; i < code.size(); ++i) {
    Step step{.code = code[i]};
    step.uniform = code[i].op != map::Op::load && code[i].op != map::Op::index;
    each_operand(i, [&](std::size_t r) { step.uniform &= steps_[r].uniform; });
    if (code[i].op == map::Op::cast) {
      const DType from = code[static_cast<std::size_t>(code[i].a)].dtype;
      step.function =
          kernels.convert[static_cast<std::size_t>(from)][static_cast<std::size_t>(code[i].dtype)];
    } else if (!is_source(code[i].op)) {
      const std::int32_t typed = code[i].op == map::Op::select ? code[i].b : code[i].a;
      const DType dtype = code[static_cast<std::size_t>(typed)].dtype;
      step.function =
          kernels.apply[static_cast<std::size_t>(code[i].op)][static_cast<std::size_t>(dtype)];
    }
    EINKERN_CHECK(step.function != nullptr || is_source(code[i].op));

    // A place is taken before those of the operands are given back, so that no kernel works in
    // place. Uniform registers live for the whole loop: they take a new place and keep it.
    if (step.uniform || unused.empty()) {
      step.place = places_++;
    } else {
      step.place = unused.back();
      unused.pop_back();
    }
    each_operand(i, [&](std::size_t r) {
      if (last_use[r] != i || steps_[r].uniform) return;
      last_use[r] = code.size();  // once, even when it is both operands
      unused.push_back(steps_[r].place);
    });
    widest = std::max(widest, size_of(code[i].dtype));
    steps_.push_back(step);
  }
  const auto most = static_cast<std::int64_t>(kRegisterBytes / (places_ * widest));
  capacity_ = std::clamp(most / 64 * 64, kLeastCapacity, kMostCapacity);
  place_bytes_ = static_cast<std::size_t>(capacity_) * widest;
}

MapFault TileProgram::evaluate(const Step& step, std::int64_t n, std::byte* const* registers,
                               std::byte* out) const noexcept {
  const auto at = [&](std::int32_t r) { return r < 0 ? nullptr : registers[r]; };
  return step.function(at(step.code.a), at(step.code.b), at(step.code.c), out, n);
}

TileFault TileProgram::prepare(std::byte* scratch, std::int64_t most) const noexcept {
  const std::int64_t n = std::min(most, capacity_);
  std::byte** registers = registers_in(scratch);
  TileFault first = kNoFault;
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    const Step& step = steps_[i];
    registers[i] = scratch + step.place * place_bytes_;
    if (!step.uniform) continue;
    if (step.code.op == map::Op::scalar) {
      fill_scalar(scalars_[static_cast<std::size_t>(step.code.arg)], step.code.dtype, n,
                  registers[i]);
    } else if (const MapFault fault = evaluate(step, n, registers, registers[i]);
               fault != MapFault::none) {
      first = std::min(first, tile_fault(i, fault));
    }
  }
  return first;
}

TileFault TileProgram::run(const Tile& tile, std::byte* scratch) const noexcept {
  const std::int64_t rows = tile.rows, columns = tile.columns, n = rows * columns;
  std::byte** registers = registers_in(scratch);
  const std::size_t last = steps_.size() - 1;
  const bool dense = is_contiguous(tile.out, rows, columns);
  const bool direct = dense && tile.stores == Stores::cached;
  TileFault first = kNoFault;
  for (std::size_t i = 0; i <= last; ++i) {
    const Step& step = steps_[i];
    if (step.uniform) continue;
    std::byte* const place = scratch + step.place * place_bytes_;
    if (step.code.op == map::Op::load) {
      const TileOperand& input = tile.inputs[static_cast<std::size_t>(step.code.arg)];
      if (is_contiguous(input, rows, columns)) {
        registers[i] = input.data;
      } else {
        gather(input, rows, columns, size_of(step.code.dtype), copy_, place);
        registers[i] = place;
      }
    } else if (step.code.op == map::Op::index) {
      fill_index(tile.indices[static_cast<std::size_t>(step.code.arg)], rows, columns, place);
    } else {
      registers[i] = i == last && direct ? tile.out.data : place;
      if (const MapFault fault = evaluate(step, n, registers, registers[i]);
          fault != MapFault::none) {
        first = std::min(first, tile_fault(i, fault));
      }
    }
  }
  const std::size_t bytes = size_of(steps_[last].code.dtype);
  if (!dense) {
    scatter(registers[last], tile.out, rows, columns, bytes, tile.stores, copy_);
  } else if (tile.stores == Stores::streaming) {
    copy_.stream(registers[last], tile.out.data, n * static_cast<std::int64_t>(bytes));
  } else if (registers[last] != tile.out.data) {  // a load, or the same for every element
    std::memcpy(tile.out.data, registers[last], static_cast<std::size_t>(n) * bytes);
  }
  return first;
}

}  // namespace einkern::kernel
