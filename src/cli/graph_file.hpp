// Graphs as text on the command line: what `run`, `bench model` and `explain` do with a file of one.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/onnx_model.hpp"
#include "runtime/session.hpp"

namespace cermet::cli {

/// Whether MODEL names a graph's text.
bool is_graph(const std::string& model);

/// A compiled graph with the operands of a run. Sizes that runs give come from --dim, from the files of inputs, or are
/// the end of their range, or 1.
class GraphFile {
 public:
  explicit GraphFile(const OnnxOptions& options, FusionOptions fusion = {});
  Session& session() { return *session_; }
  const Context& context() const { return context_; }
  const std::vector<std::string>& outputs() const { return outputs_; }
  /// Inputs and constants whose values are made up.
  const std::vector<std::string>& random_inputs() const { return made_up_; }

 private:
  void take_sizes(const Graph& graph, const std::map<std::string, DimRange>& dims);
  OwnedTensor made_up(const Value& value);

  Context context_;
  std::map<std::string, OwnedTensor> operands_;  ///< inputs and constants
  std::vector<DeviceBuffer> placed_;
  std::vector<std::string> outputs_, made_up_;
  SymbolValues sizes_, maximum_;
  std::mt19937_64 random_;
  std::unique_ptr<Session> session_;
};

/// Runs a graph once and writes its results as DIR/NAME.npy.
void run_graph(const OnnxOptions& options, Console& console);
/// Times runs of a graph.
void bench_graph(const OnnxOptions& options, const OnnxBench& bench, Console& console);

}  // namespace cermet::cli
