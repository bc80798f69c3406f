#include "quant/smoothing.hpp"

#include <algorithm>
#include <cmath>

#include "format/element.hpp"
#include "quant/weight_matrix.hpp"

namespace cermet {
namespace {

constexpr double largest_factor = 4096;  // farther apart, 16-bit norm weights would lose what is small

}  // namespace

std::vector<float> smoothing_factors(std::span<const float> input_absmax, std::span<const float> weight_absmax,
                                     double alpha) {
  const std::size_t columns = input_absmax.size();
  std::vector<double> logarithms(columns);
  double sum = 0, count = 0;
  const auto has_factor = [&](std::size_t k) { return input_absmax[k] > 0 && weight_absmax[k] > 0; };
  for (std::size_t k = 0; k < columns; ++k) {
    if (!has_factor(k)) continue;
    logarithms[k] = alpha * std::log2(static_cast<double>(input_absmax[k])) -
                    (1 - alpha) * std::log2(static_cast<double>(weight_absmax[k]));
    sum += logarithms[k];
    ++count;
  }
  std::vector<float> factors(columns, 1.0f);
  for (std::size_t k = 0; k < columns; ++k)
    if (has_factor(k))
      factors[k] =
          static_cast<float>(std::clamp(std::exp2(logarithms[k] - sum / count), 1 / largest_factor, largest_factor));
  return factors;
}

void round_to_powers_of_two(std::span<float> factors) {
  for (float& factor : factors) factor = std::exp2(std::nearbyint(std::log2(factor)));
}

std::vector<float> absmax_by_source(std::span<const float> absmax, std::span<const std::int64_t> source,
                                    std::int64_t sources) {
  std::vector<float> largest(static_cast<std::size_t>(sources));
  for (std::size_t c = 0; c < absmax.size(); ++c) {
    float& of_source = largest[static_cast<std::size_t>(source[c])];
    of_source = std::max(of_source, absmax[c]);
  }
  return largest;
}

std::vector<float> spread(std::span<const float> factors, std::span<const std::int64_t> source) {
  std::vector<float> columns(source.size());
  std::ranges::transform(source, columns.begin(), [&](std::int64_t s) { return factors[static_cast<std::size_t>(s)]; });
  return columns;
}

OwnedTensor scaled_norm(const TensorView& weight, double offset, std::span<const float> factors, ThreadPool& pool) {
  OwnedTensor scaled = scaled_tensor(weight, {factors, {}}, pool);
  if (offset == 0) return scaled;
  std::vector<float> values(factors.size());
  widen_row(weight, 0, {}, values);
  for (std::size_t k = 0; k < values.size(); ++k)
    format::store_element(scaled.memory.data(), weight.dtype, static_cast<std::int64_t>(k),
                          (static_cast<double>(values[k]) + offset) * static_cast<double>(factors[k]) - offset);
  return scaled;
}

std::vector<float> as_folded(std::span<const float> factors, const TensorView& weight, double offset,
                             ThreadPool& pool) {
  const OwnedTensor folded = scaled_norm(weight, offset, reciprocals(factors), pool);
  std::vector<float> before(factors.size()), after(factors.size()), result(factors.size(), 1.0f);
  widen_row(weight, 0, {}, before);
  widen_row(folded.view, 0, {}, after);
  for (std::vector<float>* weights : {&before, &after})
    for (float& w : *weights) w += static_cast<float>(offset);
  for (std::size_t k = 0; k < result.size(); ++k)
    if (before[k] != 0 && after[k] != 0 && std::isfinite(after[k])) result[k] = before[k] / after[k];
  return result;
}

std::vector<float> reciprocals(std::span<const float> factors) {
  std::vector<float> inverse(factors.size());
  std::ranges::transform(factors, inverse.begin(), [](float factor) { return 1 / factor; });
  return inverse;
}

}  // namespace cermet
