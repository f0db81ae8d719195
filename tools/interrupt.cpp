// SPDX-License-Identifier: Apache-2.0
// Signals to a clean end of the process, taken by a thread of their own.
#include "interrupt.h"

#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <ctime>
#include <mutex>
#include <thread>

namespace einkern::tools {
namespace {

std::mutex& writing() {
  static auto& mutex = *new std::mutex;  // outlives main, since the watching thread does
  return mutex;
}

[[noreturn]] void end(int signal) {
  std::fputs("einkern: interrupted\n", stderr);
  ::_exit(128 + signal);
}

void watch(const sigset_t& signals) {
  int signal = 0;
  while (sigwait(&signals, &signal) != 0) {
  }
  constexpr timespec kPause{.tv_sec = 0, .tv_nsec = 20'000'000};
  while (!writing().try_lock()) {
    if (sigtimedwait(&signals, nullptr, &kPause) > 0) break;
  }
  end(signal);
}

}  // namespace

void watch_for_interrupts() {
  // A file beyond the size that a process may write is an error of writing, which removes it.
  ::signal(SIGXFSZ, SIG_IGN);
  sigset_t signals;
  sigemptyset(&signals);
  bool any = false;
  for (const int signal : {SIGINT, SIGTERM}) {
    struct sigaction before = {};
    // A shell has background jobs ignore SIGINT; that stays so.
    if (sigaction(signal, nullptr, &before) != 0 || before.sa_handler == SIG_IGN) continue;
    sigaddset(&signals, signal);
    any = true;
  }
  if (!any || pthread_sigmask(SIG_BLOCK, &signals, nullptr) != 0) return;
  std::thread(watch, signals).detach();
}

Uninterrupted::Uninterrupted() { writing().lock(); }
Uninterrupted::~Uninterrupted() { writing().unlock(); }

}  // namespace einkern::tools
