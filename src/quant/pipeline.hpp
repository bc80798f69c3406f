// The quantizer's pipeline: a checkpoint goes through layer by layer, and every layer sees the outputs of the quantized
// layers before it.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "quant/layer_result.hpp"
#include "quant/policy.hpp"

namespace cermet {

/// How outliers of activations are treated. Each choice applies as far as a group of siblings allows: dynamically
/// quantized inputs cannot be clamped, because no format can express that; an input that no weight produces cannot be
/// smoothed.
enum class AntiOutlier : std::uint8_t {
  none,       ///< scales are searched from the largest value seen downwards
  clamp,      ///< a static input scale is searched from a percentile of the values downwards: what is larger saturates
  smooth,     ///< channels of the input are divided, and columns of the weights multiplied, by factors that are folded
              ///< into what produces the input
  both,       ///< smoothing, then clamping
  automatic,  ///< for each group of siblings, the one of these that has the least output error on held-out rows
};
std::string_view name_of(AntiOutlier choice);
/// Inverse of name_of; "auto" stands for automatic. Nothing where it is none.
std::optional<AntiOutlier> anti_outlier_named(std::string_view name);

struct QuantizeOptions {
  std::filesystem::path model;  ///< folder of a checkpoint in f32, bf16 or f16
  std::filesystem::path out;    ///< what the result will be called; the pipeline works in working_folder(out)
  std::vector<std::vector<std::int32_t>> calibration;  ///< token ids of each prompt
  std::vector<std::vector<std::int32_t>>
      heldout;  ///< prompts that choices are judged on; where none are given, every fifth of the others is set aside
  Policy policy = Policy::standard();
  AntiOutlier anti_outlier = AntiOutlier::automatic;
  double clamp_percentile = 99.9;  ///< of absolute values, in (50, 100]
  double range =
      127.5;  ///< absmax / range is an int8 scale before clipping: 127.5 (values -128..127) or 127 (-127..127)
  bool every_scheme = true;  ///< whether errors are measured for all schemes and not only for the policy's
  std::int64_t min_expert_tokens =
      8;                       ///< an expert that fewer calibration tokens reach is rounded to nearest, without search
  std::uint64_t seed = 0;      ///< of the choice of rows that errors are measured on
  std::string device = "cpu";  ///< where layers run
  int threads = 0;             ///< 0: one for each core; results do not depend on it
  bool restart = false;        ///< discard what an earlier run left, instead of resuming it
  std::string fingerprint_extra;  ///< what else an interrupted run must have in common with the one that resumes it
  const std::atomic<bool>* cancelled =
      nullptr;  ///< checked between chunks and modules; ends with Error(cancelled), and the run can be resumed
  /// Called by the calling thread: layers finished, layers in total, an estimate of the time left (< 0 where there is
  /// none yet), and what is going on.
  std::function<void(std::int64_t layer, std::int64_t layers, double seconds_left, std::string_view phase)> progress;
};

/// Where layers wait until the result is put together: OUT.partial beside OUT.
std::filesystem::path working_folder(const std::filesystem::path& out);
/// Final tensors of a layer inside the working folder, under the checkpoint's names: every tensor of the layer, changed
/// or not, so that they can be copied one by one. A quantized module X has X.weight (I8 or F8_E4M3 [N, K]),
/// X.weight_scale ([N, 1] in the checkpoint's type) and, with a static input scale, X.input_scale ([1] in the
/// checkpoint's type).
std::filesystem::path layer_file(const std::filesystem::path& working, std::int64_t layer);
/// The figures of a layer, LayerResult as JSON. A layer is complete when this file is there.
std::filesystem::path result_file(const std::filesystem::path& working, std::int64_t layer);

/// Runs the layers that an earlier, interrupted run with the same fingerprint left undone, and returns the figures of
/// all. The files are the same, byte by byte, however often the run was interrupted. Memory stays at the calibration's
/// hidden states and two layers. Throws Error naming what is wrong: a checkpoint that is quantized already, prompts
/// that are empty, too long or outside the vocabulary, values that are not finite, a working folder of a run with other
/// options (the message says which), a full disk.
std::vector<LayerResult> run_layers(const QuantizeOptions& options);

}  // namespace cermet
