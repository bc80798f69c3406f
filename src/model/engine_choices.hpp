// What an engine computes with, from its options and the checkpoint: types of operands, weights and cache, and sizes.
// Each throws Error naming the option.
#pragma once

#include "device/device.hpp"
#include "model/checkpoint/checkpoint.hpp"
#include "model/checkpoint/quantization.hpp"
#include "model/engine.hpp"

namespace cermet::engine {

constexpr std::int64_t block_size = 16;     ///< tokens of a cache page
constexpr std::int64_t few_tokens = 32;     ///< kernels are chosen apart for passes of up to this many
constexpr std::int64_t long_tokens = 256;   ///< passes of more of them are long enough that GPUs share their rows
constexpr std::int64_t usual_tokens = 512;  ///< of a pass where nothing else is asked for

void check_counts(const EngineOptions& options);
DType asked_type(const EngineOptions& options, DType stored);
/// What the left operands of products are rounded to in passes of up to `tokens` tokens, where `asked` was asked for.
DType operand_type(const Device& device, std::int64_t tokens, DType asked, DType weights);
/// The type of rotated queries.
DType query_type(const Device& device, DType operands, DType cached);
/// What ranks that share a model round their summands to in passes of up to `tokens` tokens.
DType sum_type(const Device& device, std::int64_t tokens, DType operands);
/// Type of the unquantized weights.
DType weight_type(const EngineOptions& options, DType stored);
Quantization quantization_for(const EngineOptions& options, const Checkpoint& checkpoint);
DType cache_type(const EngineOptions& options, DType operands);
/// Tokens that the cache holds, in whole pages.
std::int64_t context_for(const EngineOptions& options, const ModelConfig& config);
/// What all ranks must agree on: they would wait for each other, or add what does not belong together.
std::string fingerprint(const Checkpoint& checkpoint, const EngineOptions& options);

}  // namespace cermet::engine
