// SPDX-License-Identifier: Apache-2.0
// Runs a built program and keeps what it returned and printed.
#include "process.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <stdexcept>

namespace einkern::test {
namespace {

/// A file, so that no amount of output blocks the program.
int temporary_file() {
  std::string name = (std::filesystem::temp_directory_path() / "einkern-test-XXXXXX").string();
  const int fd = ::mkostemp(name.data(), O_CLOEXEC);
  if (fd < 0) throw std::runtime_error("no temporary file");
  ::unlink(name.c_str());
  return fd;
}

std::string read_and_close(int fd) {
  std::string text;
  std::array<char, 4096> piece = {};
  ::lseek(fd, 0, SEEK_SET);
  for (ssize_t count = 0; (count = ::read(fd, piece.data(), piece.size())) > 0;) {
    text.append(piece.data(), static_cast<std::size_t>(count));
  }
  ::close(fd);
  return text;
}

[[noreturn]] void become(const std::vector<char*>& arguments, const std::string& folder, int out,
                         int err, const std::vector<std::string>& environment) {
  ::signal(SIGINT, SIG_DFL);
  const int in = ::open("/dev/null", O_RDONLY);
  ::dup2(in, 0);
  ::dup2(out, 1);
  ::dup2(err, 2);
  for (const std::string& setting : environment) ::putenv(const_cast<char*>(setting.c_str()));
  if (::chdir(folder.c_str()) == 0) ::execv(arguments[0], arguments.data());
  ::_exit(127);
}

}  // namespace

Process::Process(const std::string& program, const std::vector<std::string>& arguments,
                 const std::string& folder, const std::vector<std::string>& environment)
    : out_(temporary_file()), err_(temporary_file()) {
  std::vector<char*> pointers = {const_cast<char*>(program.c_str())};
  for (const std::string& argument : arguments) {
    pointers.push_back(const_cast<char*>(argument.c_str()));
  }
  pointers.push_back(nullptr);
  pid_ = ::fork();
  if (pid_ < 0) throw std::runtime_error("cannot fork");
  if (pid_ == 0) become(pointers, folder, out_, err_, environment);
}

void Process::interrupt() const { ::kill(pid_, SIGINT); }

Finished Process::wait() {
  int status = 0;
  ::waitpid(pid_, &status, 0);
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return {code, read_and_close(out_), read_and_close(err_)};
}

Finished einkern_in(const std::string& folder, const std::vector<std::string>& arguments,
                    const std::vector<std::string>& environment) {
  return Process(EINKERN_COMMAND, arguments, folder, environment).wait();
}

}  // namespace einkern::test
