#include "model/arch/rope.hpp"

#include <array>
#include <utility>

#include "model/arch/fields.hpp"

namespace cermet {
namespace {

constexpr double largest_theta = 1e15, largest_factor = 1e6;

constexpr std::array<std::pair<std::string_view, RopeScaling>, 5> rope_types{{
    {"default", RopeScaling::plain},
    {"linear", RopeScaling::linear},
    {"dynamic", RopeScaling::dynamic},
    {"yarn", RopeScaling::yarn},
    {"llama3", RopeScaling::llama3},
}};

RopeScaling parse_type(Json parameters) {
  std::optional<Json> field = parameters.find("rope_type");
  if (!field) field = parameters.find("type");
  if (!field) return RopeScaling::plain;
  for (const auto& [name, type] : rope_types) {
    if (field->as_string() == name) return type;
  }
  field->unexpected("default, linear, dynamic, yarn or llama3", Status::unsupported);
}

/// The object that holds the parameters: a non-empty `rope_scaling` wins over `rope_parameters`, as in transformers.
std::optional<Json> parameters_of(Json root) {
  for (const std::string_view key : {"rope_scaling", "rope_parameters"}) {
    const std::optional<Json> field = root.find(key);
    if (!field || field->as_object().size() == 0) continue;
    for (Json item : *field) {
      if (item.is(JsonKind::object)) item.unexpected("one set of rotary parameters for all layers", Status::unsupported);
    }
    return field;
  }
  return std::nullopt;
}

/// A field that a type cannot do without.
double required(Json parameters, std::string_view key, double low, double high) {
  if (!parameters.find(key)) static_cast<void>(parameters.at(key).as_number());  // absent or null: throws
  return config_field::number(parameters, key, 0, low, high);
}

std::optional<double> optional_number(Json parameters, std::string_view key, double low) {
  if (!parameters.find(key)) return std::nullopt;
  return config_field::number(parameters, key, 0, low, largest_factor);
}

std::int64_t parse_rotary_dim(double factor, std::int64_t head_dim, Json where) {
  const auto dim = static_cast<std::int64_t>(factor * static_cast<double>(head_dim));
  if (dim >= 2 && dim % 2 == 0) return dim;
  where.refuse(fmt::format("expected an even number of rotary dimensions, found {} of head_dim {}", dim, head_dim));
}

void parse_yarn(Json parameters, RopeParameters& rope, const ModelConfig& config) {
  const double implied = static_cast<double>(config.max_position_embeddings) / static_cast<double>(rope.original_max_position_embeddings);
  rope.factor = config_field::number(parameters, "factor", implied, 1, largest_factor);
  rope.attention_factor = optional_number(parameters, "attention_factor", 0);
  rope.mscale = optional_number(parameters, "mscale", 0);
  rope.mscale_all_dim = optional_number(parameters, "mscale_all_dim", 0);
  rope.beta_fast = config_field::number(parameters, "beta_fast", 32, 1e-6, largest_factor);
  rope.beta_slow = config_field::number(parameters, "beta_slow", 1, 1e-6, largest_factor);
  if (rope.beta_fast < rope.beta_slow) parameters.refuse(fmt::format("expected beta_fast >= beta_slow, found {} and {}", rope.beta_fast, rope.beta_slow));
  rope.truncate = config_field::flag(parameters, "truncate", true);
}

void parse_llama3(Json parameters, RopeParameters& rope) {
  rope.factor = required(parameters, "factor", 1, largest_factor);
  rope.low_freq_factor = required(parameters, "low_freq_factor", 1e-6, largest_factor);
  rope.high_freq_factor = required(parameters, "high_freq_factor", 1e-6, largest_factor);
  if (rope.high_freq_factor <= rope.low_freq_factor) {
    parameters.refuse(fmt::format("expected high_freq_factor > low_freq_factor, found {} and {}", rope.high_freq_factor, rope.low_freq_factor));
  }
}

}  // namespace

RopeParameters parse_rope(Json root, const ArchitectureDefinition& definition, const ModelConfig& config) {
  RopeParameters rope;
  const std::optional<Json> found = parameters_of(root);
  const Json parameters = found.value_or(root);  // without an object, its fields are looked for where the oldest spelling has them
  const double theta = config_field::number(root, "rope_theta", definition.rope_theta, 1.0001, largest_theta);
  rope.theta = config_field::number(parameters, "rope_theta", theta, 1.0001, largest_theta);
  const double partial = config_field::number(root, "partial_rotary_factor", 1, 0, 1);
  rope.rotary_dim = parse_rotary_dim(config_field::number(parameters, "partial_rotary_factor", partial, 0, 1), config.head_dim, root);
  rope.original_max_position_embeddings = rope.max_position_embeddings = config.max_position_embeddings;
  if (!found) return rope;

  rope.scaling = parse_type(parameters);
  std::optional<std::int64_t> original = config_field::optional_size(root, "original_max_position_embeddings");
  if (!original) original = config_field::optional_size(parameters, "original_max_position_embeddings");
  rope.original_max_position_embeddings = original.value_or(config.max_position_embeddings);
  switch (rope.scaling) {
    case RopeScaling::plain: break;
    case RopeScaling::linear: rope.factor = required(parameters, "factor", 1, largest_factor); break;
    case RopeScaling::dynamic:
      rope.factor = required(parameters, "factor", 1, largest_factor);
      if (rope.rotary_dim < 4) parameters.refuse(fmt::format("expected at least 4 rotary dimensions for the type dynamic, found {}", rope.rotary_dim));
      break;
    case RopeScaling::yarn: parse_yarn(parameters, rope, config); break;
    case RopeScaling::llama3: parse_llama3(parameters, rope); break;
  }
  return rope;
}

}  // namespace cermet
