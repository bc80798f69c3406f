#include "model/engine_choices.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/checked.hpp"
#include "base/log.hpp"
#include "model/checkpoint/quantization_check.hpp"
#include "model/engine_options.hpp"

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
  const std::int64_t wanted =
      options.max_context > 0 ? options.max_context : std::min(config.max_position_embeddings, default_context);
  if (wanted > config.max_position_embeddings * options.max_sequences && !follows_length(config.rope))
    log().warn("context of {} tokens: the model was made for {}; text beyond that may be poor", wanted,
               config.max_position_embeddings);
  return round_up(wanted, block_size);
}

void check_counts(const EngineOptions& options) {
  for (const OptionRow& row : engine_option_table())
    if (row.use == OptionUse::everywhere) check_range(row, &options, row.name);
  require(options.steps_per_launch == 1 ||
              std::max({options.tensor_parallel, options.expert_parallel, options.data_parallel}) == 1,
          "steps_per_launch: expected 1 where ranks share a model or its experts, found {}", options.steps_per_launch);
  require(!options.compact_weights || !options.device.starts_with("cpu"),
          "compact_weights: expected device cuda, found {}", options.device);
}

std::string fingerprint(const Checkpoint& checkpoint, const EngineOptions& options) {
  const ModelConfig& c = checkpoint.config();
  std::string text = fmt::format(
      "{}, {} layers, hidden {}, {} heads of {} and {}, inner {} and {}, {} experts, vocabulary {}, {} bytes, {}, "
      "share rows {}, all logits {}",
      c.architecture_name, c.layers, c.hidden_size, c.heads, c.head_dim, c.kv_heads, c.intermediate_size,
      c.expert_intermediate_size, c.experts, c.vocab_size, checkpoint.total_bytes(),
      options.device.substr(0, options.device.find(':')),
      !options.share_rows   ? "by device"
      : *options.share_rows ? "yes"
                            : "no",
      options.all_logits);
  for (const OptionRow& row : engine_option_table())
    if (row.use != OptionUse::with_handle) text += fmt::format(", {} {}", row.name, option_text(row, &options));
  return text;
}

}  // namespace cermet::engine
