#include "graph/names.hpp"

#include "base/error.hpp"

namespace cermet {

std::vector<std::string> Names::fresh(const std::string& base, std::span<const std::string> suffixes) {
  int& number = next_[base + suffixes.front()];
  for (;; ++number) {
    std::vector<std::string> made;
    for (const std::string& suffix : suffixes)
      made.push_back(number == 0 ? base + suffix : fmt::format("{}.{}{}", base, number + 1, suffix));
    if (std::none_of(made.begin(), made.end(), [&](const std::string& name) { return static_cast<bool>(find(name)); }))
      return made;
  }
}

}  // namespace cermet
