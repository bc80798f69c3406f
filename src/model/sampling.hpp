// How tokens are chosen.
#pragma once

#include <cstdint>

namespace cermet {

/// How the next token is chosen. The defaults are greedy.
struct Sampling {
  double temperature = 0;         ///< 0: the most likely token
  std::int32_t top_k = 0;         ///< 0: all
  double top_p = 1;               ///< in (0, 1]
  double min_p = 0;               ///< in [0, 1)
  double repetition_penalty = 1;  ///< > 0; 1: none
  std::uint64_t seed = 0;

  bool is_greedy() const { return temperature == 0 && repetition_penalty == 1; }
};

/// Throws Error naming the parameter that is out of range.
void check_sampling(const Sampling& sampling);

}  // namespace cermet
