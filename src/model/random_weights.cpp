#include "model/random_weights.hpp"

#include <cmath>
#include <cstring>
#include <numbers>

#include "base/error.hpp"
#include "format/element.hpp"

namespace cermet {
namespace {

constexpr std::size_t quantile_count = 65536;
constexpr std::uint64_t golden = 0x9e3779b97f4a7c15;  // 2^64 / golden ratio

/// The output function of SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014).
constexpr std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

/// FNV-1a.
std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const unsigned char c : text) hash = (hash ^ c) * 0x100000001b3;
  return hash;
}

/// Quantiles (i + 1/2) / 65536 of the standard normal distribution for the upper half of i. Newton's method on the tail
/// probability, each from its lower neighbour: the tail is convex there, so the steps never overshoot.
std::vector<double> upper_quantiles() {
  std::vector<double> quantiles(quantile_count / 2);
  double x = 0;
  for (std::size_t i = 0; i < quantiles.size(); ++i) {
    const double tail = 0.5 - (static_cast<double>(i) + 0.5) / quantile_count;
    for (int step = 0; step < 60; ++step) {
      const double density = std::exp(-0.5 * x * x) / std::sqrt(2 * std::numbers::pi);
      const double change = (0.5 * std::erfc(x / std::numbers::sqrt2) - tail) / density;
      x += change;
      if (std::abs(change) < 1e-13) break;
    }
    quantiles[i] = x;
  }
  return quantiles;
}

template <class T>
void fill_with(const T* quantiles, std::uint64_t key, std::uint64_t first_block, std::span<std::byte> destination) {
  std::byte* out = destination.data();
  std::size_t left = destination.size() / sizeof(T);
  for (std::uint64_t block = first_block; left > 0; ++block) {
    const std::uint64_t bits = mix(key + block * golden);
    const T values[4] = {quantiles[bits & 0xffff], quantiles[bits >> 16 & 0xffff], quantiles[bits >> 32 & 0xffff],
                         quantiles[bits >> 48]};
    const std::size_t count = left < 4 ? left : 4;
    std::memcpy(out, values, count * sizeof(T));
    out += count * sizeof(T);
    left -= count;
  }
}

}  // namespace

RandomWeights::RandomWeights(DType dtype, double mean, double deviation)
    : dtype_(dtype), quantiles_(quantile_count * size_of(dtype)) {
  CERMET_ASSERT(dtypes::real.contains(dtype));
  const std::vector<double> upper = upper_quantiles();
  const std::size_t half = upper.size();
  for (std::size_t i = 0; i < half; ++i) {
    format::store_element(quantiles_.data(), dtype, static_cast<std::int64_t>(half + i), mean + deviation * upper[i]);
    format::store_element(quantiles_.data(), dtype, static_cast<std::int64_t>(half - 1 - i),
                          mean - deviation * upper[i]);
  }
}

void RandomWeights::fill(std::uint64_t seed, std::string_view name, std::int64_t first_element,
                         std::span<std::byte> destination) const {
  CERMET_ASSERT(first_element % 4 == 0 && destination.size() % size_of(dtype_) == 0);
  const std::uint64_t key = mix(mix(seed + golden) ^ hash_of(name)),
                      block = static_cast<std::uint64_t>(first_element) / 4;
  if (size_of(dtype_) == 4)
    fill_with(reinterpret_cast<const std::uint32_t*>(quantiles_.data()), key, block, destination);
  else fill_with(reinterpret_cast<const std::uint16_t*>(quantiles_.data()), key, block, destination);
}

}  // namespace cermet
