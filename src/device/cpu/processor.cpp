#include "device/cpu/processor.hpp"

#include <unistd.h>

#include <algorithm>
#include <fstream>

namespace cermet {
namespace {

/// From the kernel's description of the first core.
std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "";
}

std::int64_t cache_bytes(int name) { return std::max<std::int64_t>(0, sysconf(name)); }

}  // namespace

const Processor& processor() {
  static const Processor found{processor_name(), cache_bytes(_SC_LEVEL1_DCACHE_SIZE),
                               cache_bytes(_SC_LEVEL2_CACHE_SIZE), cache_bytes(_SC_LEVEL3_CACHE_SIZE)};
  return found;
}

}  // namespace cermet
