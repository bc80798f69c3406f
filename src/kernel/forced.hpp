// Configurations that kernels must run in: CERMET_CONFIG and `--config` of the command line, in one form.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cermet {

/// "gemv.linear: stream=0; gemm.linear.hopper:tile_m=64,tile_n=32": kernels by name, each with fields that spaces or
/// commas separate.
class ForcedConfigs {
 public:
  ForcedConfigs() = default;
  /// `source` names the text in messages. Throws Error that quotes an entry without a colon, a word that is no field,
  /// and a kernel that is named twice. That there are such kernels, require_known_kernels (select/select.hpp) checks.
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

/// What is obeyed in this process: CERMET_CONFIG, which is not even read after a call of force_configs(). That must
/// come before anything is chosen.
const ForcedConfigs& forced_configs();
void force_configs(ForcedConfigs configs);

}  // namespace cermet
