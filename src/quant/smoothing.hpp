// Smoothing (Xiao et al., "SmoothQuant", 2023): an input's channel k is divided by s_k and column k of the weights that
// read it multiplied by s_k, so that outliers of the input become larger weights, of which every row has a scale of its
// own. The division is folded into what produces the input.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/buffer.hpp"
#include "quant/input_statistics.hpp"

namespace cermet {

/// Factors s_k of one group of siblings; none where empty.
struct Smoothing {
  double alpha = 0;  ///< exponent that they were made with
  std::vector<float> factors;
};

/// s_k = input_k^alpha / weight_k^(1 - alpha) of largest absolute values, divided by the geometric mean of all; 1 where
/// either is 0. Both are [K].
std::vector<float> smoothing_factors(std::span<const float> input_absmax, std::span<const float> weight_absmax,
                                     double alpha);

/// The powers of two next to factors: what they multiply is not rounded.
void round_to_powers_of_two(std::span<float> factors);

/// Largest values over channels that must share a factor, because one channel of what produces the input feeds several
/// of its channels: column c of the input reads channel source[c]. Returns them for each source.
std::vector<float> absmax_by_source(std::span<const float> absmax, std::span<const std::int64_t> source,
                                    std::int64_t sources);
/// Factors of sources, for each column.
std::vector<float> spread(std::span<const float> factors, std::span<const std::int64_t> source);

/// A normalization's weight times factors, rounded to its own type; `offset` is added to it before
/// (Norm::weight_offset).
OwnedTensor scaled_norm(const TensorView& weight, double offset, std::span<const float> factors, ThreadPool& pool);

/// The factors as a normalization's weight has them after it was divided by `factors` and rounded to its type: weight /
/// rounded quotient.
std::vector<float> as_folded(std::span<const float> factors, const TensorView& weight, double offset, ThreadPool& pool);

std::vector<float> reciprocals(std::span<const float> factors);

}  // namespace cermet
