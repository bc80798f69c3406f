#include "cli/ui/interrupt.hpp"

#include <semaphore.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <ctime>
#include <string_view>
#include <thread>

#include "base/error.hpp"

namespace cermet::cli {
namespace {

std::atomic<bool> flag{false}, stops_by_itself{false}, prints_json{false};
std::atomic<std::int64_t> first_ns{0};
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<std::int64_t>::is_always_lock_free,
              "a signal handler writes them");
sem_t pressed;

/// A terminal, `timeout` and `cermet launch` may each send the same Ctrl-C to a rank: what comes this soon is one.
constexpr std::int64_t one_press_ns = 250'000'000;
/// What a verb has to stop by itself, before its process is ended.
constexpr std::chrono::milliseconds patience(1000);

void note_interrupt(int signal) {
  const int error = errno;
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  const std::int64_t now_ns = std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
  if (!flag.exchange(true)) {
    first_ns = now_ns;
    sem_post(&pressed);
  } else if (now_ns - first_ns > one_press_ns) {
    std::signal(signal, SIG_DFL);
    raise(signal);
  }
  errno = error;
}

void say(int descriptor, std::string_view text) {
  if (::write(descriptor, text.data(), text.size()) < 0) return;  // the pipe is closed
}

/// Ends the process where its verb is deaf: it loads, compiles, or runs something long.
void watch() {
  for (;;) {
    if (sem_wait(&pressed) != 0) continue;
    const std::int64_t press = first_ns;
    std::this_thread::sleep_for(patience);
    if (!flag || first_ns != press || stops_by_itself) continue;
    say(STDERR_FILENO, "cermet: error: interrupted\n");
    if (prints_json) say(STDOUT_FILENO, "{\"error\":\"interrupted\"}\n");
    _exit(130);
  }
}

/// A thread that gets no signals, so that a read from a terminal on the main thread returns.
void start_watch() {
  sem_init(&pressed, 0, 0);
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  std::thread(watch).detach();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace

void catch_interrupts() {
  static const bool watched = (start_watch(), true);
  static_cast<void>(watched);
  flag = false;
  struct sigaction action = {};
  action.sa_handler = note_interrupt;  // without SA_RESTART: a read from a terminal returns
  sigaction(SIGINT, &action, nullptr);
}

void catch_interrupts(bool json) {
  prints_json = json;
  catch_interrupts();
}

void stop_at_own_pace() { stops_by_itself = true; }

const std::atomic<bool>& interrupted() { return flag; }

void stop_if_interrupted() {
  if (flag) fail(Status::cancelled, "interrupted");
}

}  // namespace cermet::cli
