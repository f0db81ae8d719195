// SPDX-License-Identifier: Apache-2.0
// The one main of every test executable.
// NOLINTNEXTLINE(readability-identifier-naming): the name that doctest looks for.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>
