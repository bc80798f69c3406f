// The rotary part of config.json, in both spellings.
#pragma once

#include "model/arch/architecture.hpp"

namespace cermet {

/// Reads `rope_parameters`, or `rope_theta` with `rope_scaling`. Needs config.head_dim and
/// config.max_position_embeddings.
RopeParameters parse_rope(Json root, const ArchitectureDefinition& definition, const ModelConfig& config);

}  // namespace cermet
