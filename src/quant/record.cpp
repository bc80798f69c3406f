#include "quant/record.hpp"

#include "io/json_file.hpp"
#include "io/json_value.hpp"
#include "model/checkpoint/checkpoint_files.hpp"

namespace cermet {

std::string QuantizationRecord::to_json() const {
  JsonValue list = JsonValue::array();
  for (const LayerResult& layer : layers) list.push_back(layer.to_value());
  const JsonValue object{{"version", 1},
                         {"policy", policy},
                         {"anti_outlier", anti_outlier},
                         {"clamp_percentile", clamp_percentile},
                         {"range", range},
                         {"prompts", prompts},
                         {"tokens", tokens},
                         {"layers", std::move(list)},
                         {"rounded", rounded}};
  return object.dump(1) + "\n";
}

std::optional<QuantizationRecord> QuantizationRecord::read(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / file_name;
  std::error_code ignored;
  if (!std::filesystem::exists(file, ignored)) return std::nullopt;
  const JsonDocument document = JsonDocument::read(file);
  const Json root = document.root().as_object();
  root.at("version").as_integer(1, 1);
  QuantizationRecord record;
  record.policy = root.at("policy").as_string();
  record.anti_outlier = root.at("anti_outlier").as_string();
  record.clamp_percentile = root.at("clamp_percentile").as_number();
  record.range = root.at("range").as_number();
  record.prompts = root.at("prompts").as_integer(0);
  record.tokens = root.at("tokens").as_integer(0);
  for (const Json layer : root.at("layers").as_array()) record.layers.push_back(LayerResult::from_json(layer));
  for (const Json line : root.at("rounded").as_array()) record.rounded.emplace_back(line.as_string());
  return record;
}

}  // namespace cermet
