// SPDX-License-Identifier: Apache-2.0
// All formula files of attention.
#pragma once

#include "alibi.h"
#include "differential.h"
#include "dot_product.h"
#include "latent.h"
#include "merge.h"
#include "module/multihead.h"
#include "multihead.h"
#include "multihead_list.h"
#include "multihead_vec.h"
#include "options.h"
#include "patterns.h"
#include "qk_norm.h"
#include "relative.h"
#include "rotary.h"
#include "self_attention.h"
#include "talking_heads.h"
#include "varlen.h"
