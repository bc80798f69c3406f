#include "model/arch/rope.hpp"

#include <array>
#include <utility>

#include "model/arch/fields.hpp"

namespace cermet {
namespace {

constexpr double largest_theta = 1e15, smallest_factor = 1e-6, largest_factor = 1e6;

constexpr std::array<std::pair<std::string_view, RopeScaling>, 7> rope_types{{
    {"default", RopeScaling::plain},
    {"linear", RopeScaling::linear},
    {"dynamic", RopeScaling::dynamic},
    {"yarn", RopeScaling::yarn},
    {"llama3", RopeScaling::llama3},
    {"longrope", RopeScaling::longrope},
    {"proportional", RopeScaling::proportional},
}};

RopeScaling parse_type(Json parameters) {
  std::optional<Json> field = parameters.find("rope_type");
  if (!field) field = parameters.find("type");
  if (!field) return RopeScaling::plain;
  for (const auto& [name, type] : rope_types) {
    if (field->as_string() == name) return type;
  }
  field->unexpected("default, linear, dynamic, yarn, llama3, longrope or proportional", Status::unsupported);
}

/// The object that holds the parameters: a non-empty `rope_scaling` wins over `rope_parameters`, as in transformers.
std::optional<Json> parameters_of(Json root) {
  for (const std::string_view key : {"rope_scaling", "rope_parameters"}) {
    const std::optional<Json> field = root.find(key);
    if (!field || field->as_object().size() == 0) continue;
    for (Json item : *field) {
      if (item.is(JsonKind::object))
        item.unexpected("one set of rotary parameters for all layers", Status::unsupported);
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

/// Null is false there and absent is true, as in transformers.
bool parse_truncate(Json parameters) {
  for (Json field : parameters)
    if (field.key() == "truncate") return !field.is(JsonKind::null) && field.as_bool();
  return true;
}

void parse_yarn(Json parameters, RopeParameters& rope) {
  rope.attention_factor = optional_number(parameters, "attention_factor", 0);
  rope.mscale = optional_number(parameters, "mscale", 0);
  rope.mscale_all_dim = optional_number(parameters, "mscale_all_dim", 0);
  const auto rotations = [&](const char* key, double absent) {
    const double found = config_field::number(parameters, key, absent, 0, largest_factor);
    return found == 0 ? absent : found;
  };
  rope.beta_fast = rotations("beta_fast", 32);
  rope.beta_slow = rotations("beta_slow", 1);
  rope.truncate = parse_truncate(parameters);
}

void parse_llama3(Json parameters, RopeParameters& rope) {
  rope.low_freq_factor = required(parameters, "low_freq_factor", smallest_factor, largest_factor);
  rope.high_freq_factor = required(parameters, "high_freq_factor", smallest_factor, largest_factor);
  if (rope.high_freq_factor <= rope.low_freq_factor) {
    parameters.refuse(fmt::format("expected high_freq_factor > low_freq_factor, found {} and {}", rope.high_freq_factor,
                                  rope.low_freq_factor));
  }
}

std::vector<double> parse_factors(Json list, std::int64_t count) {
  if (static_cast<std::int64_t>(list.as_array().size()) != count)
    list.unexpected(fmt::format("an array of {}, half the rotary dimensions", count));
  std::vector<double> factors;
  for (const Json factor : list) {
    factors.push_back(factor.as_number());
    if (!(factors.back() > 0)) factor.unexpected("a number above 0");
  }
  return factors;
}

void parse_longrope(Json parameters, RopeParameters& rope) {
  rope.attention_factor = optional_number(parameters, "attention_factor", 0);
  rope.short_factors = parse_factors(parameters.at("short_factor"), rope.rotary_dim / 2);
  rope.long_factors = parse_factors(parameters.at("long_factor"), rope.rotary_dim / 2);
}

/// Of the types whose frequencies depend on it; those of the default type never do in these architectures, whatever
/// older tools have written.
void check_partial_rotation(Json where, double partial, const RopeParameters& rope) {
  if (rope.scaling == RopeScaling::plain || rope.scaling == RopeScaling::proportional) return;
  const auto rotated = static_cast<std::int64_t>(partial * static_cast<double>(rope.rotary_dim));
  if (rotated != rope.rotary_dim)
    where.refuse(fmt::format("expected partial_rotary_factor 1 with this rope_type, because all {} dimensions of a "
                             "head rotate, found {}",
                             rope.rotary_dim, partial),
                 Status::unsupported);
}

}  // namespace

RopeParameters parse_rope(Json root, const ArchitectureDefinition& definition, const ModelConfig& config) {
  RopeParameters rope;
  const std::optional<Json> found = parameters_of(root);
  const Json parameters =
      found.value_or(root);  // without an object, its fields are looked for where the oldest spelling has them
  const double theta = config_field::number(root, "rope_theta", definition.rope_theta, 1.0001, largest_theta);
  rope.theta = config_field::number(parameters, "rope_theta", theta, 1.0001, largest_theta);
  if (config.head_dim % 2 != 0)
    root.refuse(fmt::format("expected an even number of rotary dimensions, found {} of head_dim {}", config.head_dim,
                            config.head_dim));
  rope.rotary_dim = config.head_dim;
  rope.original_max_position_embeddings = rope.max_position_embeddings = config.max_position_embeddings;
  if (!found) return rope;

  rope.scaling = parse_type(parameters);
  if (rope.scaling == RopeScaling::plain) return rope;
  std::optional<std::int64_t> original = config_field::optional_whole_size(root, "original_max_position_embeddings");
  if (!original) original = config_field::optional_whole_size(parameters, "original_max_position_embeddings");
  rope.original_max_position_embeddings = original.value_or(config.max_position_embeddings);
  const double partial = config_field::number(root, "partial_rotary_factor", 1, 0, 1);
  rope.rotated = config_field::number(parameters, "partial_rotary_factor", partial, 0, 1);
  check_partial_rotation(parameters, rope.rotated, rope);
  const double implied =
      static_cast<double>(config.max_position_embeddings) / static_cast<double>(rope.original_max_position_embeddings);
  switch (rope.scaling) {
    case RopeScaling::plain: break;
    case RopeScaling::linear:
    case RopeScaling::dynamic:
    case RopeScaling::llama3: rope.factor = required(parameters, "factor", smallest_factor, largest_factor); break;
    case RopeScaling::yarn:
    case RopeScaling::longrope:
      rope.factor = config_field::number(parameters, "factor", implied, smallest_factor, largest_factor);
      break;
    case RopeScaling::proportional:
      rope.factor = config_field::number(parameters, "factor", 1, smallest_factor, largest_factor);
      break;
  }
  if (rope.scaling == RopeScaling::dynamic && rope.rotary_dim < 4)
    parameters.refuse(
        fmt::format("expected at least 4 rotary dimensions for the type dynamic, found {}", rope.rotary_dim));
  if (rope.scaling == RopeScaling::yarn) parse_yarn(parameters, rope);
  if (rope.scaling == RopeScaling::llama3) parse_llama3(parameters, rope);
  if (rope.scaling == RopeScaling::longrope) parse_longrope(parameters, rope);
  return rope;
}

}  // namespace cermet
