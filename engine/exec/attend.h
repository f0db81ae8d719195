// SPDX-License-Identifier: Apache-2.0
// The fused pair of contractions as a step: scores, softmax and weighted values in one pass.
#pragma once

#include "frame.h"

namespace einkern::exec {

/// Folds the streamed axes box by box: no score tensor, boxes that are hidden are not read. Same
/// bits for any number of threads. Source: online softmax (Milakov and Gimelshein, 2018) and tiling
/// over keys (Dao et al., "FlashAttention", 2022).
void run(const plan::Attend& step, const Frame& frame);

}  // namespace einkern::exec
