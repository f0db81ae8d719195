// SPDX-License-Identifier: Apache-2.0
// The checked einsum examples of tests/data/einsum.json as structs, and the operands they speak of.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace einkern::test {

/// One example. Where NumPy rejects what is an extension of ours (long names, large integers), `ok`
/// and the results are those of an engine that has the extension.
struct EinsumCase {
  /// An equation given as lists of integers, `kEllipsis` for an ellipsis.
  struct Sublists {
    static constexpr std::int64_t kEllipsis = std::numeric_limits<std::int64_t>::min();
    std::vector<std::vector<std::int64_t>> inputs;
    std::optional<std::vector<std::int64_t>> output;  // without: implicit
  };

  std::string id;
  std::string spec;                  // lists of strings stand here as terms in brackets
  std::optional<Sublists> sublists;  // then `spec` is empty
  std::vector<std::vector<std::int64_t>> shapes;
  bool filled_with_ones = false;
  bool ok = false;        // else: an error is expected
  std::string note, ext;  // why the example is there; the extension it needs
  // For `ok` only.
  std::vector<std::int64_t> out_shape;
  double out_sum = 0;   // sum of the output
  double out_wsum = 0;  // sum over the C-order index i of ((i mod 13) + 1) * out[i]
};

/// All examples of the file, in its order. Throws when the file is missing or is not what it should
/// be.
std::vector<EinsumCase> read_einsum_cases();

/// Elements of operand p in C order: ((7 i + 3 p + 1) mod 11) - 5 at index i, or ones. All results
/// are integers below 2^53.
std::vector<double> operand_values(const EinsumCase& example, std::size_t operand);

}  // namespace einkern::test
