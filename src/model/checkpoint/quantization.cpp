#include "model/checkpoint/quantization.hpp"

#include <optional>

#include "base/error.hpp"
#include "io/safetensors.hpp"
#include "model/checkpoint/compressed_tensors.hpp"
#include "model/checkpoint/modelslim.hpp"
#include "model/linear_modules.hpp"

namespace cermet {
namespace {

constexpr JsonLimits quantization_limits{
    .max_bytes = std::size_t{256} << 20, .max_values = std::size_t{8} << 20, .max_depth = 32};

}  // namespace

Quantization quantize_projections(const ModelConfig& config, const LinearScheme& scheme) {
  Quantization quantization;
  for (LinearModule& module : linear_modules(config))
    if (is_projection(module)) quantization.modules.emplace(std::move(module.name), scheme);
  return quantization;
}

void as_stored(Quantization& quantization, const ModelConfig& config,
               const std::function<const StoredTensor*(const std::string&)>& find) {
  if (quantization.format != Quantization::Format::compressed_tensors) return;
  for (const LinearModule& module : linear_modules(config)) {
    const auto quantized = quantization.modules.find(module.name);
    if (quantized == quantization.modules.end()) continue;
    const StoredTensor *weight = find(module.name + ".weight"), *scale = find(module.name + ".weight_scale");
    if (weight == nullptr) continue;
    quantization.packed.erase(module.name);
    if (!stored_reals.contains(weight->dtype)) continue;
    const bool may_be_none = !is_projection(module) || module.expert >= 0;
    if (scale != nullptr) quantization.dense.insert(module.name);
    else if (may_be_none) quantization.modules.erase(quantized);
  }
}

Quantization read_quantization(const std::filesystem::path& folder, const ModelConfig& config) {
  const JsonDocument document = JsonDocument::read(folder / "config.json", quantization_limits);
  std::optional<Json> stated = document.root().find("quantization_config");
  const std::optional<Json> older = document.root().find("compression_config");
  if (stated && older) older->unexpected("none beside quantization_config");
  if (!stated) stated = older;
  std::error_code ignored;
  if (std::filesystem::exists(folder / modelslim_description_file, ignored)) {
    if (stated) stated->unexpected(fmt::format("none beside {}", modelslim_description_file));
    return read_modelslim(JsonDocument::read(folder / modelslim_description_file, quantization_limits).root(), config);
  }
  return stated ? read_compressed_tensors(*stated, config) : Quantization{};
}

}  // namespace cermet
