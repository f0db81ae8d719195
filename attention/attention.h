// SPDX-License-Identifier: Apache-2.0
// All formula files of attention.
#pragma once

#include "dot_product.h"
#include "module/multihead.h"
#include "multihead.h"
#include "multihead_list.h"
#include "multihead_vec.h"
#include "options.h"
#include "self_attention.h"
