// SPDX-License-Identifier: Apache-2.0
// All words of the language.
#pragma once

#include "axes.h"
#include "elementwise.h"
#include "index.h"
#include "linear.h"
#include "mask.h"
#include "reduce.h"
#include "shape.h"
#include "softmax.h"
