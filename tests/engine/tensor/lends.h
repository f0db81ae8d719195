// SPDX-License-Identifier: Apache-2.0
// The question that the borrowing tests ask of foreign types: does `borrow` take this?
#pragma once

#include <utility>

#include "../../../engine/tensor/borrow.h"

template <class S>
concept lends = requires(S&& source) {
  einkern::borrow(std::forward<S>(source));
};
