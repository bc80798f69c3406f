// How much is fused: each mode is what a kind of compiler does, so that they can be compared on the same kernels.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace cermet {

struct Region;
struct Rule;

/// `full` has everything that the others have.
enum class FusionMode : std::uint8_t { none, pattern, published, full };

struct FusionModeInfo {
  FusionMode mode{};
  std::string_view name, summary;
};
std::span<const FusionModeInfo> fusion_modes();
std::string_view name_of(FusionMode mode);
/// Throws Error naming `option` beside the modes that there are.
FusionMode fusion_mode_named(std::string_view option, std::string_view name);

/// Whether a mode applies a rewrite rule.
bool applies(FusionMode mode, const Rule& rule);
/// Why a mode does not compute a region of several nodes in one kernel, whatever kernels take; empty where it may.
std::string why_apart(FusionMode mode, const Region& region);

}  // namespace cermet
