// SPDX-License-Identifier: Apache-2.0
// The functions of this folder as rows for programs (.ein).
#pragma once

#include "../engine/program/words.h"

namespace einkern {

const WordTable& attention_words();

}  // namespace einkern
