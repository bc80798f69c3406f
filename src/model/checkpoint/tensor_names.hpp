// Names of stored tensors: what tools write, and what an architecture's tensors are called here.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "io/safetensors.hpp"
#include "model/config.hpp"

namespace cermet {

/// A tensor, under a name that need not be its file's, and the position of its file. Slices of stacked experts have a
/// range of the stack's bytes.
struct PlacedTensor {
  StoredTensor tensor;
  std::size_t file = 0;
};

/// Gives tensors the names of expected_tensors(): adds or takes off what wraps them ("model." is missing where a base
/// model was saved), takes either spelling of a mixture's modules, cuts stacks of experts as transformers 5 holds them
/// (experts.gate_up_proj [E, 2 I, H], experts.down_proj [E, H, I]) into those of each expert, and takes a head for the
/// embeddings that it is tied to where those are not stored. Throws Error naming a stack of another shape.
void use_expected_names(const ModelConfig& config, std::vector<PlacedTensor>& tensors);

/// Further names that descriptors may give a linear module.
std::vector<std::string> other_module_names(const ModelConfig& config, const std::string& module);

}  // namespace cermet
