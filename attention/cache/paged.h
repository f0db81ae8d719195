// SPDX-License-Identifier: Apache-2.0
// Attention over keys and values that lie in pages, found through a table.
#pragma once

#include "../options.h"

namespace einkern {

/// Pages that many sequences share, and which of them hold the tokens of a sequence.
struct Pages {
  Expr keys;     // (pages, g, size, d)
  Expr values;   // (pages, g, size, e)
  Expr table;    // (b, blocks) integers: the page of tokens t size .. t size + size - 1
  Expr lengths;  // (b) integers: tokens of each sequence, at most blocks * size
};

/// dot_product_attention of q (b, h, n, d) to the first `lengths` tokens of each sequence; under
/// bottom_right query i stands at token lengths[b] - n + i. Entries of the table behind the length
/// may be anything. The order of pages in memory does not change a bit. Pages of any size are read
/// through the table, where they lie: beside that it takes a list of where each token of each
/// sequence begins. Rows are queries times the heads that share keys. Copies, at most 32 MiB or one
/// head at a time, which `explain` names: of rows whose elements lie apart, of 16-bit pages for
/// more than 8 rows (2 without SIMD) or f64 queries, and of pages with one token, or tokens before
/// heads, for 256 rows and more where 8 heads or more share them (docs/measurements.md). Errors: as
/// dot_product_attention; ShapeError naming what disagrees; ValueError, when evaluated, for a page
/// that is not there.
/// Source: Kwon et al., "Efficient memory management for large language model serving with
/// PagedAttention", 2023.
AttentionResult paged_attention(const Expr& q, const Pages& pages,
                                const AttentionOptions& options = {});

}  // namespace einkern
