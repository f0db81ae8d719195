// SPDX-License-Identifier: Apache-2.0
// Runs a built program and keeps what it returned and printed.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace einkern::test {

/// What a program left behind; `code` is 128 + the signal when one ended it, as shells say.
struct Finished {
  int code = -1;
  std::string out, err;
};

/// A program that runs, with no standard input, in a folder, under `name=value` settings beside the
/// inherited ones.
class Process {
 public:
  Process(const std::string& program, const std::vector<std::string>& arguments,
          const std::string& folder, const std::vector<std::string>& environment = {});
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  void interrupt() const;
  Finished wait();

 private:
  pid_t pid_ = -1;
  int out_ = -1, err_ = -1;  // files without a name
};

/// The `einkern` command in a folder, to its end.
Finished einkern_in(const std::string& folder, const std::vector<std::string>& arguments,
                    const std::vector<std::string>& environment = {});

}  // namespace einkern::test
