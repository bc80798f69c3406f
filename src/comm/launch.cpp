#include "comm/launch.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "base/cores.hpp"
#include "base/env.hpp"
#include "base/error.hpp"

extern char** environ;  // NOLINT(readability-redundant-declaration): not every C library declares it

namespace cermet::comm {
namespace {

using Clock = std::chrono::steady_clock;

std::atomic<int> caught{0};            // the signal that asks this process to end
std::atomic<bool> by_terminal{false};  // the ranks have got it, too: they are in the same group
static_assert(std::atomic<int>::is_always_lock_free, "a signal handler writes it");

/// SIGINT and SIGTERM are noted while this lives.
class SignalsNoted {
 public:
  SignalsNoted() {
    caught = 0;
    struct sigaction action = {};
    action.sa_sigaction = [](int signal, siginfo_t* info, void*) {
      by_terminal = info->si_code == SI_KERNEL;
      caught = signal;
    };
    action.sa_flags = SA_SIGINFO;
    for (std::size_t i = 0; i < signals.size(); ++i) sigaction(signals[i], &action, &before_[i]);
  }
  ~SignalsNoted() {
    for (std::size_t i = 0; i < signals.size(); ++i) sigaction(signals[i], &before_[i], nullptr);
  }
  SignalsNoted(const SignalsNoted&) = delete;
  SignalsNoted& operator=(const SignalsNoted&) = delete;

 private:
  static constexpr std::array<int, 2> signals{SIGINT, SIGTERM};
  std::array<struct sigaction, 2> before_{};
};

/// Lines of one rank's standard error, each with its rank before it.
class PrefixedLines {
 public:
  explicit PrefixedLines(int rank) : prefix_(fmt::format("[rank {}] ", rank)) {}
  void add(std::string_view text) {
    line_ += text;
    for (std::size_t end = line_.find('\n'); end != std::string::npos; end = line_.find('\n')) {
      write(line_.substr(0, end + 1));
      line_.erase(0, end + 1);
    }
    if (line_.size() > longest) finish();
  }
  void finish() {
    if (!line_.empty()) write(line_ + "\n");
    line_.clear();
  }

 private:
  static constexpr std::size_t longest = 1 << 16;
  void write(const std::string& line) { fmt::print(stderr, "{}{}", prefix_, line); }
  std::string prefix_, line_;
};

struct RankProcess {
  pid_t id = -1;
  int errors = -1;  ///< the end of a pipe; -1 of rank 0, and once it is closed
  bool ended = false;
  PrefixedLines lines;
};

/// The variables of this process, but for those that a run sets.
std::vector<std::string> environment_of(const LaunchOptions& options, int rank, const std::string& job) {
  const long cores = std::max(1L, static_cast<long>(usable_cores()) / options.ranks);
  std::vector<std::pair<std::string, std::string>> own{{"RANK", std::to_string(rank)},
                                                       {"WORLD_SIZE", std::to_string(options.ranks)},
                                                       {"LOCAL_RANK", std::to_string(rank)},
                                                       {"LOCAL_WORLD_SIZE", std::to_string(options.ranks)},
                                                       {"MASTER_ADDR", "127.0.0.1"},
                                                       {"CERMET_COMM", "shared"},
                                                       {"CERMET_JOB", job}};
  if (env::value(env::Name::CERMET_THREADS) == "0") own.emplace_back("CERMET_THREADS", std::to_string(cores));
  std::vector<std::string> all;
  for (char** entry = environ; *entry; ++entry) {
    const std::string_view text = *entry, name = text.substr(0, text.find('='));
    if (std::ranges::none_of(own, [&](const auto& variable) { return variable.first == name; })) all.emplace_back(text);
  }
  for (const auto& [name, value] : own) all.push_back(name + "=" + value);
  return all;
}

/// In the new process: only calls that are allowed after fork().
[[noreturn]] void become(char* const* command, char** environment, int rank, int errors, int report, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(127);
  if (rank > 0) {
    const int nothing = ::open("/dev/null", O_RDWR);
    dup2(nothing, STDIN_FILENO);
    dup2(nothing, STDOUT_FILENO);
    dup2(errors, STDERR_FILENO);
  }
  for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, SIG_DFL);
  environ = environment;
  execvp(command[0], command);
  const int reason = errno;
  if (::write(report, &reason, sizeof reason) < 0) _exit(126);
  _exit(127);
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

class Run {
 public:
  explicit Run(const LaunchOptions& options) : options_(options) {}
  ~Run() { end_all(SIGKILL); }

  LaunchResult run() {
    const std::string job =
        fmt::format("launch-{}-{}", getpid(), std::chrono::system_clock::now().time_since_epoch().count());
    for (int rank = 0; rank < options_.ranks; ++rank) start(rank, job);
    while (running_ > 0) {
      pass_on_errors();
      collect();
      pass_on_signal();
      hurry();
    }
    for (RankProcess& process : processes_) {
      drain(process);
      process.lines.finish();
    }
    return result_;
  }

 private:
  void start(int rank, const std::string& job) {
    std::array<int, 2> errors{-1, -1}, report{};
    if (pipe2(report.data(), O_CLOEXEC) != 0 || (rank > 0 && pipe2(errors.data(), O_CLOEXEC) != 0))
      fail(Status::io, "pipe: cannot be made: {}", std::strerror(errno));
    std::vector<std::string> command = options_.command, environment = environment_of(options_, rank, job);
    const std::vector<char*> arguments = pointers_to(command);
    std::vector<char*> variables = pointers_to(environment);
    const pid_t parent = getpid(), child = fork();
    if (child == 0) become(arguments.data(), variables.data(), rank, errors[1], report[1], parent);
    ::close(report[1]);
    if (errors[1] >= 0) ::close(errors[1]);
    if (child < 0) fail(Status::io, "process: cannot be started: {}", std::strerror(errno));
    processes_.push_back({child, errors[0], false, PrefixedLines(rank)});
    if (errors[0] >= 0) fcntl(errors[0], F_SETFL, O_NONBLOCK);
    ++running_;
    int reason = 0;
    const bool failed = ::read(report[0], &reason, sizeof reason) == sizeof reason;  // otherwise closed by exec
    ::close(report[0]);
    if (failed) fail(Status::io, "program {}: cannot be started: {}", options_.command[0], std::strerror(reason));
  }

  void pass_on_errors() {
    std::vector<pollfd> waiting;
    for (const RankProcess& process : processes_)
      if (process.errors >= 0) waiting.push_back({process.errors, POLLIN, 0});
    poll(waiting.data(), waiting.size(), 20);
    for (RankProcess& process : processes_) drain(process);
  }

  static void drain(RankProcess& process) {
    std::array<char, 4096> piece;
    while (process.errors >= 0) {
      const ssize_t count = ::read(process.errors, piece.data(), piece.size());
      if (count > 0) process.lines.add({piece.data(), static_cast<std::size_t>(count)});
      else if (count == 0 || (errno != EINTR && errno != EAGAIN)) {
        ::close(process.errors);
        process.errors = -1;
      } else if (errno == EAGAIN) return;
    }
  }

  void collect() {
    for (std::size_t rank = 0; rank < processes_.size(); ++rank) {
      RankProcess& process = processes_[rank];
      int status = 0;
      if (process.ended || waitpid(process.id, &status, WNOHANG) != process.id) continue;
      process.ended = true;
      --running_;
      const bool exited = WIFEXITED(status);
      if (exited && WEXITSTATUS(status) == 0) continue;
      if (rank == 0 && exited) result_.reported = true;
      if (result_.rank >= 0) continue;
      result_.rank = static_cast<int>(rank);
      if (result_.passed_on == 0) failed_ = Clock::now();
      result_.code = exited ? WEXITSTATUS(status) : 0;
      result_.signal = exited ? 0 : WTERMSIG(status);
    }
  }

  void pass_on_signal() {
    const int signal = caught;
    if (signal == 0 || result_.passed_on != 0) return;
    result_.passed_on = signal;
    if (result_.rank < 0) failed_ = Clock::now();
    if (by_terminal) return;
    for (const RankProcess& process : processes_)
      if (!process.ended) kill(process.id, signal);
  }

  /// Those that do not end by themselves after a failure or a signal are asked to, and then made to.
  void hurry() {
    if ((result_.rank < 0 && result_.passed_on == 0) || running_ == 0) return;
    const double seconds = std::chrono::duration<double>(Clock::now() - failed_).count();
    if (seconds > options_.grace && asked_ == 0) end_all(SIGTERM);
    if (seconds > options_.grace + 1 && asked_ == 1) end_all(SIGKILL);
  }

  void end_all(int signal) {
    ++asked_;
    for (const RankProcess& process : processes_)
      if (!process.ended) kill(process.id, signal);
    if (signal != SIGKILL) return;
    for (RankProcess& process : processes_)
      if (!process.ended && waitpid(process.id, nullptr, 0) == process.id) {
        process.ended = true;
        --running_;
      }
  }

  const SignalsNoted signals_noted_;
  const LaunchOptions& options_;
  std::vector<RankProcess> processes_;
  int running_ = 0, asked_ = 0;
  LaunchResult result_;
  Clock::time_point failed_;
};

}  // namespace

LaunchResult launch(const LaunchOptions& options) {
  require(options.ranks >= 1 && options.ranks <= 1024, "launch: expected a number of processes in [1, 1024], found {}",
          options.ranks);
  require(!options.command.empty(), "launch: expected a command, found none");
  return Run(options).run();
}

}  // namespace cermet::comm
