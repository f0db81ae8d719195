// SPDX-License-Identifier: Apache-2.0
// A folder of small .npy files that the tests of the command name.
#pragma once

#include <string>
#include <vector>

#include "../../einkern.h"
#include "../engine/tensor/io/scratch.h"
#include "process.h"

namespace einkern::test {

/// A.npy f32 (2, 3), B.npy f32 (3, 4), I.npy i64 (2, 3), S.npy f64 (), T.npy bool (2, 3), and
/// broken.npy, which is none.
class ArraysFolder {
 public:
  ArraysFolder() {
    save("A", tensor<float>({1, 2, 3, 4, 5, 6}, {2, 3}));
    save("B", tensor<float>({1, 0, 0, 1, 0, 1, 0, 1, 0, 0, 1, 1}, {3, 4}));
    save("I", tensor<std::int64_t>({1, 2, 3, 4, 5, 6}, {2, 3}));
    save("S", full({}, 2.5, f64));
    save("T", full({2, 3}, 1, boolean));
    write_text(scratch_ / "broken.npy", "no array");
  }

  void save(const std::string& name, const Tensor& tensor) const {
    save_npy(scratch_ / (name + ".npy"), tensor);
  }
  Tensor load(const std::string& name) const { return load_npy(scratch_ / (name + ".npy")); }
  bool has(const std::string& file) const { return std::filesystem::exists(scratch_ / file); }

  /// Runs `einkern` there.
  Finished run(const std::vector<std::string>& arguments,
               const std::vector<std::string>& environment = {}) const {
    return einkern_in(scratch_.path().string(), arguments, environment);
  }
  const ScratchFolder& scratch() const { return scratch_; }

 private:
  ScratchFolder scratch_;
};

}  // namespace einkern::test
