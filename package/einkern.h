// SPDX-License-Identifier: Apache-2.0
// Installed beside the folder of the library: makes `#include <einkern.h>` find it.
#pragma once

#include "einkern/einkern.h"
