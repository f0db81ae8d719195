// SPDX-License-Identifier: Apache-2.0
// The cache as two tensors and a length, and what it shows as arithmetic on places.
#include "key_value.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "../../engine/base/error.h"
#include "../../engine/graph/build.h"
#include "../../engine/tensor/create.h"
#include "../../ops/ops.h"
#include "../attend.h"
#include "../visibility.h"

namespace einkern {
namespace {

constexpr const char* kKeyValueCache = "KeyValueCache";

CacheShape checked(const CacheShape& s) {
  if (std::min({s.batch, s.heads, s.capacity, s.key_dim, s.value_dim}) < 1 || s.window < 0 ||
      s.window > s.capacity) {
    fail<ValueError>(fmt::format(
        "{}: batch {}, heads {}, capacity {}, key_dim {}, value_dim {} and window {} make no cache",
        kKeyValueCache, s.batch, s.heads, s.capacity, s.key_dim, s.value_dim, s.window));
  }
  return s;
}

}  // namespace

KeyValueCache::KeyValueCache(const CacheShape& shape)
    : shape_(checked(shape)),
      keys_(zeros({shape.batch, shape.heads, shape.capacity, shape.key_dim}, shape.dtype)),
      values_(zeros({shape.batch, shape.heads, shape.capacity, shape.value_dim}, shape.dtype)),
      length_(zeros({}, i64)) {}

std::int64_t KeyValueCache::length() const { return length_.item<std::int64_t>(); }

void KeyValueCache::clear() { length_.fill(0); }

void KeyValueCache::append(const Expr& k, const Expr& v) {
  const auto check = [&](const char* name, const Expr& x, const Tensor& kept) {
    const bool fits = x.rank() == 4 && x.shape()[0] == shape_.batch &&
                      x.shape()[1] == shape_.heads && x.shape()[3] == kept.shape()[3];
    if (!fits) {
      fail<ShapeError>(fmt::format("{}: {} {} does not fit the cache {}", kKeyValueCache, name,
                                   to_string(x.shape()), to_string(kept.shape())));
    }
  };
  check("k", k, keys_);
  check("v", v, values_);
  const std::int64_t count = k.shape()[2], at = length();
  if (v.shape()[2] != count) {
    fail<ShapeError>(fmt::format("{}: k {} and v {} hold different numbers of tokens",
                                 kKeyValueCache, to_string(k.shape()), to_string(v.shape())));
  }
  const std::int64_t room = shape_.window > 0 ? shape_.capacity : shape_.capacity - at;
  if (count > room) {
    fail<ValueError>(fmt::format("{}: {} more tokens do not fit a capacity of {} that holds {}",
                                 kKeyValueCache, count, shape_.capacity,
                                 std::min(at, shape_.capacity)));
  }
  // Both are computed before either is kept: an error leaves the cache as it was.
  const std::vector<Tensor> now =
      eval({graph::cast(k, shape_.dtype), graph::cast(v, shape_.dtype)});
  const std::int64_t slot = at % shape_.capacity, first = std::min(count, shape_.capacity - slot);
  const auto keep = [&](const Tensor& kept, const Tensor& x) {
    kept.slice(2, slot, slot + first).assign(x.slice(2, 0, first));
    if (first < count) kept.slice(2, 0, count - first).assign(x.slice(2, first, count));
  };
  keep(keys_, now[0]);
  keep(values_, now[1]);
  length_.fill(at + count);
}

AttentionResult KeyValueCache::attend(const Expr& q, const AttentionOptions& options) const {
  refuse_weights(kKeyValueCache, options);
  if (options.causal || options.window || options.lengths || options.segments) {
    fail<ValueError>(fmt::format("{}: causal, window, lengths and segments are the cache's own",
                                 kKeyValueCache));
  }
  if (q.rank() != 4) {
    fail<ShapeError>(
        fmt::format("{}: q {} is not (b, h, tokens, d)", kKeyValueCache, to_string(q.shape())));
  }
  const std::int64_t count = q.shape()[2];
  const bool rolls = shape_.window > 0;
  if (rolls && count > shape_.capacity - shape_.window + 1) {
    fail<ValueError>(
        fmt::format("{}: of {} tokens at once the first would miss keys of its window: "
                    "at most {}, capacity - window + 1",
                    kKeyValueCache, count, shape_.capacity - shape_.window + 1));
  }
  const Expr length = length_;
  // Which token lies in a slot: of a rolling cache, the newest one that fits its place.
  const Expr token =
      rolls ? length - 1 - mod(length - 1 - index("k"), shape_.capacity) : index("k");
  const Expr own = index("q") + (length - count);
  std::vector<Mask> masks{token <= own};
  if (rolls) {
    masks.emplace_back(token >= 0);
    masks.emplace_back(own - token < shape_.window);
  }
  return einkern::attend(kKeyValueCache, q, keys_, values_, options, masks);
}

}  // namespace einkern
