// SPDX-License-Identifier: Apache-2.0
// A published model in the quickstart, when it is there.
#pragma once

#include <filesystem>
#include <string>

/// How alike some sentences are to the encoder in this folder, and how long it took; without one,
/// how to get it.
std::string real_model(const std::filesystem::path& folder);
