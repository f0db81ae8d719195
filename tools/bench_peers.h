// SPDX-License-Identifier: Apache-2.0
// BLAS libraries to compare with, loaded at run time when the machine has them.
#pragma once

#include <functional>
#include <string>
#include <type_traits>
#include <vector>

#include "../engine/base/dtype.h"

namespace einkern::tools {

// Constants of the C interface of BLAS.
inline constexpr int kBlasRowMajor = 101, kBlasPlain = 111, kBlasTransposed = 112;

/// Routines of the C interface of BLAS for one element type; gemv and dot may be missing.
template <class T>
struct BlasRoutines {
  std::function<void(int order, int transpose_a, int transpose_b, int m, int n, int k, T alpha,
                     const T* a, int lda, const T* b, int ldb, T beta, T* c, int ldc)>
      gemm;
  std::function<void(int order, int transpose, int rows, int columns, T alpha, const T* a, int lda,
                     const T* x, int x_stride, T beta, T* y, int y_stride)>
      gemv;
  std::function<T(int n, const T* x, int x_stride, const T* y, int y_stride)> dot;
};

/// A library and the kernels that it runs on this processor.
struct Peer {
  std::string name;     // as --against names it
  std::string version;  // in the library's own words
  std::string core;     // the same for the kernels it chose
  BlasRoutines<float> f32;
  BlasRoutines<double> f64;
  std::function<void(int threads)> use_threads;  // of calls from this thread

  bool has(DType dtype) const {
    return dtype == DType::f32 ? !!f32.gemm : dtype == DType::f64 && f64.gemm;
  }
  template <class T>
  const BlasRoutines<T>& routines() const {
    if constexpr (std::is_same_v<T, float>) {
      return f32;
    } else {
      return f64;
    }
  }
};

/// What --against asked for: those that can be timed, and why others cannot.
struct Peers {
  std::vector<std::string> asked;
  std::vector<Peer> found;
  std::vector<std::string> flags;  // "blis: not built ..."

  const Peer* find(const std::string& name) const;
};

/// Loads the libraries of a list such as `openblas,onednn,blis`, with the kernels that suit this
/// processor forced by their environment variables (a variable that is set stays) and `threads`
/// threads. One that is not there, or that chose kernels for an older processor, is flagged.
/// UsageError for an unknown name.
Peers load_peers(const std::string& list, int threads);

}  // namespace einkern::tools
