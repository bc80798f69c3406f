#include "base/cores.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace cermet {
namespace {

namespace fs = std::filesystem;

/// 0 where the system does not say. The set grows until it holds every processor the system could have.
int allowed_cores() {
  for (int processors = CPU_SETSIZE; processors <= 1 << 20; processors *= 2) {
    const std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> set(CPU_ALLOC(static_cast<std::size_t>(processors)),
                                                               [](cpu_set_t* s) { CPU_FREE(s); });
    const std::size_t bytes = CPU_ALLOC_SIZE(static_cast<std::size_t>(processors));
    if (set && sched_getaffinity(0, bytes, set.get()) == 0) return CPU_COUNT_S(bytes, set.get());
  }
  return 0;
}

/// A hierarchy of control groups that limits processor time, as far as this process sees it.
struct Hierarchy {
  bool is_v2 = false;
  std::string top;    ///< the group that is mounted
  std::string mount;  ///< where
};

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, at);) parts.push_back(part);
  return parts;
}

bool has_word(const std::string& list, const std::string& word) {
  return ("," + list + ",").find("," + word + ",") != std::string::npos;
}

/// From mountinfo: ID PARENT DEVICE TOP MOUNT OPTIONS [TAGS...] - TYPE SOURCE OPTIONS (proc(5)).
std::vector<Hierarchy> hierarchies(const fs::path& root) {
  std::vector<Hierarchy> found;
  std::ifstream file(root / "proc/self/mountinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t dash = line.find(" - ");
    if (dash == std::string::npos) continue;
    const std::vector<std::string> mount = split(line.substr(0, dash), ' '), kind = split(line.substr(dash + 3), ' ');
    if (mount.size() < 5 || kind.empty()) continue;
    const bool is_v2 = kind[0] == "cgroup2", is_v1 = kind[0] == "cgroup" && kind.size() > 2 && has_word(kind[2], "cpu");
    if (is_v2 || is_v1) found.push_back({is_v2, mount[3], mount[4]});
  }
  return found;
}

/// This process's group in such a hierarchy, from lines NUMBER:CONTROLLERS:GROUP.
std::string group_in(const Hierarchy& hierarchy, const fs::path& root) {
  std::ifstream file(root / "proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (hierarchy.is_v2 ? controllers.empty() : has_word(controllers, "cpu")) return line.substr(second + 1);
  }
  return "";
}

/// Cores that one group may take; nothing where it sets no limit.
std::optional<double> limit_of(const fs::path& group, bool is_v2) {
  double quota = 0, period = 0;
  if (is_v2) {
    if (std::ifstream file(group / "cpu.max"); !(file >> quota >> period))
      return std::nullopt;  // "max 100000" has no number first
  } else {
    std::ifstream quota_file(group / "cpu.cfs_quota_us"), period_file(group / "cpu.cfs_period_us");
    if (!(quota_file >> quota) || !(period_file >> period)) return std::nullopt;
  }
  return quota > 0 && period > 0 ? std::optional(quota / period) : std::nullopt;  // v1 says -1 for none
}

}  // namespace

std::optional<int> quota_cores(const fs::path& root) {
  std::optional<double> least;
  for (const Hierarchy& hierarchy : hierarchies(root)) {
    const fs::path mount = root / fs::path(hierarchy.mount).relative_path();
    std::string group = group_in(hierarchy, root);
    // A container may see its own group as the top one, while the path is still the host's.
    if (hierarchy.top != "/" && group.starts_with(hierarchy.top)) group.erase(0, hierarchy.top.size());
    for (fs::path below = fs::path(group).relative_path();; below = below.parent_path()) {
      if (const std::optional<double> limit = limit_of(mount / below, hierarchy.is_v2))
        least = std::min(least.value_or(*limit), *limit);
      if (below.empty()) break;
    }
  }
  return least ? std::optional(std::max(1, static_cast<int>(*least))) : std::nullopt;
}

int usable_cores() {
  int cores = allowed_cores();
  if (cores == 0) cores = static_cast<int>(std::thread::hardware_concurrency());
  static const std::optional<int> quota = quota_cores();
  if (quota) cores = std::min(cores, *quota);
  return std::max(1, cores);
}

}  // namespace cermet
