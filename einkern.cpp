// SPDX-License-Identifier: Apache-2.0
// What belongs to the library as a whole: its version.
#include "einkern.h"

namespace einkern {

const char* version() noexcept { return EINKERN_VERSION; }

}  // namespace einkern
