#include "runtime/case_process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <thread>
#include <vector>

#include "base/env.hpp"
#include "base/error.hpp"
#include "base/own_file.hpp"

extern char** environ;  // NOLINT(readability-redundant-declaration): not every C library declares it

namespace cermet {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr int report_descriptor = 3;  // in the new process
constexpr std::size_t longest_line = 1 << 16;

/// The command line to start. A name without a folder is looked up in PATH.
std::string program_of(const KernelCheckOptions& options) {
  if (!options.program.empty()) return options.program;
  if (const std::string& given = env::value(env::Name::CERMET_PROGRAM); !given.empty()) return given;
  std::error_code ignored;
  for (const fs::path& path : program_places())
    if (fs::is_regular_file(path, ignored)) return path.string();
  return "cermet";
}

/// A started process with the end of a pipe that it writes to. It is dead and gone when the object is.
class CaseProcess {
 public:
  CaseProcess(const std::string& program, std::vector<std::string> arguments) {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) fail(Status::io, "pipe: cannot be made: {}", std::strerror(errno));
    read_end_ = ends[0];
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    for (const int standard : {0, 1, 2})
      posix_spawn_file_actions_addopen(&actions, standard, "/dev/null", standard == 0 ? O_RDONLY : O_WRONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, ends[1], report_descriptor);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes,
                             POSIX_SPAWN_SETPGROUP);  // a group of its own, so that all that it starts ends with it
    std::vector<char*> pointers;
    arguments.insert(arguments.begin(), program);
    for (std::string& argument : arguments) pointers.push_back(argument.data());
    pointers.push_back(nullptr);
    const int failed = posix_spawnp(&process_, program.c_str(), &actions, &attributes, pointers.data(), environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    ::close(ends[1]);
    if (failed == 0) return;
    ::close(read_end_);
    fail(Status::io,
         "program {}: expected Cermet's command line, which runs a kernel's cases, found: {}; CERMET_PROGRAM names it",
         program, std::strerror(failed));
  }
  ~CaseProcess() {
    if (process_ > 0) {
      kill(-process_, SIGKILL);
      wait(std::chrono::milliseconds(0));
    }
    ::close(read_end_);
  }
  CaseProcess(const CaseProcess&) = delete;
  CaseProcess& operator=(const CaseProcess&) = delete;

  int descriptor() const { return read_end_; }
  /// Its exit status, as waitpid gives it. It has closed its end of the pipe, and is killed where it does not end soon
  /// after that.
  int wait(std::chrono::milliseconds patience = std::chrono::seconds(2)) {
    int status = 0;
    const auto deadline = Clock::now() + patience;
    for (pid_t ended = 0;
         (ended = waitpid(process_, &status, WNOHANG)) != process_ && !(ended < 0 && errno != EINTR);) {
      if (Clock::now() > deadline) kill(-process_, SIGKILL);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    kill(-process_, SIGKILL);  // what it left behind in its group
    process_ = -1;
    return status;
  }

 private:
  pid_t process_ = -1;
  int read_end_ = -1;
};

class ReportReader {
 public:
  ReportReader(CaseProcess& process, const KernelCheckOptions& options) : process_(process), options_(options) {}

  CaseProcessResult read() {
    const auto patience = std::chrono::seconds(options_.seconds);
    for (auto deadline = Clock::now() + patience; !ended_;) {
      options_.between();
      pollfd waiting{process_.descriptor(), POLLIN, 0};
      const int ready = poll(&waiting, 1, 100);
      if (ready > 0 && take_bytes()) deadline = Clock::now() + patience;
      else if (!ended_ && Clock::now() > deadline) {
        result_.failure =
            fmt::format("{}expected it to end within {} seconds, found it still running", before(), options_.seconds);
        return std::move(result_);
      }
    }
    if (done_ || !result_.failure.empty()) return std::move(result_);
    const int status = process_.wait();
    if (WIFSIGNALED(status))
      result_.failure =
          fmt::format("{}expected it to return, found a crash: {}", before(), strsignal(WTERMSIG(status)));
    else
      result_.failure = fmt::format("{}expected it to return, found that its process ended with exit code {}", before(),
                                    WEXITSTATUS(status));
    return std::move(result_);
  }

 private:
  std::string before() const { return at_.empty() ? "" : at_ + ": "; }

  /// Whether there was anything but the end.
  bool take_bytes() {
    std::array<char, 4096> piece;
    const ssize_t count = ::read(process_.descriptor(), piece.data(), piece.size());
    if (count < 0 && errno == EINTR) return false;
    ended_ = count <= 0;
    if (ended_) return false;
    text_.append(piece.data(), static_cast<std::size_t>(count));
    for (std::size_t end = text_.find('\n'); end != std::string::npos; end = text_.find('\n')) {
      take_line(std::string_view(text_).substr(0, end));
      text_.erase(0, end + 1);
    }
    if (text_.size() > longest_line) text_.clear();
    return true;
  }

  void take_line(std::string_view line) {
    const std::size_t space = std::min(line.find(' '), line.size());
    const std::string_view word = line.substr(0, space), rest = line.substr(std::min(space + 1, line.size()));
    if (word == "device") result_.device = rest;
    else if (word == "at") at_ = rest;
    else if (word == "failed") result_.failure = rest;
    else if (word == "done") {
      result_.counts = rest;
      done_ = true;
    }
  }

  CaseProcess& process_;
  const KernelCheckOptions& options_;
  CaseProcessResult result_;
  std::string text_, at_;
  bool ended_ = false, done_ = false;
};

}  // namespace

CaseProcessResult run_case_process(const fs::path& manifest, const KernelCheckOptions& options) {
  const std::vector<std::string> arguments{
      "kernel", "cases", manifest.string(), "--device", options.device, "--report", std::to_string(report_descriptor)};
  CaseProcess process(program_of(options), arguments);
  return ReportReader(process, options).read();
}

}  // namespace cermet
