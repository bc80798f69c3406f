#include "model/engine_choices.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/checked.hpp"
#include "base/log.hpp"
#include "model/checkpoint/quantization_check.hpp"
#include "model/engine_options.hpp"
#include "model/parallel/rank_options.hpp"

namespace cermet::engine {
namespace {

constexpr std::int64_t default_context = 4096;  // tokens, where the caller does not say

}  // namespace

Quantization quantization_for(const EngineOptions& options, const Checkpoint& checkpoint) {
  const auto on_load = [](DType dtype) {
    return LinearScheme{dtype == DType::i8 ? LinearScheme::Weight::int8 : LinearScheme::Weight::fp8,
                        LinearScheme::Input::dynamic};
  };
  const auto expect_real = [&](std::string_view option, DType found) {
    require(!checkpoint.quantization().stored(), "{}: expected none{} for a checkpoint that is quantized, found {}",
            option, option == "weights" ? " or a real type" : "", name_of(found));
  };
  Quantization quantization;
  if (options.weights && load_quantized_types.contains(*options.weights)) {
    expect_real("weights", *options.weights);
    quantization = quantize_projections(checkpoint.config(), on_load(*options.weights));
  } else {
    quantization = checked_quantization(checkpoint);
  }
  if (!options.head) return quantization;
  require(load_quantized_types.contains(*options.head), "head: expected {}, found {}", load_quantized_types.to_string(),
          name_of(*options.head));
  expect_real("head", *options.head);
  quantization.modules.emplace(checkpoint.config().decoder.head.name, on_load(*options.head));
  return quantization;
}

std::int64_t context_for(const EngineOptions& options, const ModelConfig& config) {
  require(options.max_context >= 0, "max_context: expected a non-negative number of tokens, found {}",
          options.max_context);
  const std::int64_t wanted =
      options.max_context > 0 ? options.max_context : std::min(config.max_position_embeddings, default_context);
  require(wanted <= (std::int64_t{1} << 30), "max_context: expected at most {} tokens, found {}", std::int64_t{1} << 30,
          wanted);
  if (wanted > config.max_position_embeddings * options.max_sequences && !follows_length(config.rope))
    log().warn("context of {} tokens: the model was made for {}; text beyond that may be poor", wanted,
               config.max_position_embeddings);
  return round_up(wanted, block_size);
}

void check_counts(const EngineOptions& options) {
  require(options.max_sequences >= 1 && options.max_sequences <= 65536, "max_sequences: expected 1 to 65536, found {}",
          options.max_sequences);
  require(options.steps_per_launch >= 1 && options.steps_per_launch <= most_steps_per_launch,
          "steps_per_launch: expected 1 to {}, found {}", most_steps_per_launch, options.steps_per_launch);
  require(options.steps_per_launch == 1 ||
              std::max({options.tensor_parallel, options.expert_parallel, options.data_parallel}) == 1,
          "steps_per_launch: expected 1 where ranks share a model or its experts, found {}", options.steps_per_launch);
  require(!options.compact_weights || !options.device.starts_with("cpu"),
          "compact_weights: expected device cuda, found {}", options.device);
  require(options.max_batch_tokens >= 1 && options.max_batch_tokens <= 1 << 20,
          "max_batch_tokens: expected 1 to {}, found {}", 1 << 20, options.max_batch_tokens);
}

std::string fingerprint(const Checkpoint& checkpoint, const EngineOptions& options) {
  const ModelConfig& c = checkpoint.config();
  const auto type = [](std::optional<DType> dtype) { return dtype ? name_of(*dtype) : "as stored"; };
  return fmt::format(
      "{}, {} layers, hidden {}, {} heads of {} and {}, inner {} and {}, {} experts, vocabulary {}, {} bytes, dtype "
      "{}, weights {}, head {}, cache {}, "
      "context {}, {} sequences, passes of {}, {}, tensor parallel {}, expert parallel {}, share rows {}, data "
      "parallel {}, exchange {}, overlap {}, compact "
      "{}, all logits {}",
      c.architecture_name, c.layers, c.hidden_size, c.heads, c.head_dim, c.kv_heads, c.intermediate_size,
      c.expert_intermediate_size, c.experts, c.vocab_size, checkpoint.total_bytes(), type(options.dtype),
      type(options.weights), type(options.head), type(options.kv_cache), options.max_context, options.max_sequences,
      options.max_batch_tokens, options.device.substr(0, options.device.find(':')), options.tensor_parallel,
      options.expert_parallel,
      !options.share_rows   ? "by device"
      : *options.share_rows ? "yes"
                            : "no",
      options.data_parallel, name_of(exchange_of(options)), options.overlap_experts, options.compact_weights,
      options.all_logits);
}

}  // namespace cermet::engine
