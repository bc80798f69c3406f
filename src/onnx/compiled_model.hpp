// A model that runs: one session for each part of it, compiled when a run first comes there.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/buffer.hpp"
#include "onnx/plan.hpp"
#include "runtime/context.hpp"
#include "runtime/session.hpp"

namespace cermet::onnx {

struct ModelOptions {
  /// Sizes that the file leaves open: one number for a name fixes it, two are its range, within which nothing is
  /// compiled again. Names that are not here take the sizes of each run's inputs, and the model is compiled for every
  /// combination that comes.
  std::map<std::string, DimRange> dims;
  std::vector<std::string> skip;  ///< optional compile steps to leave out
  FusionOptions fusion = {};
  std::size_t most_parts =
      0;  ///< of a run, which ends after so many; 0: no limit. A loop on elements has a part for each iteration
};

/// An input of a run: dense.
struct ModelOperand {
  TensorView view;
  bool on_device = false;  ///< in memory of the context's device, complete; else in the host's
};

/// One part, for reports.
struct PartInfo {
  const Session* session = nullptr;  ///< null where nothing is launched
  double import_seconds = 0, compile_seconds = 0;
};

class CompiledModel {
 public:
  /// The context must outlive it. Throws Error where the model has what is not supported: all of it at once, with
  /// counts.
  CompiledModel(std::shared_ptr<const Model> model, Context& context, ModelOptions options);
  /// What a plan has, compiled here.
  CompiledModel(const std::shared_ptr<const Plan>& plan, Context& context);
  /// The same with other options of fusion than the plan's.
  CompiledModel(std::shared_ptr<const Plan> plan, Context& context, FusionOptions fusion);
  CompiledModel(const CompiledModel&) = delete;
  CompiledModel& operator=(const CompiledModel&) = delete;

  /// Inputs that a run needs: those that no initializer of the same name gives.
  const std::vector<ValueInfo>& inputs() const { return inputs_; }
  /// Inputs that a run may be given in place of their initializers.
  const std::vector<ValueInfo>& defaults() const { return defaults_; }
  std::vector<std::string> output_names() const;

  /// Runs. Operands are in the order of inputs(), then of defaults(), of which any may be left out (a view that is not
  /// present, or none at the end); they are no longer read when this returns. Throws Error naming the input whose type
  /// or dimensions do not fit.
  void run(const std::vector<ModelOperand>& given);
  void run(const std::vector<TensorView>& operands);  ///< all in host memory
  /// Result i of the last run, dense, in memory of the context's device, complete; valid until the next run.
  TensorView output(std::size_t i);
  /// The same in host memory.
  TensorView host_output(std::size_t i);

  /// The name of the value whose elements say what follows the parts of the last run; nothing where that was all. A run
  /// ends early on a device that computes nothing, and after the most parts.
  std::optional<std::string> missing_elements() const;
  std::vector<PartInfo> parts() const;  ///< those that the last run took, in order
  std::int64_t compiled_parts() const { return static_cast<std::int64_t>(sessions().size()); }  ///< by all runs
  std::int64_t arena_bytes() const;  ///< of all parts that were compiled
  std::int64_t weight_bytes() const { return weights_.bytes(); }
  bool is_symbolic() const { return symbolic_; }  ///< whether it was compiled for ranges of sizes
  std::string_view why_not_symbolic() const { return why_not_symbolic_; }
  const SymbolRanges& ranges() const { return ranges_; }
  /// The parts of them for which runs were compiled: one where no size in it asks for another graph.
  std::vector<SymbolRanges> compiled_ranges() const;

 private:
  struct StoredTensor {
    TensorView view;
    std::shared_ptr<void> owner;
    bool on_host = false;
  };
  /// A part and what follows it, by the elements that were read after it.
  struct Step {
    std::unique_ptr<Session> session;  ///< null where nothing is launched
    Part part;                         ///< its graph went to the session
    std::vector<StoredTensor> sizes;   ///< of part.sizes, for the sizes of the run before
    std::vector<OwnedTensor> size_elements;
    PartInfo info;
    std::map<std::string, std::unique_ptr<Step>> next;
  };
  /// Sizes that one compilation is for.
  struct Range {
    SymbolRanges ranges;
    std::map<std::string, std::unique_ptr<Step>>
        steps;  ///< by the types of the inputs, which differ in sizes without a range
  };
  std::vector<TensorType> types_of(const std::vector<TensorView>& operands, const SymbolRanges& ranges) const;
  void check_operands(const std::vector<TensorView>& operands) const;
  Step& first_step(const std::vector<TensorView>& operands);
  void hold_operands(const std::vector<ModelOperand>& operands);
  void keep_operands_that_are_results(std::size_t operands);
  std::optional<TensorData> constant_output(std::size_t i);
  StoredTensor uploaded(const TensorView& host);
  void compile(Step& step, const SymbolRanges& ranges);
  std::unique_ptr<Step> import(ImportState state, const SymbolRanges& ranges);
  void run_step(Step& step);
  Step* step_of_range(const std::vector<TensorView>& operands, const std::vector<std::string>& overridden,
                      std::string& why);
  void bind_sizes(Step& step);
  void note_sizes(const std::vector<TensorView>& operands);
  TensorData read(Step& step, std::int32_t slot);
  std::vector<const Session*> sessions() const;

  std::shared_ptr<const Model> model_;
  std::shared_ptr<const Plan> plan_;  ///< null where the model came from a file
  Context* context_;
  ModelOptions options_;
  std::vector<ValueInfo> inputs_, defaults_;
  std::vector<const ValueInfo*> taking_;  ///< what the operands of the last run are
  WeightTable table_;
  WeightStore weights_;
  SymbolRanges ranges_;
  bool symbolic_ = false;
  std::string why_not_symbolic_;
  SymbolValues sizes_;                 ///< of the last run
  std::vector<Range> parts_of_range_;  ///< that together are ranges_
  std::map<std::string, std::unique_ptr<Step>>
      first_;                        ///< by the types of the inputs and the defaults that are given; "" of a plan
  std::vector<StoredTensor> slots_;  ///< by slot, of the last run
  std::vector<Step*> taken_;
  std::vector<OwnedTensor> downloaded_;
};

/// A symbol's name made of what a file calls a dimension.
Symbol symbol_of(const std::string& name);

/// What a model has that is not supported, with counts, one line each; empty where there is nothing.
std::vector<std::string> unsupported_parts(const Model& model);

}  // namespace cermet::onnx
