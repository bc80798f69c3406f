#include "fuse/split_gates.hpp"
#include "fuse/split_sums.hpp"
#include "runtime/step/compilation.hpp"
#include "select/select.hpp"

namespace cermet {

std::string step::split_gates(Compilation& c) {
  const FusionMode mode = c.options.fusion.mode;
  if (mode == FusionMode::none) return "nothing is fused";
  SplitGates split = cermet::split_gates(c.graph(), c.options.maximum, c.device.target(),
                                         [&](const Region& region) { return why_apart(mode, region).empty() && is_taken(region); });
  c.state->graph = std::move(split.graph);
  return fmt::format("{} gates", split.count);
}

std::string step::split_sums(Compilation& c) {
  const FusionMode mode = c.options.fusion.mode;
  if (mode == FusionMode::none) return "nothing is fused";
  SplitSums split = cermet::split_sums(c.graph(), c.options.maximum, c.device.target(),
                                       [&](const Region& region) { return why_apart(mode, region).empty() && is_taken(region); });
  c.state->graph = std::move(split.graph);
  return fmt::format("{} sums", split.count);
}

}  // namespace cermet
