// SPDX-License-Identifier: Apache-2.0
// Reads attention problems, makes their operands and checks answers by their definition.
#include "bench_attention_problem.h"

#include <fmt/format.h>

#include <cmath>
#include <sstream>

#include "../attention/cache/paged.h"
#include "../engine/base/error.h"
#include "../engine/tensor/create.h"
#include "../ops/ops.h"
#include "bench_problems.h"
#include "exit_code.h"
#include "values.h"

namespace einkern::tools {
namespace {

/// Blocks of `size` x `size` that are visible with probability `density`.
Tensor block_mask(const AttentionProblem& p, std::int64_t size, double density,
                  std::uint64_t seed) {
  const std::int64_t columns = (p.keys + size - 1) / size;
  const Tensor drawn = random({(p.queries + size - 1) / size, columns}, seed, f64);
  Tensor mask = empty({p.queries, p.keys}, boolean);
  for (std::int64_t i = 0; i < p.queries; ++i) {
    for (std::int64_t j = 0; j < p.keys; ++j) {
      mask.data<bool>()[i * p.keys + j] =
          drawn.data<double>()[i / size * columns + j / size] < density;
    }
  }
  return mask;
}

/// `blocks:128,density:0.25,seed:7` comes apart at the commas like the options around it.
struct MaskOptions {
  std::int64_t blocks = 0;
  double density = 0.5;
  std::uint64_t seed = 1;
};

void read_options(const std::string& where, std::string_view text, AttentionProblem& p) {
  MaskOptions mask;
  std::string_view last;  // lists continue the option before them
  const std::vector<std::string_view> parts = split_at(text, ',');
  for (std::size_t i = 0; i < parts.size(); ++i) {
    std::string_view part = parts[i];
    if (part.empty()) continue;
    const std::size_t equals = part.find('=');
    const std::string_view name = equals == std::string_view::npos ? last : part.substr(0, equals);
    const std::string_view value =
        equals == std::string_view::npos ? part : part.substr(equals + 1);
    last = name;
    if (name == "layout" && value == "bnhd") {
      p.positions_first = true;
    } else if (name == "kv" && (value == "f16" || value == "bf16")) {
      p.stored = value == "f16" ? f16 : bf16;
    } else if (name == "causal" && value == "top_left") {
      p.causal = Causal(top_left);
    } else if (name == "window") {
      (p.window ? p.window->right : p.window.emplace().left) = parse_integer(where, value, -1);
    } else if (name == "softcap") {
      p.softcap = parse_number(where, value);
    } else if (name == "pages") {
      p.page = parse_integer(where, value, 1);
    } else if (name == "lengths") {
      p.lengths.push_back(parse_integer(where, value, 0));
    } else if (name == "mask" && value.starts_with("blocks:")) {
      mask.blocks = parse_integer(where, value.substr(7), 1);
    } else if (name == "mask" && value.starts_with("density:")) {
      mask.density = parse_number(where, value.substr(8));
    } else if (name == "mask" && value.starts_with("seed:")) {
      mask.seed = static_cast<std::uint64_t>(parse_integer(where, value.substr(5), 0));
    } else {
      fail<IoError>(fmt::format("{}: unknown option '{}'", where, part));
    }
  }
  if (mask.blocks > 0) p.mask = block_mask(p, mask.blocks, mask.density, mask.seed);
}

/// Keys or values (b, g, k, d) in pages (page, g, size, d), block t of entry b in page table[b, t].
Tensor in_pages(const Tensor& x, const Tensor& table, std::int64_t size) {
  const std::int64_t blocks = table.shape()[1];
  Tensor pages = empty({table.size(), x.shape()[1], size, x.shape()[3]}, x.dtype());
  for (std::int64_t b = 0; b < table.shape()[0]; ++b) {
    for (std::int64_t t = 0; t < blocks; ++t) {
      pages(table.data<std::int64_t>()[b * blocks + t])
          .assign(x(b).slice(1, t * size, (t + 1) * size));
    }
  }
  return pages;
}

/// Every page once, in no order: steps of a prime that does not divide their number.
Tensor page_table(std::int64_t batch, std::int64_t blocks) {
  Tensor table = empty({batch, blocks}, i64);
  const std::int64_t pages = batch * blocks, step = pages % 7919 == 0 ? 7907 : 7919;
  for (std::int64_t p = 0; p < pages; ++p) table.data<std::int64_t>()[p] = p * step % pages;
  return table;
}

double element(const Tensor& tensor, std::int64_t b, std::int64_t h, std::int64_t i,
               std::int64_t d) {
  return tensor(b, h, i, d).item<double>();
}

}  // namespace

bool AttentionProblem::visible(std::int64_t b, std::int64_t i, std::int64_t j) const {
  if (causal && j > i) return false;
  if (window && window->left >= 0 && j < i - window->left) return false;
  if (window && window->right >= 0 && j > i + window->right) return false;
  if (!lengths.empty() && j >= lengths[static_cast<std::size_t>(b)]) return false;
  return !mask || mask->data<bool>()[i * keys + j];
}

double AttentionProblem::visible_flops() const {
  double pairs = 0;
  for (std::int64_t b = 0; b < (lengths.empty() ? 1 : batch); ++b) {
    for (std::int64_t i = 0; i < queries; ++i) {
      for (std::int64_t j = 0; j < keys; ++j) pairs += visible(b, i, j);
    }
  }
  if (lengths.empty()) pairs *= static_cast<double>(batch);
  return 2 * pairs * static_cast<double>(heads * (dk + dv));
}

double AttentionProblem::bytes(DType dtype) const {
  const auto elements = [&](std::int64_t rows) { return static_cast<double>(rows * (dk + dv)); };
  std::int64_t seen = 0;
  for (std::int64_t b = 0; b < batch; ++b) {
    for (std::int64_t j = 0; j < keys; ++j) {
      // The last query first: it sees all keys under a causal mask.
      std::int64_t i = queries;
      while (i > 0 && !visible(b, i - 1, j)) --i;
      seen += i > 0;
    }
  }
  return elements(batch * heads * queries) * static_cast<double>(size_of(compute_dtype(dtype))) +
         elements(kv_heads * seen) * static_cast<double>(size_of(stored.value_or(dtype)));
}

std::vector<AttentionProblem> read_attention_problems(const std::string& source) {
  std::istringstream file(problem_text(source));
  std::vector<AttentionProblem> problems;
  std::string line;
  for (std::size_t number = 1; std::getline(file, line); ++number) {
    if (line.empty() || line[0] == '#' || number == 1) continue;
    const std::string where = fmt::format("bench: {}:{}", source, number);
    const std::vector<std::string_view> fields = split_at(line, '\t');
    if (fields.size() < 9 || fields.size() > 10) {
      fail<IoError>(fmt::format("{}: {} fields, not 9 or 10", where, fields.size()));
    }
    AttentionProblem& p = problems.emplace_back();
    p.name = fields[0];
    p.variant = fields[1];
    std::int64_t* const sizes[] = {&p.batch, &p.heads, &p.kv_heads, &p.queries,
                                   &p.keys,  &p.dk,    &p.dv};
    for (std::size_t i = 0; i < std::size(sizes); ++i) {
      *sizes[i] = parse_integer(where, fields[i + 2], 1);
    }
    p.alibi = p.variant == "alibi";
    if (fields.size() == 10) read_options(where, fields[9], p);
    if (p.page > 0 && (p.keys % p.page != 0 || p.positions_first)) {
      fail<IoError>(
          fmt::format("{}: {} keys are no whole pages of {}, heads first", where, p.keys, p.page));
    }
    if (!p.lengths.empty() && p.lengths.size() != static_cast<std::size_t>(p.batch)) {
      fail<IoError>(
          fmt::format("{}: {} lengths for {} batch entries", where, p.lengths.size(), p.batch));
    }
  }
  if (problems.empty()) fail<IoError>(fmt::format("bench: {}: no problem in it", source));
  return problems;
}

AttentionOperands::AttentionOperands(const AttentionProblem& p, DType dtype, std::uint64_t seed)
    : output(0) {
  const DType stored = p.stored.value_or(dtype);
  dtype = compute_dtype(dtype);
  const auto make = [&](std::int64_t heads, std::int64_t positions, std::int64_t dim, DType as) {
    const Shape shape = p.positions_first ? Shape{p.batch, positions, heads, dim}
                                          : Shape{p.batch, heads, positions, dim};
    const Tensor made = Tensor(random(shape, seed++, dtype) * 2 - 1).astype(as);
    return p.positions_first ? made.permute({0, 2, 1, 3}) : made;
  };
  q = make(p.heads, p.queries, p.dk, dtype);
  k = make(p.kv_heads, p.keys, p.dk, stored);
  v = make(p.kv_heads, p.keys, p.dv, stored);
  AttentionOptions options;
  options.causal = p.causal;
  options.window = p.window;
  options.softcap = p.softcap;
  if (p.mask) options.mask = *p.mask;
  if (!p.lengths.empty()) {
    options.lengths = from_values(std::span<const std::int64_t>(p.lengths), {p.batch});
  }
  if (p.alibi) {
    slopes = exp(arange(p.heads, dtype) * (-8 * std::log(2.0) / static_cast<double>(p.heads)));
    options.bias = (*slopes)["h"] * (index("k") - index("q"));
  }
  if (p.page == 0) {
    output = dot_product_attention(q, k, v, options).output;
    return;
  }
  const Tensor table = page_table(p.batch, p.keys / p.page);
  const Expr lengths = options.lengths ? *options.lengths : Expr(full({p.batch}, p.keys, i64));
  options.lengths.reset();
  output = paged_attention(
               q, {in_pages(k, table, p.page), in_pages(v, table, p.page), table, lengths}, options)
               .output;
}

double check_attention(const AttentionProblem& p, const AttentionOperands& operands,
                       const Tensor& out) {
  constexpr std::int64_t kRows = 12;
  double worst = 0;
  for (std::int64_t r = 0; r < kRows; ++r) {
    // Rows spread over batch entries, heads and positions, the last of each included.
    const std::int64_t b = p.batch - 1 - r % p.batch, h = p.heads - 1 - r * 5 % p.heads,
                       i = p.queries - 1 - r * 7919 % p.queries;
    const std::int64_t g = h * p.kv_heads / p.heads;
    std::vector<double> weights(static_cast<std::size_t>(p.keys), 0.0);
    double most = -INFINITY, sum = 0;
    for (std::int64_t j = 0; j < p.keys; ++j) {
      double& s = weights[static_cast<std::size_t>(j)];
      if (!p.visible(b, i, j)) {
        s = -INFINITY;
        continue;
      }
      for (std::int64_t d = 0; d < p.dk; ++d) {
        s += element(operands.q, b, h, i, d) * element(operands.k, b, g, j, d);
      }
      s /= std::sqrt(static_cast<double>(p.dk));
      if (p.softcap) s = *p.softcap * std::tanh(s / *p.softcap);
      if (operands.slopes) s += (*operands.slopes)(h).item<double>() * static_cast<double>(j - i);
      most = std::max(most, s);
    }
    for (double& s : weights) {
      s = most == -INFINITY ? 0 : std::exp(s - most);
      sum += s;
    }
    for (std::int64_t e = 0; e < p.dv; e += std::max<std::int64_t>(1, p.dv / 4)) {
      double want = 0;
      for (std::int64_t j = 0; j < p.keys; ++j) {
        const double w = weights[static_cast<std::size_t>(j)];
        if (w != 0) want += w / sum * element(operands.v, b, g, j, e);
      }
      const double error = std::abs(element(out, b, h, i, e) - want);
      const double allowed = out.dtype() == f32 ? 5e-6 : 1e-12;
      if (!(error <= allowed)) {
        throw CheckFailed(fmt::format("bench: {}: element ({}, {}, {}, {}) is off by {:.3g}",
                                      p.name, b, h, i, e, error));
      }
      worst = std::max(worst, error);
    }
  }
  return worst;
}

}  // namespace einkern::tools
