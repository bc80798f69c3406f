// Tables for the rope operator: cosine and sine per position, with the frequency scalings that checkpoints use.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/buffer.hpp"

namespace cermet {

/// How frequencies are changed for contexts longer than those of training.
enum class RopeScaling : std::uint8_t {
  plain,     ///< theta^(-2i/d), unchanged
  linear,    ///< positions divided by factor (kaiokendev)
  dynamic,   ///< theta grows with the sequence beyond max_position_embeddings (NTK-aware: bloc97, emozilla)
  yarn,      ///< per dimension between linear and plain, cosines and sines scaled (Peng et al., 2023, arXiv:2309.00071)
  llama3,    ///< long wavelengths divided by factor, with a smooth band in between (Llama 3.1)
  longrope,  ///< each divided by a factor of its own, others beyond original_max_position_embeddings (Ding et al.,
             ///< 2024, arXiv:2402.13753)
  proportional,  ///< those of the first part of a head divided by factor, the others 0
};

/// Fields that a scaling does not use keep their defaults.
struct RopeParameters {
  RopeScaling scaling = RopeScaling::plain;
  double theta = 10000;
  std::int64_t rotary_dim = 0;                        ///< dimensions of a head that rotate; even
  double factor = 1;                                  ///< linear, dynamic, yarn, llama3, longrope, proportional
  double low_freq_factor = 1, high_freq_factor = 4;   ///< llama3
  std::int64_t original_max_position_embeddings = 0;  ///< yarn, llama3, longrope; 0: max_position_embeddings
  std::int64_t max_position_embeddings = 0;           ///< dynamic: tokens up to which nothing changes
  std::optional<double> attention_factor = {}, mscale = {}, mscale_all_dim = {};  ///< yarn; the first of longrope, too
  std::vector<double> short_factors = {}, long_factors = {};                      ///< longrope: rotary_dim / 2 of each
  double rotated = 1;                    ///< proportional: the part of a head whose frequencies are not 0
  double beta_fast = 32, beta_slow = 1;  ///< yarn: rotations over the original context that bound the ramp
  bool truncate = true;                  ///< yarn: the ramp's bounds rounded to whole dimensions
  std::int64_t sequence_length =
      0;  ///< dynamic, longrope: tokens of the sequence so far; frequencies hold for this length only
  /// Rounds the inverse frequencies to this type first, as `model.to(dtype)` of transformers does to those computed at
  /// creation. Frequencies that `dynamic` recomputes for a longer sequence are not rounded there, nor here.
  std::optional<DType> round_frequencies_to = {};
};

struct RotaryFrequencies {
  std::vector<float> inverse;   ///< [rotary_dim/2] radians per position
  float attention_scaling = 1;  ///< factor of every cosine and sine
};

/// Whether a sequence's length changes its frequencies: those of `dynamic` beyond max_position_embeddings, of
/// `longrope` beyond the original ones.
bool follows_length(const RopeParameters& parameters);
/// Stands for the frequencies of a sequence of `length` tokens: lengths with equal results have equal ones.
std::int64_t frequency_length(const RopeParameters& parameters, std::int64_t length);

/// Inverse frequencies, with float32 arithmetic wherever transformers 5 uses it. Throws Error naming the parameter that
/// is out of range.
RotaryFrequencies rotary_frequencies(const RopeParameters& parameters);

/// Cosines and sines of one position, rotary_dim/2 of each.
void write_rope_row(const RotaryFrequencies& frequencies, std::int64_t position, float* cos, float* sin);

/// cos and sin f32[positions, rotary_dim/2] for positions 0, 1, ...
struct RopeTable {
  OwnedTensor cos, sin;
};
RopeTable make_rope_table(const RopeParameters& parameters, std::int64_t positions);

}  // namespace cermet
