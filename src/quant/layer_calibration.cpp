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

/// An input of linear modules of a layer.
struct Tap {
  Role role;
  const char* name;
  const Linear& module;  ///< the first that reads it
};

/// Those outside the experts of a mixture.
std::vector<Tap> taps_of(const Layer& layer) {
  std::vector<Tap> taps;
  if (const auto* attention = find_body<Attention>(layer)) {
    taps.push_back({Role::qkv, decoder_io::tap_qkv, attention->q});
    taps.push_back({Role::o, decoder_io::tap_o, attention->o});
  }
  if (const auto* part = find_body<FeedForward>(layer)) {
    taps.push_back({Role::gate_up, decoder_io::tap_gate_up, part->gate});
    taps.push_back({Role::down, decoder_io::tap_down, part->down});
  }
  if (const auto* mixture = find_body<Mixture>(layer))
    taps.push_back({Role::gate_up, decoder_io::tap_experts, mixture->router});
  return taps;
}

bool all_finite(const float* rows, std::int64_t elements) {
  return row_loops::largest_bits({rows, static_cast<std::size_t>(elements)}) < 0x7f800000u;
}

}  // namespace

InputObservation::InputObservation(std::int64_t columns, std::int64_t learned_rows, std::int64_t judged_rows,
                                   std::uint64_t seed)
    : statistics(columns), learned(columns, learned_rows, 2 * seed), judged(columns, judged_rows, 2 * seed + 1) {}

LayerCalibration::LayerCalibration(const ModelConfig& config, std::int64_t layer, const CalibrationSet& set,
                                   std::uint64_t seed, ThreadPool& pool)
    : index_(layer),
      layer_(config.decoder.layers[static_cast<std::size_t>(layer)]),
      set_(set),
      pool_(pool),
      heldout_output_(static_cast<std::size_t>((set.tokens - set.first_heldout_row) * config.hidden_size)) {
  for (const Tap& tap : taps_of(layer_))
    inputs_.emplace(tap.role, InputObservation(tap.module.columns, learned_rows, judged_rows, seed));
  const auto* mixture = find_body<Mixture>(layer_);
  if (mixture == nullptr) return;
  const auto experts = static_cast<std::size_t>(mixture->experts());
  const auto observations = [&](const Linear& module) {
    return std::vector(experts, InputObservation(module.columns, expert_learned_rows, expert_judged_rows, seed));
  };
  expert_inputs_ = observations(mixture->each.gate);
  expert_downs_ = observations(mixture->each.down);
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
    fail(Status::invalid_file, "layer {}: input of {}: expected finite values, found NaN or infinity", index_, module);
}

void LayerCalibration::add(const CalibrationPass& pass, PassResults& results) {
  for (const Tap& tap : taps_of(layer_)) {
    const TensorView rows = results.output(tap.name);
    observe(inputs_.at(tap.role), rows.as<float>(), pass.tokens, pass.heldout, tap.module.name, &pool_);
  }
  if (const auto* mixture = find_body<Mixture>(layer_)) add_experts(*mixture, pass, results);
  if (!pass.heldout) return;
  const TensorView output = results.output(decoder_io::hidden);
  const std::int64_t columns = output.shape[1];
  std::memcpy(heldout_output_.data() + (pass.first_row - set_.first_heldout_row) * columns, output.data,
              static_cast<std::size_t>(pass.tokens * columns) * sizeof(float));
}

void LayerCalibration::add_experts(const Mixture& mixture, const CalibrationPass& pass, PassResults& results) {
  const TensorView offsets = results.output(decoder_io::tap_expert_rows);
  const std::vector<std::int32_t> first(offsets.as<std::int32_t>(), offsets.as<std::int32_t>() + mixture.experts() + 1);
  const auto count_of = [&](std::int64_t expert) {
    return first[static_cast<std::size_t>(expert) + 1] - first[static_cast<std::size_t>(expert)];
  };
  const TensorView rows = results.output(decoder_io::tap_expert_input);
  for (std::int64_t expert = 0; expert < mixture.experts(); ++expert) {
    const float* own = rows.as<float>() + first[static_cast<std::size_t>(expert)] * mixture.each.gate.columns;
    InputObservation& input = expert_inputs_[static_cast<std::size_t>(expert)];
    if (pass.heldout) input.judged.offer(own, count_of(expert));
    else input.learned.offer(own, count_of(expert));
    if (!pass.heldout) expert_tokens_[static_cast<std::size_t>(expert)] += count_of(expert);
  }
  const TensorView down = results.output(decoder_io::tap_expert_down);
  pool_.dynamic_for(mixture.experts(), [&](std::int64_t expert) {
    const float* own = down.as<float>() + first[static_cast<std::size_t>(expert)] * mixture.each.down.columns;
    observe(expert_downs_[static_cast<std::size_t>(expert)], own, count_of(expert), pass.heldout,
            mixture.expert(expert).down.name, nullptr);
  });
}

}  // namespace cermet
