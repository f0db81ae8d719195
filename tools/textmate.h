// SPDX-License-Identifier: Apache-2.0
// A TextMate grammar of programs, for editors, made from the table of words.
#pragma once

#include <string>

#include "../engine/program/words.h"

namespace einkern::tools {

std::string textmate_grammar(const Words& words);

}  // namespace einkern::tools
