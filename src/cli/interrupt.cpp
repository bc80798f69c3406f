#include "cli/interrupt.hpp"

#include <csignal>

#include "base/error.hpp"

namespace cermet::cli {
namespace {

std::atomic<bool> flag{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler writes it");

}  // namespace

void catch_interrupts() {
  flag = false;
  struct sigaction action = {};
  action.sa_handler = [](int) { flag = true; };
  action.sa_flags = static_cast<int>(SA_RESETHAND);  // and no SA_RESTART: a read from a terminal returns
  sigaction(SIGINT, &action, nullptr);
}

const std::atomic<bool>& interrupted() { return flag; }

void stop_if_interrupted() {
  if (flag) fail(Status::cancelled, "interrupted");
}

}  // namespace cermet::cli
