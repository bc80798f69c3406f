// The linear modules of a model, and which of them share an input.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/config.hpp"

namespace cermet {

/// A linear module of a checkpoint: its tensors are NAME.weight, NAME.bias and what a scheme adds.
struct LinearModule {
  enum class Role : std::uint8_t { qkv, o, gate_up, down, router, head };
  std::string name;
  Role role{};
  std::int64_t rows = 0, columns = 0;  ///< of the weight: outputs N, inputs K
  std::int64_t layer = -1;             ///< -1: the head
  std::int64_t expert = -1;            ///< -1: of no expert
  bool bias = false;
  /// Modules of one group share a scheme: siblings of one input (q, k, v; gate, up), and all the experts of a layer,
  /// which run as one grouped GEMM.
  std::string group;
  /// Modules of one input group read the same values, so that a static input scale is the same for all:
  /// "model.layers.0.self_attn.qkv". Of a mixture each expert has groups of its own.
  std::string input_group;
};

/// Of attention, a feed-forward part or an expert: what schemes for whole models quantize.
inline bool is_projection(const LinearModule& module) {
  return module.role != LinearModule::Role::router && module.role != LinearModule::Role::head;
}

/// Every linear module of a decoder, in the order in which a forward pass meets them; the head only where it is
/// not tied to the embeddings.
std::vector<LinearModule> linear_modules(const DecoderModel& decoder);
inline std::vector<LinearModule> linear_modules(const ModelConfig& config) { return linear_modules(config.decoder); }

}  // namespace cermet
