// Runs single layers over the calibration's hidden states, with the kernels and on the device that models run on.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "base/function_ref.hpp"
#include "model/checkpoint/quantization.hpp"
#include "model/weight_loader.hpp"
#include "quant/calibration.hpp"
#include "runtime/context.hpp"

namespace cermet {

/// The results of one forward pass of a layer, in host memory and complete.
class PassResults {
 public:
  virtual ~PassResults() = default;
  /// An output of build_decoder_layer's graph; valid until the next call.
  virtual TensorView output(const char* name) = 0;
};

class LayerRunner {
 public:
  /// `stored` is the checkpoint's element type: that of keys and values. Rotary frequencies are float32, as when the
  /// model runs. Set and context must outlive the runner. Throws Error naming the device where it does not compute.
  LayerRunner(const ModelConfig& config, DType stored, const CalibrationSet& set, Context& context);
  ~LayerRunner();

  /// Tokens of a forward pass on a device.
  static std::int64_t pass_tokens(const std::string& device);

  struct Work {
    std::int64_t layer = 0;
    const Quantization& quantization;
    TensorReader reader;  ///< of the layer's tensors
    bool taps = false;
    const float* hidden = nullptr;  ///< [tokens, hidden_size], the layer's input
    const std::atomic<bool>* cancelled = nullptr;
  };
  /// Runs a layer over all passes in order. The layer's weights are held for the time of the call.
  void run(const Work& work, FunctionRef<void(const CalibrationPass&, PassResults&)> visit);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace cermet
