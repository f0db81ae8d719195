// SPDX-License-Identifier: Apache-2.0
// The single throw site of the library.
#include "error.h"

namespace einkern {

template <class E>
void fail(const std::string& message) {
  throw E(message);
}

template void fail<SyntaxError>(const std::string&);
template void fail<ShapeError>(const std::string&);
template void fail<TypeError>(const std::string&);
template void fail<ValueError>(const std::string&);
template void fail<MemoryLimitError>(const std::string&);
template void fail<IoError>(const std::string&);

void fail_check(const char* condition, const char* file, int line) {
  throw std::logic_error(std::string("internal error: ") + condition + " at " + file + ":" +
                         std::to_string(line));
}

}  // namespace einkern
