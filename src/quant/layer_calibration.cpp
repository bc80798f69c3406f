#include "quant/layer_calibration.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "model/decoder.hpp"
#include "quant/row_loops.hpp"

namespace cermet {
namespace {

using Role = LinearModule::Role;

// Rows that errors are measured on: enough for a mean over thousands of outputs, few enough that a search costs less
// than a pass.
constexpr std::int64_t learned_rows = 192, judged_rows = 128;
constexpr std::int64_t expert_learned_rows = 128, expert_judged_rows = 64;

struct Tap {
  Role role;
  const char* name;
  const char* module;  ///< whose input it is, inside the layer
};
constexpr std::array attention_taps{Tap{Role::qkv, decoder_io::tap_qkv, "self_attn.q_proj"},
                                    Tap{Role::o, decoder_io::tap_o, "self_attn.o_proj"}};
constexpr std::array dense_taps{Tap{Role::gate_up, decoder_io::tap_gate_up, "mlp.gate_proj"},
                                Tap{Role::down, decoder_io::tap_down, "mlp.down_proj"}};

bool all_finite(const float* rows, std::int64_t elements) {
  return row_loops::largest_bits({rows, static_cast<std::size_t>(elements)}) < 0x7f800000u;
}

}  // namespace

InputObservation::InputObservation(std::int64_t columns, std::int64_t learned_rows, std::int64_t judged_rows,
                                   std::uint64_t seed)
    : statistics(columns), learned(columns, learned_rows, 2 * seed), judged(columns, judged_rows, 2 * seed + 1) {}

LayerCalibration::LayerCalibration(const ModelConfig& config, std::int64_t layer, const CalibrationSet& set,
                                   std::uint64_t seed, ThreadPool& pool)
    : config_(config),
      layer_(layer),
      set_(set),
      pool_(pool),
      heldout_output_(static_cast<std::size_t>((set.tokens - set.first_heldout_row) * config.hidden_size)) {
  const auto add = [&](Role role, std::int64_t columns) {
    inputs_.emplace(role, InputObservation(columns, learned_rows, judged_rows, seed));
  };
  add(Role::qkv, config.hidden_size);
  add(Role::o, config.heads * config.head_dim);
  add(Role::gate_up, config.hidden_size);
  if (!config.sparse[static_cast<std::size_t>(layer)]) {
    add(Role::down, config.intermediate_size);
    return;
  }
  const auto experts = static_cast<std::size_t>(config.experts);
  expert_inputs_.assign(experts, InputObservation(config.hidden_size, expert_learned_rows, expert_judged_rows, seed));
  expert_downs_.assign(
      experts, InputObservation(config.expert_intermediate_size, expert_learned_rows, expert_judged_rows, seed));
  expert_tokens_.assign(experts, 0);
}

void LayerCalibration::observe(InputObservation& input, const float* rows, std::int64_t count, bool heldout,
                               const std::string& module, ThreadPool* pool) {
  if (count == 0) return;
  if (heldout) input.judged.offer(rows, count);
  else input.learned.offer(rows, count);
  if (!heldout) input.statistics.add(rows, count, pool);
  const bool finite = heldout ? all_finite(rows, count * input.statistics.columns()) : input.statistics.is_finite();
  if (!finite)
    fail(Status::invalid_file, "layer {}: input of {}: expected finite values, found NaN or infinity", layer_, module);
}

void LayerCalibration::add(const CalibrationPass& pass, PassResults& results) {
  const std::string prefix = fmt::format("model.layers.{}.", layer_);
  const auto take = [&](const Tap& tap) {
    const TensorView rows = results.output(tap.name);
    observe(inputs_.at(tap.role), rows.as<float>(), pass.tokens, pass.heldout, prefix + tap.module, &pool_);
  };
  for (const Tap& tap : attention_taps) take(tap);
  if (expert_tokens_.empty())
    for (const Tap& tap : dense_taps) take(tap);
  else add_experts(pass, results);
  if (!pass.heldout) return;
  const TensorView output = results.output(decoder_io::hidden);
  std::memcpy(heldout_output_.data() + (pass.first_row - set_.first_heldout_row) * config_.hidden_size, output.data,
              static_cast<std::size_t>(pass.tokens * config_.hidden_size) * sizeof(float));
}

void LayerCalibration::add_experts(const CalibrationPass& pass, PassResults& results) {
  const TensorView shared = results.output(decoder_io::tap_experts);
  observe(inputs_.at(Role::gate_up), shared.as<float>(), pass.tokens, pass.heldout, router_name(config_, layer_),
          &pool_);
  const TensorView offsets = results.output(decoder_io::tap_expert_rows);
  const std::vector<std::int32_t> first(offsets.as<std::int32_t>(), offsets.as<std::int32_t>() + config_.experts + 1);
  const auto count_of = [&](std::int64_t expert) {
    return first[static_cast<std::size_t>(expert) + 1] - first[static_cast<std::size_t>(expert)];
  };
  const TensorView rows = results.output(decoder_io::tap_expert_input);
  for (std::int64_t expert = 0; expert < config_.experts; ++expert) {
    const float* own = rows.as<float>() + first[static_cast<std::size_t>(expert)] * config_.hidden_size;
    InputObservation& input = expert_inputs_[static_cast<std::size_t>(expert)];
    if (pass.heldout) input.judged.offer(own, count_of(expert));
    else input.learned.offer(own, count_of(expert));
    if (!pass.heldout) expert_tokens_[static_cast<std::size_t>(expert)] += count_of(expert);
  }
  const TensorView down = results.output(decoder_io::tap_expert_down);
  pool_.dynamic_for(config_.experts, [&](std::int64_t expert) {
    const float* own = down.as<float>() + first[static_cast<std::size_t>(expert)] * config_.expert_intermediate_size;
    observe(expert_downs_[static_cast<std::size_t>(expert)], own, count_of(expert), pass.heldout,
            expert_names(config_, layer_, expert).down, nullptr);
  });
}

}  // namespace cermet
