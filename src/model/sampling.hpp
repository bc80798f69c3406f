// How tokens are chosen.
#pragma once

#include <cstdint>

namespace cermet {

/// How the next token is chosen. The defaults are greedy.
struct Sampling {
#define ROW(...)
#define OPTION(type, name, fallback, ...) type name = fallback;
#include "model/sampling_options.inc"
#undef OPTION
#undef ROW

  bool is_greedy() const { return temperature == 0 && repetition_penalty == 1; }
};

/// Throws Error naming the parameter that is out of range.
void check_sampling(const Sampling& sampling);

}  // namespace cermet
