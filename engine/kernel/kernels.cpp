// SPDX-License-Identifier: Apache-2.0
// Builds one table of kernels per SIMD target of this processor and picks the one to use.
#include "kernels.h"

#include <atomic>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "../base/error.h"
#include "hwy/highway.h"

namespace einkern::kernel {
namespace {

struct NamedTarget {
  std::int64_t bit;  // Highway's
  Target target;
};

// Best first. Peaks are those of one core of the reference processor (two 512-bit FMA ports at
// 2.7 GHz); only their ratios matter. kc keeps a panel of `a` in L1 and amortises the update of c.
constexpr NamedTarget kTargets[] = {
    {HWY_AVX3,
     {.name = "AVX3",
      .vector_bytes = 64,
      .mr_f32 = 14,
      .nr_f32 = 32,
      .mr_f64 = 14,
      .nr_f64 = 16,
      .attend_vectors = 4,
      .kc_f32 = 512,
      .kc_f64 = 512,
      .peak_f32 = 175e9,
      .peak_f64 = 87e9}},
    {HWY_AVX2,
     {.name = "AVX2",
      .vector_bytes = 32,
      .mr_f32 = 6,
      .nr_f32 = 16,
      .mr_f64 = 6,
      .nr_f64 = 8,
      .kc_f32 = 256,
      .kc_f64 = 192,
      .peak_f32 = 94e9,
      .peak_f64 = 47e9}},
    {HWY_SSE4,
     {.name = "SSE4",
      .vector_bytes = 16,
      .mr_f32 = 4,
      .nr_f32 = 8,
      .mr_f64 = 4,
      .nr_f64 = 4,
      .kc_f32 = 384,
      .kc_f64 = 256,
      .peak_f32 = 40e9,
      .peak_f64 = 20e9}},
    {HWY_SCALAR,
     {.name = "SCALAR",
      .vector_bytes = 4,
      .mr_f32 = 4,
      .nr_f32 = 2,
      .mr_f64 = 4,
      .nr_f64 = 2,
      .kc_f32 = 256,
      .kc_f64 = 256,
      .peak_f32 = 5e9,
      .peak_f64 = 5e9}},
};

std::unique_ptr<const Kernels> make_table(const NamedTarget& named) {
  // Nothing else in the library dispatches through Highway, so its process-wide choice is ours.
  hwy::GetChosenTarget().Update(named.bit);
  auto table = std::make_unique<Kernels>();
  table->target = named.target;
  fill_matmul(table->matmul);
  fill_stream(table->stream);
  fill_skinny(table->skinny);
  fill_map(table->map);
  fill_reduce(table->reduce);
  fill_softmax(table->softmax);
  fill_copy(table->copy);
  fill_attend(table->attend);
  fill_decode(table->decode);
  fill_probe(table->probe);
  hwy::GetChosenTarget().DeInit();
  return table;
}

std::vector<std::unique_ptr<const Kernels>> make_tables() {
  const std::int64_t supported = (hwy::SupportedTargets() & HWY_TARGETS) | HWY_STATIC_TARGET;
  std::vector<std::unique_ptr<const Kernels>> tables;
  for (const NamedTarget& named : kTargets) {
    if (supported & named.bit) tables.push_back(make_table(named));
  }
  return tables;
}

const Kernels& choose() {
  const char* wanted = std::getenv("EINKERN_TARGET");
  if (wanted == nullptr || *wanted == '\0') return *supported_kernels().front();
  std::string choices;
  for (const Kernels* table : supported_kernels()) {
    if (table->target.name == wanted) return *table;
    choices += (choices.empty() ? "" : ", ") + std::string(table->target.name);
  }
  fail<ValueError>("EINKERN_TARGET: no target '" + std::string(wanted) +
                   "' on this processor; choices: " + choices);
}

std::atomic<const Kernels*> forced{nullptr};

}  // namespace

const std::vector<const Kernels*>& supported_kernels() {
  static const auto tables = make_tables();
  static const auto pointers = [] {
    std::vector<const Kernels*> result;
    for (const auto& table : tables) result.push_back(table.get());
    return result;
  }();
  return pointers;
}

std::vector<std::string_view> compiled_targets() {
  std::vector<std::string_view> names;
  for (const NamedTarget& named : kTargets) {
    if ((HWY_TARGETS | HWY_STATIC_TARGET) & named.bit) names.push_back(named.target.name);
  }
  return names;
}

const Kernels& kernels() {
  if (const Kernels* table = forced.load(std::memory_order_acquire)) return *table;
  static const Kernels& chosen = choose();
  return chosen;
}

void force_target(const Kernels& table) { forced.store(&table, std::memory_order_release); }

}  // namespace einkern::kernel
