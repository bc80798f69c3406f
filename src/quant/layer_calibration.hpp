// What the calibration sees of one layer: statistics and sampled rows at the inputs of its linear modules.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "model/linear_modules.hpp"
#include "quant/input_statistics.hpp"
#include "quant/layer_runner.hpp"
#include "quant/row_sample.hpp"
#include "quant/search_unit.hpp"

namespace cermet {

/// One input of linear modules.
struct InputObservation {
  InputStatistics statistics;  ///< of calibration tokens
  RowSample learned, judged;   ///< rows of calibration tokens and of held-out ones
  InputObservation() = default;
  InputObservation(std::int64_t columns, std::int64_t learned_rows, std::int64_t judged_rows, std::uint64_t seed);
};

class LayerCalibration {
 public:
  LayerCalibration(const ModelConfig& config, std::int64_t layer, const CalibrationSet& set, std::uint64_t seed,
                   ThreadPool& pool);

  /// Takes one pass of the layer with taps. Throws Error naming layer and module where an input is not finite.
  void add(const CalibrationPass& pass, PassResults& results);

  /// Input of a module outside the experts: what q_proj, o_proj, gate_proj or down_proj reads; for the experts' gate
  /// and up, of all of them together.
  const InputObservation& input(LinearModule::Role role) const { return inputs_.at(role); }
  /// Rows that reach an expert, at its gate and up, and at its down.
  const InputObservation& expert_input(std::int64_t expert) const {
    return expert_inputs_[static_cast<std::size_t>(expert)];
  }
  const InputObservation& expert_down(std::int64_t expert) const {
    return expert_downs_[static_cast<std::size_t>(expert)];
  }
  /// Calibration tokens of each expert; empty where there are none.
  const std::vector<std::int64_t>& expert_tokens() const { return expert_tokens_; }
  /// The layer's output for held-out tokens, f32 [held-out tokens, hidden_size].
  const std::vector<float>& heldout_output() const { return heldout_output_; }

 private:
  void observe(InputObservation& input, const float* rows, std::int64_t count, bool heldout, const std::string& module,
               ThreadPool* pool);
  void add_experts(const Mixture& mixture, const CalibrationPass& pass, PassResults& results);

  std::int64_t index_;
  const Layer& layer_;
  const CalibrationSet& set_;
  ThreadPool& pool_;
  std::map<LinearModule::Role, InputObservation> inputs_;
  std::vector<InputObservation> expert_inputs_, expert_downs_;
  std::vector<std::int64_t> expert_tokens_;
  std::vector<float> heldout_output_;
};

}  // namespace cermet
