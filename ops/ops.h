// SPDX-License-Identifier: Apache-2.0
// All words of the language.
#pragma once

#include "axes.h"
#include "dropout.h"
#include "elementwise.h"
#include "index.h"
#include "linear.h"
#include "mask.h"
#include "norm.h"
#include "reduce.h"
#include "rope.h"
#include "scan.h"
#include "shape.h"
#include "softmax.h"
#include "take.h"
