// SPDX-License-Identifier: Apache-2.0
// Asks the system once what machine this is.
#include "machine.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "detect.h"

namespace einkern {
namespace {

int processors_by_affinity() {
  const int online = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  // The mask must cover every processor of the machine, or the call refuses.
  for (int possible = 1024; possible <= 1 << 20; possible *= 2) {
    cpu_set_t* set = CPU_ALLOC(static_cast<std::size_t>(possible));
    if (set == nullptr) break;
    const std::size_t bytes = CPU_ALLOC_SIZE(static_cast<std::size_t>(possible));
    const bool known = sched_getaffinity(0, bytes, set) == 0;
    const int count = known ? CPU_COUNT_S(bytes, set) : 0;
    CPU_FREE(set);
    if (known) return std::max(1, count);
  }
  return online;
}

void set_if_known(std::int64_t& bytes, int name) {
  const long value = sysconf(name);
  if (value > 0) bytes = value;
}

Machine ask_system() {
  Machine machine;
  set_if_known(machine.l1d_bytes, _SC_LEVEL1_DCACHE_SIZE);
  set_if_known(machine.l2_bytes, _SC_LEVEL2_CACHE_SIZE);
  set_if_known(machine.l3_bytes, _SC_LEVEL3_CACHE_SIZE);
  const long pages = sysconf(_SC_PHYS_PAGES);
  const long page_bytes = sysconf(_SC_PAGESIZE);
  if (pages > 0 && page_bytes > 0) machine.memory_bytes = std::int64_t{pages} * page_bytes;
  machine.processors = processors_by_affinity();
  return machine;
}

}  // namespace

const Machine& machine() {
  static const Machine found = detect_machine("/", ask_system());
  return found;
}

}  // namespace einkern
