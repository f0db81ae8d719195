// SPDX-License-Identifier: Apache-2.0
// What the kernel's files say about caches and container limits, as numbers.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "machine.h"

namespace einkern {

/// A count of bytes as sysfs and cgroups write it: "48K", "2048K", "1073741824\n"; nothing for
/// "max", an empty text or anything else.
std::optional<std::int64_t> parse_bytes(std::string_view text);

/// Processors that a quota of `quota` microseconds in every `period` allows, rounded up; nothing
/// when the quota is "max" or negative (no limit).
std::optional<int> parse_cpu_quota(std::string_view quota, std::string_view period);

/// Path of this process in the hierarchy of `controller` ("" is cgroup v2), as the text of
/// /proc/self/cgroup gives it; nothing when the hierarchy is not listed.
std::optional<std::string> parse_cgroup_path(std::string_view text, std::string_view controller);

/// `known` (what system calls say) corrected by the files under `root`: cache sizes from sysfs,
/// memory and processors lowered to the limits of this process' control groups and of all groups
/// above it, cgroup v1 and v2. Missing files change nothing.
Machine detect_machine(const std::filesystem::path& root, Machine known);

}  // namespace einkern
