// SPDX-License-Identifier: Apache-2.0
// Checks what is read from sysfs and control groups, on trees of files made for it.
#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "../../../engine/base/detect.h"

using namespace einkern;
namespace fs = std::filesystem;

namespace {

// A root directory that holds what a case writes and is gone after it.
class FakeRoot {
 public:
  FakeRoot() : path_(fs::temp_directory_path() / ("einkern_root_" + std::to_string(getpid()))) {
    fs::remove_all(path_);
    fs::create_directories(path_);
  }
  ~FakeRoot() { fs::remove_all(path_); }
  FakeRoot(const FakeRoot&) = delete;
  FakeRoot& operator=(const FakeRoot&) = delete;

  void write(const fs::path& file, const std::string& text) const {
    fs::create_directories((path_ / file).parent_path());
    std::ofstream(path_ / file) << text << "\n";
  }
  void cache(int index, const char* level, const char* type, const char* size) const {
    const fs::path folder =
        fs::path("sys/devices/system/cpu/cpu0/cache") / ("index" + std::to_string(index));
    write(folder / "level", level);
    write(folder / "type", type);
    write(folder / "size", size);
  }
  Machine detect() const {
    Machine known;
    known.processors = 16;
    known.memory_bytes = std::int64_t{64} << 30;
    return detect_machine(path_, known);
  }

 private:
  fs::path path_;
};

}  // namespace

TEST_SUITE("base") {
  TEST_CASE("parse_bytes reads sysfs and cgroup numbers") {
    CHECK(parse_bytes("48K\n") == 48 << 10);
    CHECK(parse_bytes("2048K") == 2 << 20);
    CHECK(parse_bytes("3M") == 3 << 20);
    CHECK(parse_bytes("1G") == 1 << 30);
    CHECK(parse_bytes("0") == 0);
    CHECK(parse_bytes("9223372036854771712") == 9223372036854771712);
    for (const char* bad :
         {"", "max", "-1", "12Q", "K", "99999999999999999999", "9223372036854775807K"}) {
      CAPTURE(bad);
      CHECK_FALSE(parse_bytes(bad));
    }
  }

  TEST_CASE("a quota is rounded up to whole processors") {
    CHECK(parse_cpu_quota("150000", "100000") == 2);
    CHECK(parse_cpu_quota("200000\n", " 100000\n") == 2);
    CHECK(parse_cpu_quota("200001", "100000") == 3);
    CHECK(parse_cpu_quota("1000", "100000") == 1);
    CHECK_FALSE(parse_cpu_quota("max", "100000"));
    CHECK_FALSE(parse_cpu_quota("-1", "100000"));
    CHECK_FALSE(parse_cpu_quota("100000", ""));
    CHECK_FALSE(parse_cpu_quota("100000", "0"));
  }

  TEST_CASE("parse_cgroup_path finds a controller among several") {
    const char* text = "12:cpu,cpuacct:/jobs/a\n4:memory:/jobs:b\nbroken\n0::/user.slice\n";
    CHECK(parse_cgroup_path(text, "cpu") == "/jobs/a");
    CHECK(parse_cgroup_path(text, "cpuacct") == "/jobs/a");
    CHECK(parse_cgroup_path(text, "memory") == "/jobs:b");
    CHECK(parse_cgroup_path(text, "") == "/user.slice");
    CHECK_FALSE(parse_cgroup_path(text, "cpuset"));
    CHECK_FALSE(parse_cgroup_path("", ""));
  }

  TEST_CASE("without files the known facts stand") {
    const FakeRoot root;
    const Machine machine = root.detect();
    CHECK(machine.l1d_bytes == 32 << 10);
    CHECK(machine.processors == 16);
    CHECK(machine.memory_bytes == std::int64_t{64} << 30);
  }

  TEST_CASE("caches come from sysfs, instruction caches aside") {
    const FakeRoot root;
    root.cache(0, "1", "Data", "48K");
    root.cache(1, "1", "Instruction", "64K");
    root.cache(2, "2", "Unified", "2048K");
    root.cache(3, "3", "Unified", "491520K");
    const Machine machine = root.detect();
    CHECK(machine.l1d_bytes == 48 << 10);
    CHECK(machine.l2_bytes == 2 << 20);
    CHECK(machine.l3_bytes == 480 << 20);
  }

  TEST_CASE("cgroup v2: the lowest limit on the way to the root counts") {
    const FakeRoot root;
    root.write("proc/self/cgroup", "0::/outer/inner");
    root.write("sys/fs/cgroup/outer/cpu.max", "250000 100000");
    root.write("sys/fs/cgroup/outer/inner/cpu.max", "max 100000");
    root.write("sys/fs/cgroup/outer/memory.max", "max");
    root.write("sys/fs/cgroup/outer/inner/memory.max", "1073741824");
    const Machine machine = root.detect();
    CHECK(machine.processors == 3);
    CHECK(machine.memory_bytes == 1 << 30);
  }

  TEST_CASE("inside a container only the mount point is seen") {
    const FakeRoot root;
    root.write("proc/self/cgroup", "0::/../../host/path");
    root.write("sys/fs/cgroup/cpu.max", "100000 100000");
    root.write("sys/fs/cgroup/memory.max", "536870912");
    const Machine machine = root.detect();
    CHECK(machine.processors == 1);
    CHECK(machine.memory_bytes == 512 << 20);
  }

  TEST_CASE("cgroup v1: quota and period, and a limit that is none") {
    const FakeRoot root;
    root.write("proc/self/cgroup", "4:memory:/job\n1:cpu,cpuacct:/job");
    root.write("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "350000");
    root.write("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us", "100000");
    root.write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1");
    root.write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000");
    root.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712");
    Machine machine = root.detect();
    CHECK(machine.processors == 4);
    CHECK(machine.memory_bytes == std::int64_t{64} << 30);
    root.write("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "2147483648");
    CHECK(root.detect().memory_bytes == std::int64_t{2} << 30);
  }

  TEST_CASE("limits only lower: a quota above the affinity changes nothing") {
    const FakeRoot root;
    root.write("proc/self/cgroup", "0::/");
    root.write("sys/fs/cgroup/cpu.max", "6400000 100000");
    root.write("sys/fs/cgroup/memory.max", "1099511627776");
    CHECK(root.detect().processors == 16);
    CHECK(root.detect().memory_bytes == std::int64_t{64} << 30);
  }

  TEST_CASE("this machine has caches, memory and a processor") {
    CHECK(machine().l1d_bytes >= 4 << 10);
    CHECK(machine().l2_bytes >= machine().l1d_bytes);
    CHECK(machine().memory_bytes > 16 << 20);
    CHECK(machine().processors >= 1);
    CHECK(&machine() == &machine());
  }
}
