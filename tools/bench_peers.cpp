// SPDX-License-Identifier: Apache-2.0
// BLAS libraries to compare with, loaded at run time when the machine has them.
#include "bench_peers.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "../engine/kernel/kernels.h"
#include "exit_code.h"
#include "values.h"

namespace einkern::tools {
namespace {

/// What the processor can do, as far as the choice of a library's kernels goes.
enum class Vectors { avx512, avx2, older };

Vectors vectors_of_processor() {
  const std::string_view best = kernel::supported_kernels().front()->target.name;
  if (best.starts_with("AVX3")) return Vectors::avx512;
  return best == "AVX2" ? Vectors::avx2 : Vectors::older;
}

/// A shared library that stays loaded.
class Library {
 public:
  explicit Library(std::initializer_list<const char*> names) {
    for (const char* const name : names) {
      if (handle_ == nullptr) handle_ = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
    }
  }
  explicit operator bool() const { return handle_ != nullptr; }
  /// The function of this name, null when there is none.
  template <class Signature>
  Signature* function(const char* name) const {
    return reinterpret_cast<Signature*>(::dlsym(handle_, name));
  }

 private:
  void* handle_ = nullptr;
};

void set_default(const char* variable, const std::string& value) {
  ::setenv(variable, value.c_str(), 0);
}

template <class T>
void take_cblas(const Library& library, char letter, BlasRoutines<T>& routines) {
  const auto named = [&](const char* rest) { return fmt::format("cblas_{}{}", letter, rest); };
  routines.gemm = library.function<void(int, int, int, int, int, int, T, const T*, int, const T*,
                                        int, T, T*, int)>(named("gemm").c_str());
  routines.gemv =
      library.function<void(int, int, int, int, T, const T*, int, const T*, int, T, T*, int)>(
          named("gemv").c_str());
  routines.dot = library.function<T(int, const T*, int, const T*, int)>(named("dot").c_str());
}

using TextFunction = const char*();

/// OpenBLAS takes processors that it does not know for the oldest of their family.
std::optional<Peer> load_openblas(Vectors vectors, int threads) {
  if (vectors == Vectors::avx512) set_default("OPENBLAS_CORETYPE", "SkylakeX");
  if (vectors == Vectors::avx2) set_default("OPENBLAS_CORETYPE", "Haswell");
  set_default("OPENBLAS_NUM_THREADS", std::to_string(threads));
  // Its threads wait for the next call 2^20 ticks, not 2^26: within its own runs that is long
  // enough, and they are asleep when somebody else's run is timed.
  set_default("OPENBLAS_THREAD_TIMEOUT", "20");
  const Library library({"libopenblas.so.0", "libopenblas.so"});
  if (!library) return {};
  Peer peer;
  peer.name = "openblas";
  take_cblas(library, 's', peer.f32);
  take_cblas(library, 'd', peer.f64);
  if (auto* const config = library.function<TextFunction>("openblas_get_config")) {
    // "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH ..."
    const std::vector<std::string_view> words = split_at(config(), ' ');
    peer.version = words.size() > 1 ? words[1] : words[0];
  }
  if (auto* const core = library.function<TextFunction>("openblas_get_corename"))
    peer.core = core();
  peer.use_threads = library.function<void(int)>("openblas_set_num_threads");
  return peer;
}

constexpr std::initializer_list<const char*> kBlisNames = {"libblis.so.4", "libblis.so"};

std::string blis_core(const Library& library) {
  auto* const query = library.function<int()>("bli_arch_query_id");
  auto* const name = library.function<const char*(int)>("bli_arch_string");
  return query != nullptr && name != nullptr ? name(query()) : "";
}

/// Whether this BLIS has its kernels for AVX-512: asked for those that it was built without, it
/// ends the process, so a child asks.
bool blis_has_skx() {
  const pid_t child = ::fork();
  if (child == 0) {
    const int nowhere = ::open("/dev/null", O_WRONLY);
    ::dup2(nowhere, 2);
    const rlimit no_core = {0, 0};
    ::setrlimit(RLIMIT_CORE, &no_core);
    ::setenv("BLIS_ARCH_TYPE", "skx", 1);
    const Library library(kBlisNames);
    ::_exit(library && blis_core(library) == "skx" ? 0 : 1);
  }
  int status = -1;
  return child > 0 && ::waitpid(child, &status, 0) == child && WIFEXITED(status) &&
         WEXITSTATUS(status) == 0;
}

/// BLIS knows processors with AVX-512 by the text of their model name, which virtual machines hide.
std::optional<Peer> load_blis(Vectors vectors, int threads) {
  if (vectors == Vectors::avx512 && ::getenv("BLIS_ARCH_TYPE") == nullptr && blis_has_skx()) {
    set_default("BLIS_ARCH_TYPE", "skx");
  }
  set_default("BLIS_NUM_THREADS", std::to_string(threads));
  const Library library(kBlisNames);
  if (!library) return {};
  Peer peer;
  peer.name = "blis";
  take_cblas(library, 's', peer.f32);
  take_cblas(library, 'd', peer.f64);
  if (auto* const version = library.function<TextFunction>("bli_info_get_version_str")) {
    peer.version = version();
  }
  peer.core = blis_core(library);
  // Its integers have 64 bits.
  if (auto* const set = library.function<void(long)>("bli_thread_set_num_threads")) {
    peer.use_threads = [set](int count) { set(count); };
  }
  return peer;
}

/// oneDNN has one routine with the shape of BLAS, for f32.
std::optional<Peer> load_onednn(Vectors /*vectors*/, int threads) {
  set_default("OMP_NUM_THREADS", std::to_string(threads));
  const Library library({"libdnnl.so.3", "libdnnl.so.2", "libdnnl.so"});
  if (!library) return {};
  struct Version {
    int major, minor, patch;
  };
  Peer peer;
  peer.name = "onednn";
  using Size = std::int64_t;
  auto* const sgemm = library.function<int(char, char, Size, Size, Size, float, const float*, Size,
                                           const float*, Size, float, float*, Size)>("dnnl_sgemm");
  if (sgemm != nullptr) {
    peer.f32.gemm = [sgemm](int /*row-major*/, int transpose_a, int transpose_b, int m, int n,
                            int k, float alpha, const float* a, int lda, const float* b, int ldb,
                            float beta, float* c, int ldc) {
      const auto letter = [](int transpose) { return transpose == kBlasTransposed ? 'T' : 'N'; };
      sgemm(letter(transpose_a), letter(transpose_b), m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
    };
  }
  if (auto* const version = library.function<const Version*()>("dnnl_version")) {
    peer.version = fmt::format("{}.{}.{}", version()->major, version()->minor, version()->patch);
  }
  if (auto* const isa = library.function<int()>("dnnl_get_effective_cpu_isa")) {
    constexpr int kAvx2 = 0x7, kAvx512Core = 0x27;
    const int bits = isa();
    peer.core = (bits & kAvx512Core) == kAvx512Core ? "avx512_core"
                : (bits & kAvx2) == kAvx2           ? "avx2"
                                                    : fmt::format("isa {:#x}", bits);
  }
  // Of the OpenMP runtime that came with it.
  if (auto* const set = library.function<void(int)>("omp_set_num_threads")) peer.use_threads = set;
  return peer;
}

/// A library, how to load it, and the cores that are right.
struct Kind {
  std::string_view name, package;
  std::optional<Peer> (*load)(Vectors, int threads);
  std::vector<std::string_view> avx512, avx2;  // cores that use the vectors
};

const std::array<Kind, 3>& kinds() {
  static const std::array<Kind, 3> kKinds = {
      Kind{"openblas",
           "libopenblas0",
           load_openblas,
           {"SkylakeX", "Cooperlake", "SapphireRapids"},
           {"Haswell", "Zen", "Excavator"}},
      Kind{"onednn", "libdnnl2", load_onednn, {"avx512_core"}, {"avx2"}},
      Kind{"blis",
           "libblis4",
           load_blis,
           {"skx", "zen4", "zen5"},
           {"haswell", "zen", "zen2", "zen3"}}};
  return kKinds;
}

bool is_right_core(const Kind& kind, const std::string& core, Vectors vectors) {
  if (vectors == Vectors::older) return true;
  const auto& right = vectors == Vectors::avx512 ? kind.avx512 : kind.avx2;
  return std::ranges::find(right, core) != right.end();
}

}  // namespace

const Peer* Peers::find(const std::string& name) const {
  const auto at = std::ranges::find(found, name, &Peer::name);
  return at == found.end() ? nullptr : &*at;
}

Peers load_peers(const std::string& list, int threads) {
  Peers peers;
  // Before any OpenMP runtime is loaded: threads that wait by spinning would take cores from
  // whoever is timed next.
  set_default("GOMP_SPINCOUNT", "10000");
  const Vectors vectors = vectors_of_processor();
  for (const std::string_view name : split_at(list, ',')) {
    const auto kind = std::ranges::find(kinds(), name, &Kind::name);
    if (kind == kinds().end()) {
      throw UsageError(fmt::format(
          "bench: --against: unknown library '{}'; choices: openblas, onednn, blis", name));
    }
    if (std::ranges::find(peers.asked, name) != peers.asked.end()) continue;
    peers.asked.emplace_back(name);
    std::optional<Peer> peer = kind->load(vectors, threads);
    if (!peer || !peer->f32.gemm || !peer->use_threads) {
      peers.flags.push_back(fmt::format(
          "{}: not built: this machine has no such library (Debian: {})", name, kind->package));
    } else if (!is_right_core(*kind, peer->core, vectors)) {
      peers.flags.push_back(fmt::format("{}: runs kernels for '{}', an older processor: not timed",
                                        name, peer->core));
    } else {
      peers.found.push_back(std::move(*peer));
    }
  }
  return peers;
}

}  // namespace einkern::tools
