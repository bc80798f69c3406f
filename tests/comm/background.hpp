// A command that runs beside a test, with the processes that it starts.
#pragma once

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/model/scratch.hpp"

namespace cermet::test {

class Background {
 public:
  /// Runs `command` by a shell, which it takes the place of.
  explicit Background(const std::string& command) {
    process_ = fork();
    if (process_ != 0) return;
    setenv("CERMET_TUNING", "off", 1);
    std::signal(SIGINT, SIG_DFL);  // a shell ignores it for what it runs in the background
    for (const auto& [name, descriptor] : {std::pair("out", STDOUT_FILENO), std::pair("err", STDERR_FILENO)})
      dup2(open((folder_ / name).c_str(), O_WRONLY | O_CREAT, 0600), descriptor);
    execl("/bin/sh", "sh", "-c", ("exec " + command).c_str(), nullptr);
    _exit(127);
  }
  ~Background() {
    if (process_ > 0) kill(process_, SIGKILL);
    wait(std::chrono::seconds(1));
  }
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;

  /// Processes that it started and that still run.
  std::vector<pid_t> children() const {
    std::ifstream file("/proc/" + std::to_string(process_) + "/task/" + std::to_string(process_) + "/children");
    std::vector<pid_t> list;
    for (pid_t child = 0; file >> child;) list.push_back(child);
    return list;
  }
  void signal(int number) const {
    if (process_ > 0) kill(process_, number);
  }
  /// Its exit code, 128 + signal where it was killed; -1 where it still runs after that time.
  int wait(std::chrono::milliseconds patience) {
    for (const auto end = std::chrono::steady_clock::now() + patience; process_ > 0;) {
      int status = 0;
      if (waitpid(process_, &status, WNOHANG) == process_) {
        process_ = -1;
        code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      } else if (std::chrono::steady_clock::now() > end) return -1;
      else std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return code_;
  }
  std::string out() const { return content_of(folder_ / "out"); }
  std::string err() const { return content_of(folder_ / "err"); }

 private:
  ScratchFolder folder_;
  pid_t process_ = -1;
  int code_ = -1;
};

/// Whether a rank has joined the others: it maps memory whose name is gone.
inline bool has_joined(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/maps");
  for (std::string line; std::getline(file, line);)
    if (line.find("/dev/shm/cermet-") != line.npos && line.find("(deleted)") != line.npos) return true;
  return false;
}

/// The processes of a launcher once all of them have joined; none where that takes a minute.
inline std::vector<pid_t> joined_ranks(const Background& launcher, int ranks) {
  for (const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
       std::chrono::steady_clock::now() < end;) {
    std::vector<pid_t> processes = launcher.children();
    if (processes.size() == static_cast<std::size_t>(ranks) && std::ranges::all_of(processes, has_joined))
      return processes;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return {};
}

}  // namespace cermet::test
