// Configurations that kernels must run in: CERMET_CONFIG and `--config` of the command line, in one form. What selection obeys, and kernels that choose others
// for their parts.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernel/kernel.hpp"

namespace cermet {

/// "gemv.linear: stream=0; gemm.linear.hopper:tile_m=64,tile_n=32": kernels by name, each with fields that spaces or commas separate.
class ForcedConfigs {
 public:
  ForcedConfigs() = default;
  /// `source` names the text in messages. Throws Error that quotes an entry without a colon, a word that is no field, and a kernel that is named twice. That
  /// there are such kernels, require_known_kernels (select/select.hpp) checks.
  ForcedConfigs(std::string_view text, std::string_view source);

  /// The fields of a kernel as they were given; nothing where it is not named.
  std::optional<std::string_view> find(std::string_view kernel) const;
  /// Kernels with their fields.
  const std::vector<std::pair<std::string, std::string>>& entries() const { return entries_; }
  /// "--config", "environment variable CERMET_CONFIG".
  const std::string& source() const { return source_; }

 private:
  std::string source_;
  std::vector<std::pair<std::string, std::string>> entries_;
};

/// What is obeyed in this process: CERMET_CONFIG, which is not even read after a call of force_configs(). That must come before anything is chosen.
const ForcedConfigs& forced_configs();
void force_configs(ForcedConfigs configs);

/// Those of a kernel's configurations that have the fields of the text, in their order; the kernel's own choice for a text without fields. Throws Error,
/// which begins with `source` and says which there are.
std::vector<Config> configs_with(const Kernel& kernel, std::span<const Config> configs, std::string_view text, std::string_view source);

/// The kernel of an operator inside another kernel, and how it runs; null where every one declines.
struct PartChoice {
  const Kernel* kernel = nullptr;
  Config config = {};
};
/// The first that takes the region, in its own way; where forced_configs() names one that takes it, that one, in the first configuration that it may.
PartChoice choose_part(std::span<const Kernel* const> kernels, const Region& region);

}  // namespace cermet
