#include "kernel/cuda/sampling/rows.hpp"

#include <algorithm>
#include <cmath>

namespace cermet::cuda {

RowShares row_shares(const Config& config, RowShares own) {
  return {static_cast<int>(config.find("threads").value_or(own.threads)),
          static_cast<int>(config.find("cluster").value_or(own.cluster))};
}

std::vector<Config> row_configs(const Target& target, bool clusters) {
  std::vector<Config> list(1);
  for (const int threads : {256, 512, 1024}) {
    list.push_back(clusters ? Config{{"threads", threads}, {"cluster", 1}} : Config{{"threads", threads}});
    if (clusters && target.compute_capability >= 90) list.push_back({{"threads", threads}, {"cluster", 8}});
  }
  return list;
}

double row_seconds(const Target& target, const DeviceLimits& limits, RowShares shares, double rows, double row_bytes,
                   double passes) {
  const double cycle = 1 / limits.clock_hz,
               rounds = std::max(1.0, std::ceil(rows * shares.cluster / target.multiprocessors));
  const double reading = rounds * passes * row_bytes / shares.cluster / 20 * cycle;
  return (3500 + (shares.cluster > 1 ? 1500 : 0)) * cycle +
         std::max(reading, rows * row_bytes / limits.read_bytes_per_second);
}

}  // namespace cermet::cuda
