// ONNX models on the command line: what `run`, `bench model` and `inspect` do with one.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/verb.hpp"
#include "onnx/compiled_model.hpp"
#include "runtime/explain.hpp"

namespace cermet::cli {

struct ModelOptions;

struct OnnxOptions {
  std::string model, device = "cpu", output;
  std::vector<std::string> inputs, dims;
  std::string rounding = "strict";
  int threads = 0;
  std::uint64_t seed = 1;
  std::string mode = {};  ///< of fusion; empty: the plan's, or full
  SuperKernelSelection super_kernel = {};
  std::size_t most_parts = 0;  ///< onnx::ModelOptions has it
};

/// The same with what a verb's options of models say: the file, the device, the threads, the mode and the
/// super-kernels.
OnnxOptions with_model(OnnxOptions onnx, const ModelOptions& model);
/// Whether MODEL names an ONNX file or a plan of one in place of a checkpoint's folder.
bool is_onnx(const std::string& model);
/// Declares --mode: none, pattern, published or full.
Option declare_mode(Parser& parser, std::string& mode);
/// Declares --super-kernel and --super-kernel-options, whose help lists every option, for --help-all.
void declare_super_kernel(Parser& parser, SuperKernelSelection& selection);
/// The same selection. Throws Error naming the option that is wrong.
const SuperKernelSelection& checked(const SuperKernelSelection& selection);
/// Declares --input, --dim and --rounding, in the section ONNX and graphs.
void declare_onnx_options(Parser& parser, OnnxOptions& options);
/// Declares --dim.
void declare_dims(Parser& parser, OnnxOptions& options);
/// An ONNX model with the operands of a run.
class OnnxModel {
 public:
  /// `fusion` is used as it is but for the mode where the options have one.
  explicit OnnxModel(const OnnxOptions& options, FusionOptions fusion = {});
  onnx::CompiledModel& compiled() { return *compiled_; }
  Context& context() { return *context_; }
  void run() { compiled_->run(given_); }
  /// Copies the operands to the context's device, where it has one: runs read them there from now on.
  void place_operands();
  const std::vector<TensorView>& operands() const { return views_; }
  /// Inputs whose values are made up.
  const std::vector<std::string>& random_inputs() const { return random_; }

 private:
  std::unique_ptr<Context> context_;
  std::unique_ptr<onnx::CompiledModel> compiled_;
  std::vector<OwnedTensor> operands_;
  std::vector<TensorView> views_;
  std::vector<std::string> random_;
  std::vector<DeviceBuffer> placed_;
  std::vector<onnx::ModelOperand> given_;  ///< to runs
};

/// Runs a model once and writes its results as DIR/NAME.npy.
void run_onnx(const OnnxOptions& options, Console& console);
/// Writes a plan as the folder `output`.
void compile_onnx(const OnnxOptions& options, Console& console);
/// Prints inputs, results, operators with counts, and what is not supported.
void inspect_onnx(const std::string& path, Console& console);
struct OnnxBench {
  int repeat = 3;
  bool limits = false;  ///< measure the device's and compare
  bool steps = false;   ///< time every kernel, too
  bool plan = false;    ///< print what a run launches instead
};

/// Times runs of a model.
void bench_onnx(const OnnxOptions& options, const OnnxBench& bench, Console& console);
/// The kernels of all parts of a model, in order.
std::vector<StepInfo> steps_of_onnx(const onnx::CompiledModel& model);
/// Kernels with the mean time of a launch, where launches were timed.
Json kernel_times_json(const std::vector<KernelUse>& uses);
/// What compiling a model took and what it holds.
Json onnx_figures(OnnxModel& model);

}  // namespace cermet::cli
