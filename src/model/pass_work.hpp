// What passes of a model read and compute at least.
#pragma once

#include "model/engine.hpp"

namespace cermet {

/// Bytes of weights that a decode step of `batch` sequences reads, per token: of a stack of experts at most as many as
/// that many tokens can be routed to.
double decode_weight_bytes(const Engine& engine, std::int64_t batch);

/// Operations of the GEMMs in a prefill of one sequence, with logits for its last token only: all, and those of int8
/// with int8.
struct PrefillOperations {
  double all = 0, int8 = 0;
};
PrefillOperations prefill_operations(const Engine& engine, std::int64_t tokens);

}  // namespace cermet
