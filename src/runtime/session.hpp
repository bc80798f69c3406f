// A compiled graph that runs by the names of its inputs and results: any graph, on any context.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/compile.hpp"
#include "runtime/context.hpp"
#include "runtime/input_symbols.hpp"

namespace cermet {

struct SessionOptions {
  SymbolValues maximum;           ///< largest value of each symbol
  std::vector<std::string> skip;  ///< optional compile steps to leave out
  bool capture = true;            ///< see CompileOptions
  FusionOptions fusion = {};
  std::vector<RankGroup> groups = {};  ///< see CompileOptions
};

/// Every symbol that a dimension of some value has, by name.
std::vector<Symbol> symbols_of(const Graph& graph);

/// A session whose kernels are chosen: see StartedCompile.
class StartedSession {
 public:
  /// The context and the weights must outlive the session. Throws what compile() throws.
  StartedSession(const Graph& graph, Context& context, WeightStore& weights, const SessionOptions& options);
  std::vector<cuda::Program> programs() const { return compile_.programs(); }

 private:
  friend class Session;
  Context* context_;
  WeightStore* weights_;
  std::vector<ShapedInput> inputs_;
  std::vector<Symbol> used_symbols_;
  StartedCompile compile_;
};

class Session {
 public:
  /// Compiles the graph and holds its weights, which `load` reads. The context must outlive the session. Throws what
  /// compile() throws.
  Session(Graph graph, Context& context, LoadWeight load, const SessionOptions& options,
          std::vector<CompileStep>* report = nullptr);
  /// The same with weights that several sessions share, which must outlive them.
  Session(Graph graph, Context& context, WeightStore& weights, const SessionOptions& options,
          std::vector<CompileStep>* report = nullptr);
  /// What was started, compiled to its end.
  explicit Session(StartedSession started, std::vector<CompileStep>* report = nullptr);

  /// Binds memory to an input, in the context's device where it has one. It stays bound; a later view may have other
  /// sizes. Throws Error naming the input.
  void bind(std::string_view name, const TensorView& memory);
  /// Runs with the values of symbols that the bound shapes tell, on a stream as Executable::run() has it. Throws Error
  /// naming the input that is not bound or whose shape fits no values, and a symbol that no shape determines.
  void run(Stream* on = nullptr);
  /// Runs with these values; see Executable::run().
  void run(const SymbolValues& symbols) {
    take_weights();
    executable_.run(symbols);
  }
  /// See Executable::bind_result().
  bool bind_result(std::string_view name, std::byte* memory) { return executable_.bind_result(name, memory); }
  /// A result of the last run, in the context's device where it has one; valid until the next run.
  TensorView output(std::string_view name) const { return executable_.output(name); }
  bool has_output(std::string_view name) const { return executable_.has_output(name); }
  /// The same in host memory, complete; valid until the next call.
  TensorView host_output(std::string_view name);

  Executable& executable() { return executable_; }
  const Executable& executable() const { return executable_; }
  WeightStore& weights() { return *weights_; }
  const WeightStore& weights() const { return *weights_; }

 private:
  Session(StartedSession started, std::unique_ptr<WeightStore>&& own, std::vector<CompileStep>* report);
  void take_weights();
  Session(const Graph& graph, Context& context, std::unique_ptr<WeightStore> own, const SessionOptions& options,
          std::vector<CompileStep>* report);

  Context* context_;
  std::unique_ptr<WeightStore> own_weights_;
  WeightStore* weights_;
  std::vector<ShapedInput> inputs_;
  std::vector<Symbol> used_symbols_;
  SymbolValues symbols_;  ///< what the bound shapes tell
  bool reshaped_ = true;  ///< another shape was bound since
  std::uint64_t weights_version_ = 0;
  Executable executable_;
  DeviceBuffer downloaded_;
};

}  // namespace cermet
