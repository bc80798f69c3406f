#include "op/rope_table.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "format/element.hpp"

namespace cermet {
namespace {

void check(const RopeParameters& p) {
  const auto positive = [](std::string_view name, double value) {
    require(value > 0 && std::isfinite(value), "rope: {}: expected a positive number, found {}", name, value);
  };
  require(p.rotary_dim > 0 && p.rotary_dim % 2 == 0, "rope: rotary_dim: expected a positive even number, found {}",
          p.rotary_dim);
  positive("theta", p.theta);
  positive("factor", p.factor);
  if (p.scaling == RopeScaling::dynamic) {
    positive("max_position_embeddings", static_cast<double>(p.max_position_embeddings));
    require(p.rotary_dim > 2, "rope: rotary_dim: expected more than 2 for dynamic scaling, found {}", p.rotary_dim);
  }
  if (p.scaling == RopeScaling::llama3) {
    positive("low_freq_factor", p.low_freq_factor);
    require(p.high_freq_factor > p.low_freq_factor,
            "rope: high_freq_factor: expected more than low_freq_factor = {}, found {}", p.low_freq_factor,
            p.high_freq_factor);
  }
  if (p.scaling == RopeScaling::yarn) {
    require(p.theta > 1, "rope: theta: expected more than 1 for yarn, found {}", p.theta);
    positive("beta_fast", p.beta_fast);
    positive("beta_slow", p.beta_slow);
  }
  if (p.scaling == RopeScaling::longrope)
    for (const std::vector<double>* factors : {&p.short_factors, &p.long_factors}) {
      require(std::ssize(*factors) == p.rotary_dim / 2, "rope: {}: expected {} numbers, found {}",
              factors == &p.short_factors ? "short_factor" : "long_factor", p.rotary_dim / 2, factors->size());
      for (const double factor : *factors)
        positive(factors == &p.short_factors ? "short_factor" : "long_factor", factor);
    }
  if (p.scaling == RopeScaling::yarn || p.scaling == RopeScaling::llama3 || p.scaling == RopeScaling::longrope)
    require(p.original_max_position_embeddings > 0 || p.max_position_embeddings > 0,
            "rope: original_max_position_embeddings: expected a positive number, found {}",
            p.original_max_position_embeddings);
}

double original_context(const RopeParameters& p) {
  return static_cast<double>(p.original_max_position_embeddings > 0 ? p.original_max_position_embeddings
                                                                    : p.max_position_embeddings);
}

/// theta^(2i/d) in float32, i = 0 .. d/2 - 1.
std::vector<float> powers(float theta, std::int64_t rotary_dim) {
  std::vector<float> result;
  for (std::int64_t i = 0; i < rotary_dim; i += 2) {
    const float exponent = static_cast<float>(i) / static_cast<float>(rotary_dim);
    result.push_back(static_cast<float>(std::pow(static_cast<double>(theta), static_cast<double>(exponent))));
  }
  return result;
}

std::vector<float> plain(float theta, std::int64_t rotary_dim) {
  std::vector<float> inverse = powers(theta, rotary_dim);
  for (float& f : inverse) f = 1.0f / f;
  return inverse;
}

std::vector<float> linear(const RopeParameters& p) {
  std::vector<float> inverse = plain(static_cast<float>(p.theta), p.rotary_dim);
  for (float& f : inverse) f /= static_cast<float>(p.factor);
  return inverse;
}

bool has_grown(const RopeParameters& p) {
  return p.scaling == RopeScaling::dynamic && p.sequence_length > p.max_position_embeddings;
}

std::vector<float> dynamic(const RopeParameters& p) {
  if (!has_grown(p)) return plain(static_cast<float>(p.theta), p.rotary_dim);
  const auto factor = static_cast<float>(p.factor), dim = static_cast<float>(p.rotary_dim);
  const float stretched =
      factor * static_cast<float>(p.sequence_length) / static_cast<float>(p.max_position_embeddings) -
      static_cast<float>(p.factor - 1);
  const auto exponent = static_cast<float>(static_cast<double>(p.rotary_dim) / (static_cast<double>(dim) - 2));
  const auto growth = static_cast<float>(std::pow(static_cast<double>(stretched), static_cast<double>(exponent)));
  return plain(static_cast<float>(p.theta) * growth, p.rotary_dim);
}

/// Dimension whose frequency makes `rotations` turns over the original context.
double yarn_dimension(const RopeParameters& p, double rotations) {
  return static_cast<double>(p.rotary_dim) * std::log(original_context(p) / (rotations * 2 * std::numbers::pi)) /
         (2 * std::log(p.theta));
}

std::vector<float> yarn(const RopeParameters& p) {
  double low = yarn_dimension(p, p.beta_fast), high = yarn_dimension(p, p.beta_slow);
  if (p.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, static_cast<double>(p.rotary_dim - 1));
  if (low == high) high += 0.001;
  std::vector<float> inverse = powers(static_cast<float>(p.theta), p.rotary_dim);
  for (std::size_t i = 0; i < inverse.size(); ++i) {
    const float power = inverse[i],
                position = (static_cast<float>(i) - static_cast<float>(low)) / static_cast<float>(high - low);
    const float kept = 1.0f - std::min(std::max(position, 0.0f), 1.0f);  // 1: as trained, 0: divided by factor
    inverse[i] = 1.0f / (static_cast<float>(p.factor) * power) * (1.0f - kept) + 1.0f / power * kept;
  }
  return inverse;
}

float yarn_attention_scaling(const RopeParameters& p) {
  if (p.attention_factor) return static_cast<float>(*p.attention_factor);
  const auto scale = [&](double m) { return p.factor <= 1 ? 1.0 : 0.1 * m * std::log(p.factor) + 1.0; };
  const bool both = p.mscale.value_or(0) != 0 && p.mscale_all_dim.value_or(0) != 0;
  return static_cast<float>(both ? scale(*p.mscale) / scale(*p.mscale_all_dim) : scale(1));
}

std::vector<float> llama3(const RopeParameters& p) {
  const auto factor = static_cast<float>(p.factor), low = static_cast<float>(p.low_freq_factor);
  const auto context = static_cast<float>(original_context(p)),
             band = static_cast<float>(p.high_freq_factor - p.low_freq_factor);
  const auto longest = static_cast<float>(original_context(p) / p.low_freq_factor),
             shortest = static_cast<float>(original_context(p) / p.high_freq_factor);
  std::vector<float> inverse = plain(static_cast<float>(p.theta), p.rotary_dim);
  for (float& f : inverse) {
    const float wavelength = static_cast<float>(2 * std::numbers::pi) / f;
    const float smooth = (context / wavelength - low) / band;
    if (wavelength > longest) f /= factor;
    else if (wavelength >= shortest) f = (1.0f - smooth) * f / factor + smooth * f;
  }
  return inverse;
}

bool is_long(const RopeParameters& p) { return static_cast<double>(p.sequence_length) > original_context(p); }

std::vector<float> longrope(const RopeParameters& p) {
  const std::vector<double>& factors = is_long(p) ? p.long_factors : p.short_factors;
  std::vector<float> inverse = powers(static_cast<float>(p.theta), p.rotary_dim);
  for (std::size_t i = 0; i < inverse.size(); ++i) inverse[i] = 1.0f / (static_cast<float>(factors[i]) * inverse[i]);
  return inverse;
}

float longrope_attention_scaling(const RopeParameters& p) {
  if (p.attention_factor) return static_cast<float>(*p.attention_factor);
  return p.factor <= 1 ? 1.0f : static_cast<float>(std::sqrt(1 + std::log(p.factor) / std::log(original_context(p))));
}

std::vector<float> proportional(const RopeParameters& p) {
  std::vector<float> inverse = linear(p);
  const auto rotated = static_cast<std::size_t>(p.rotated * static_cast<double>(p.rotary_dim) / 2);
  std::fill(inverse.begin() + static_cast<std::ptrdiff_t>(std::min(rotated, inverse.size())), inverse.end(), 0.0f);
  return inverse;
}

}  // namespace

bool follows_length(const RopeParameters& parameters) {
  return parameters.scaling == RopeScaling::dynamic || parameters.scaling == RopeScaling::longrope;
}

std::int64_t frequency_length(const RopeParameters& parameters, std::int64_t length) {
  if (parameters.scaling == RopeScaling::dynamic) return std::max(length, parameters.max_position_embeddings);
  return parameters.scaling == RopeScaling::longrope && static_cast<double>(length) > original_context(parameters) ? 1
                                                                                                                   : 0;
}

RotaryFrequencies rotary_frequencies(const RopeParameters& parameters) {
  check(parameters);
  RotaryFrequencies result;
  switch (parameters.scaling) {
    case RopeScaling::plain: result.inverse = plain(static_cast<float>(parameters.theta), parameters.rotary_dim); break;
    case RopeScaling::linear: result.inverse = linear(parameters); break;
    case RopeScaling::dynamic: result.inverse = dynamic(parameters); break;
    case RopeScaling::yarn:
      result.inverse = yarn(parameters);
      result.attention_scaling = yarn_attention_scaling(parameters);
      break;
    case RopeScaling::llama3: result.inverse = llama3(parameters); break;
    case RopeScaling::longrope:
      result.inverse = longrope(parameters);
      result.attention_scaling = longrope_attention_scaling(parameters);
      break;
    case RopeScaling::proportional: result.inverse = proportional(parameters); break;
  }
  if (parameters.round_frequencies_to && !has_grown(parameters)) {
    for (float& f : result.inverse) f = static_cast<float>(format::rounded_to(*parameters.round_frequencies_to, f));
  }
  return result;
}

void write_rope_row(const RotaryFrequencies& frequencies, std::int64_t position, float* cos, float* sin) {
  for (const float frequency : frequencies.inverse) {
    const double angle =
        static_cast<float>(position) * frequency;  // rounded to float32, as the angles of transformers are
    *cos++ = static_cast<float>(std::cos(angle)) * frequencies.attention_scaling;
    *sin++ = static_cast<float>(std::sin(angle)) * frequencies.attention_scaling;
  }
}

RopeTable make_rope_table(const RopeParameters& parameters, std::int64_t positions) {
  require(positions >= 0, "rope: positions: expected a non-negative number, found {}", positions);
  const RotaryFrequencies frequencies = rotary_frequencies(parameters);
  const auto half = static_cast<std::int64_t>(frequencies.inverse.size());
  RopeTable table{OwnedTensor(DType::f32, {positions, half}), OwnedTensor(DType::f32, {positions, half})};
  for (std::int64_t position = 0; position < positions; ++position)
    write_rope_row(frequencies, position, table.cos.view.as<float>() + position * half,
                   table.sin.view.as<float>() + position * half);
  return table;
}

}  // namespace cermet
