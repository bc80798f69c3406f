#include "fuse/split_gates.hpp"
#include "fuse/split_sums.hpp"
#include "runtime/step/compilation.hpp"
#include "select/select.hpp"

namespace cermet {
namespace {

/// Puts several nodes in the place of one where kernels take what they become part of.
std::string split_nodes(Compilation& c, decltype(split_gates)& split, const char* what) {
  const FusionMode mode = c.options.fusion.mode;
  if (mode == FusionMode::none) return "nothing is fused";
  SplitNodes made = split(c.graph(), c.options.maximum, c.device.target(),
                          [&](const Region& region) { return why_apart(mode, region).empty() && is_taken(region); });
  c.state->graph = std::move(made.graph);
  return fmt::format("{} {}", made.count, what);
}

}  // namespace

std::string step::split_gates(Compilation& c) { return split_nodes(c, cermet::split_gates, "gates"); }
std::string step::split_sums(Compilation& c) { return split_nodes(c, cermet::split_sums, "sums"); }

}  // namespace cermet
