// SPDX-License-Identifier: Apache-2.0
// `einkern random`: a tensor of random numbers, the same for the same seed everywhere.
#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <numbers>
#include <optional>
#include <string>
#include <vector>

#include "../engine/base/error.h"
#include "../engine/tensor/create.h"
#include "commands.h"
#include "exit_code.h"
#include "files.h"
#include "values.h"

namespace einkern::tools {
namespace {

/// How numbers are distributed: a name and two parameters.
struct Distribution {
  enum class Kind { uniform, normal, integers };
  Kind kind = Kind::uniform;
  double first = 0, second = 1;
};

Distribution parse_distribution(const Options& options, const std::string& text) {
  const std::size_t colon = text.find(':');
  const std::string name = text.substr(0, colon);
  Distribution result;
  if (name == "normal") {
    result.kind = Distribution::Kind::normal;
  } else if (name == "integers") {
    result = {Distribution::Kind::integers, 0, 10};
  } else if (name != "uniform") {
    options.refuse(
        fmt::format("--dist: unknown distribution '{}'; choices: uniform:LOW,HIGH, "
                    "normal:MEAN,DEVIATION, integers:LOW,HIGH",
                    name));
  }
  if (colon == text.npos) return result;
  const auto parts = split_at(std::string_view(text).substr(colon + 1), ',');
  if (parts.size() != 2) {
    options.refuse(fmt::format("--dist: '{}' needs two numbers, as in {}:0,1", text, name));
  }
  if (result.kind == Distribution::Kind::integers) {
    // As far as a double counts.
    constexpr std::int64_t kMost = std::int64_t{1} << 53;
    result.first = static_cast<double>(parse_integer("random: --dist", parts[0], -kMost));
    result.second = static_cast<double>(parse_integer("random: --dist", parts[1], -kMost));
    if (result.second > static_cast<double>(kMost)) {
      options.refuse(fmt::format("--dist: '{}' is beyond 2^53", parts[1]));
    }
  } else {
    result.first = parse_number("random: --dist", parts[0]);
    result.second = parse_number("random: --dist", parts[1]);
  }
  const bool spread =
      result.kind == Distribution::Kind::normal ? result.second >= 0 : result.first < result.second;
  if (!spread) options.refuse(fmt::format("--dist: '{}' leaves no numbers", text));
  return result;
}

/// Elements in f64; uniform ones from the counter-based generator of the library, normal ones by
/// the method of Box and Muller, 1958, from two of them each.
Tensor draw(const Shape& shape, std::uint64_t seed, const Distribution& distribution) {
  const std::int64_t count = element_count(shape, "random");
  const bool normal = distribution.kind == Distribution::Kind::normal;
  const Tensor uniform = random({normal ? 2 * count : count}, seed, f64);
  const auto* const u = uniform.data<const double>();
  Tensor result = empty(shape, f64);
  auto* const out = result.data<double>();
  const double first = distribution.first, width = distribution.second - distribution.first;
  for (std::int64_t i = 0; i < count; ++i) {
    switch (distribution.kind) {
      case Distribution::Kind::uniform:
        out[i] = first + width * u[i];
        break;
      case Distribution::Kind::integers:
        out[i] = first + std::floor(width * u[i]);
        break;
      case Distribution::Kind::normal:
        // 1 - u is never 0.
        out[i] = first + distribution.second * std::sqrt(-2 * std::log1p(-u[2 * i])) *
                             std::cos(2 * std::numbers::pi * u[2 * i + 1]);
        break;
    }
  }
  return result;
}

}  // namespace

void random_command(const std::vector<std::string>& arguments) {
  Options options({
      .command = "random",
      .usage = "--shape SHAPE [OPTIONS]",
      .summary = "Makes a tensor of random numbers: the same for the same seed on every machine.",
      .examples = {"einkern random --shape 2x8x512x64 --seed 1 -o Q.npy",
                   "einkern random --shape 64x64 --dist normal:0,0.02 --dtype f64 -o W.npy",
                   "einkern random --shape 5 --dist integers:1,512 --dtype i64"},
  });
  std::optional<std::string> shape_text, seed_text, dist_text, dtype_text, out;
  options.value("--shape", "SHAPE", shape_text, "2x3; a scalar is -");
  options.value("--seed", "N", seed_text, "a whole number (default: 0)");
  options.value(
      "--dist", "DIST", dist_text,
      "uniform:LOW,HIGH (default, 0,1), normal:MEAN,DEVIATION (0,1) or integers:LOW,HIGH\n"
      "(0,10); HIGH is excluded");
  options.value("--dtype", "DTYPE", dtype_text, "of the elements (default: f32; i64 for integers)");
  options.value("-o,--out", "FILE", out, "write the tensor instead of printing it");
  const auto positional = options.parse(arguments);
  if (!positional) return;
  if (!positional->empty()) {
    options.refuse(
        fmt::format("'{}' is no option; the shape is given by --shape", positional->front()));
  }
  if (!shape_text) options.refuse("no shape given; use --shape 2x3");
  const std::vector<Shape> shapes = parse_shapes("random: --shape", *shape_text);
  if (shapes.size() != 1)
    options.refuse(fmt::format("--shape: '{}' is not one shape", *shape_text));
  const std::int64_t seed = seed_text ? parse_integer("random: --seed", *seed_text, 0) : 0;
  const Distribution distribution =
      dist_text ? parse_distribution(options, *dist_text) : Distribution{};
  const bool integers = distribution.kind == Distribution::Kind::integers;
  const DType dtype = dtype_text ? parse_any_dtype("random: --dtype", *dtype_text)
                      : integers ? i64
                                 : f32;
  if (!is_float(dtype) && !integers)
    options.refuse("--dtype: whole numbers go with --dist integers");
  if (out) check_outputs(options, {{"--out", *out}}, {});

  const Tensor result =
      draw(shapes[0], static_cast<std::uint64_t>(seed), distribution).astype(dtype);
  if (!out) return print_tensor(result);
  const TensorName name = parse_tensor_name(*out);
  write_outputs(std::vector<WrittenFile>{
      {name, {{name.format == TensorName::Format::npy ? "" : "random", result}}}});
}

}  // namespace einkern::tools
