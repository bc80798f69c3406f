// Reproducible random weights, made by position: any part of any tensor can be filled alone and comes out the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/dtype.hpp"

namespace cermet {

/// Normally distributed values of one element type (f32, bf16 or f16) with a mean and a deviation. A value is one of
/// 65536 quantiles of the distribution, chosen by 16 bits of a hash of seed, tensor and position: as fast as memory,
/// and fine enough for weights.
class RandomWeights {
 public:
  RandomWeights(DType dtype, double mean, double deviation);

  /// Fills with the elements from `first_element` (a multiple of 4) on of the tensor called `name`.
  void fill(std::uint64_t seed, std::string_view name, std::int64_t first_element,
            std::span<std::byte> destination) const;

 private:
  DType dtype_;
  std::vector<std::byte> quantiles_;  ///< in `dtype`
};

}  // namespace cermet
