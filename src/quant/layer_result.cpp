#include "quant/layer_result.hpp"

#include "base/error.hpp"
#include "io/json_file.hpp"
#include "io/json_value.hpp"

namespace cermet {
namespace {

JsonValue to_object(const ModuleResult& m) {
  JsonValue errors = JsonValue::object();
  for (const auto& [scheme, error] : m.errors) errors[scheme] = error;
  return {{"name", m.name},
          {"scheme", name_of(m.scheme)},
          {"error", m.error},
          {"errors", errors},
          {"anti_outlier", m.anti_outlier},
          {"alpha", m.alpha},
          {"absmax_before", m.absmax_before},
          {"absmax_after", m.absmax_after},
          {"percentile", m.percentile},
          {"threshold", m.threshold},
          {"input_scale", m.input_scale},
          {"clip_ratio", m.clip_ratio},
          {"tokens", m.tokens},
          {"fallback", m.fallback}};
}

ModuleResult module_of(Json object) {
  ModuleResult m;
  m.name = object.at("name").as_string();
  const Json scheme = object.at("scheme");
  const std::optional<LinearScheme> known = scheme_named(scheme.as_string());
  if (!known) scheme.unexpected("the name of a scheme");
  m.scheme = *known;
  m.error = object.at("error").as_number();
  for (const Json error : object.at("errors").as_object()) m.errors.emplace(error.key(), error.as_number());
  m.anti_outlier = object.at("anti_outlier").as_string();
  m.alpha = object.at("alpha").as_number();
  m.absmax_before = object.at("absmax_before").as_number();
  m.absmax_after = object.at("absmax_after").as_number();
  m.percentile = object.at("percentile").as_number();
  m.threshold = object.at("threshold").as_number();
  m.input_scale = object.at("input_scale").as_number();
  m.clip_ratio = object.at("clip_ratio").as_number();
  m.tokens = object.at("tokens").as_integer(0);
  m.fallback = object.at("fallback").as_bool();
  return m;
}

}  // namespace

JsonValue LayerResult::to_value() const {
  JsonValue list = JsonValue::array();
  for (const ModuleResult& m : modules) list.push_back(to_object(m));
  return {{"layer", layer}, {"output_error", output_error}, {"modules", list}, {"expert_tokens", expert_tokens}};
}

std::string LayerResult::to_json() const { return to_value().dump(1) + "\n"; }

LayerResult LayerResult::from_json(std::string_view text, std::string_view file) {
  const JsonDocument document = JsonDocument::parse(text, std::string(file));
  return from_json(document.root());
}

LayerResult LayerResult::from_json(const Json& object) {
  const Json root = object.as_object();
  LayerResult result;
  result.layer = root.at("layer").as_integer(0);
  result.output_error = root.at("output_error").as_number();
  for (const Json m : root.at("modules").as_array()) result.modules.push_back(module_of(m));
  for (const Json count : root.at("expert_tokens").as_array()) result.expert_tokens.push_back(count.as_integer(0));
  return result;
}

}  // namespace cermet
