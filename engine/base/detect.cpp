// SPDX-License-Identifier: Apache-2.0
// Reads caches from sysfs and limits from control groups.
#include "detect.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <limits>

namespace einkern {
namespace {

using std::filesystem::path;

std::optional<std::string> read_text(const path& file) {
  std::ifstream in(file);
  if (!in) return {};
  return std::string(std::istreambuf_iterator<char>(in), {});
}

std::string_view trim_right(std::string_view text) {
  return text.substr(0, text.find_last_not_of(" \n") + 1);
}

void lower(std::int64_t& limit, std::optional<std::int64_t> found) {
  if (found && *found > 0) limit = limit > 0 ? std::min(limit, *found) : *found;
}

void lower(int& limit, std::optional<int> found) {
  if (found) limit = std::min(limit, *found);
}

// Calls `f` with the directory of the group and of every group above it, up to the mount point: a
// limit anywhere on the way counts. Inside a container the path of the host may not exist; then
// only the mount point, which is the container's own group, answers.
template <class F>
void for_each_group(const path& mount, const std::string& group, F&& f) {
  path relative = path(group).relative_path();
  while (!relative.empty()) {
    f(mount / relative);
    relative = relative.parent_path();
  }
  f(mount);
}

void apply_v2(const path& directory, Machine& machine) {
  if (const auto text = read_text(directory / "memory.max")) {
    lower(machine.memory_bytes, parse_bytes(*text));
  }
  if (const auto text = read_text(directory / "cpu.max")) {
    const std::string_view line = trim_right(*text);
    const std::size_t blank = std::min(line.find(' '), line.size());
    lower(machine.processors, parse_cpu_quota(line.substr(0, blank), line.substr(blank)));
  }
}

void apply_v1_memory(const path& directory, Machine& machine) {
  if (const auto text = read_text(directory / "memory.limit_in_bytes")) {
    lower(machine.memory_bytes, parse_bytes(*text));
  }
}

void apply_v1_cpu(const path& directory, Machine& machine) {
  const auto quota = read_text(directory / "cpu.cfs_quota_us");
  const auto period = read_text(directory / "cpu.cfs_period_us");
  if (quota && period) lower(machine.processors, parse_cpu_quota(*quota, *period));
}

void apply_caches(const path& directory, Machine& machine) {
  for (int index = 0;; ++index) {
    const path cache = directory / ("index" + std::to_string(index));
    const auto level = read_text(cache / "level");
    const auto type = read_text(cache / "type");
    const auto size = read_text(cache / "size");
    if (!level || !type || !size) return;
    const auto bytes = parse_bytes(*size);
    if (!bytes || *bytes <= 0 || type->starts_with("Instruction")) continue;
    if (level->starts_with('1')) machine.l1d_bytes = *bytes;
    if (level->starts_with('2')) machine.l2_bytes = *bytes;
    if (level->starts_with('3')) machine.l3_bytes = *bytes;
  }
}

}  // namespace

std::optional<std::int64_t> parse_bytes(std::string_view text) {
  text = trim_right(text);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || value < 0) return {};
  const std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  int shift = 0;
  if (unit == "K")
    shift = 10;
  else if (unit == "M")
    shift = 20;
  else if (unit == "G")
    shift = 30;
  else if (!unit.empty())
    return {};
  if (value > std::numeric_limits<std::int64_t>::max() >> shift) return {};
  return value << shift;
}

std::optional<int> parse_cpu_quota(std::string_view quota, std::string_view period) {
  period.remove_prefix(std::min(period.find_first_not_of(' '), period.size()));
  const auto allowed = parse_bytes(quota);
  const auto every = parse_bytes(period);
  if (!allowed || !every || *every == 0) return {};
  const std::int64_t whole = *allowed / *every + (*allowed % *every != 0);
  return static_cast<int>(std::clamp<std::int64_t>(whole, 1, std::numeric_limits<int>::max()));
}

std::optional<std::string> parse_cgroup_path(std::string_view text, std::string_view controller) {
  // Lines read `id:controllers:path`; the controllers are separated by commas.
  while (!text.empty()) {
    const std::size_t line_size = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, line_size);
    text.remove_prefix(std::min(line_size + 1, text.size()));
    const std::size_t first = line.find(':');
    const std::size_t second = first == line.npos ? line.npos : line.find(':', first + 1);
    if (second == line.npos) continue;
    const std::string listed = fmt::format(",{},", line.substr(first + 1, second - first - 1));
    if (listed.find(fmt::format(",{},", controller)) != listed.npos) {
      return std::string(line.substr(second + 1));
    }
  }
  return {};
}

Machine detect_machine(const path& root, Machine known) {
  apply_caches(root / "sys/devices/system/cpu/cpu0/cache", known);
  const std::string groups = read_text(root / "proc/self/cgroup").value_or("");
  const path mount = root / "sys/fs/cgroup";
  const std::string unified = parse_cgroup_path(groups, "").value_or("");
  for_each_group(mount, unified, [&](const path& group) { apply_v2(group, known); });
  for_each_group(mount / "unified", unified, [&](const path& group) { apply_v2(group, known); });
  const std::string memory = parse_cgroup_path(groups, "memory").value_or("");
  for_each_group(mount / "memory", memory,
                 [&](const path& group) { apply_v1_memory(group, known); });
  const std::string cpu = parse_cgroup_path(groups, "cpu").value_or("");
  for (const char* name : {"cpu", "cpu,cpuacct"}) {
    for_each_group(mount / name, cpu, [&](const path& group) { apply_v1_cpu(group, known); });
  }
  return known;
}

}  // namespace einkern
