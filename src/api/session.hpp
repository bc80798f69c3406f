// A compiled graph behind the C ABI: the caller's tensors are checked and bound, and results written where the caller
// wants them.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "api/dlpack.hpp"
#include "api/graph.hpp"
#include "api/plain_tensor.hpp"
#include "api/run_memory.hpp"
#include "api/shared_weights.hpp"
#include "cermet/graph.h"
#include "runtime/session.hpp"

namespace cermet::api {

class GraphSession {
 public:
  GraphSession(const GraphBuilder& from, const cermet_compile_options& options);
  GraphSession(const GraphSession&) = delete;  // the session refers to the context
  GraphSession& operator=(const GraphSession&) = delete;

  struct Port {
    std::string name;
    TensorType type;         ///< as it is in memory
    Ints order = {};         ///< of the caller's dimensions in memory; empty: as they are
    PlainTensor plain = {};  ///< what it must be in the present run, in the usual case
    TensorView view = {};    ///< of the run: an input, or a result in the caller's memory
    TensorView host = {};    ///< of a run on a GPU: the caller's memory of the host, for an input that is copied
    DeviceBuffer copy = {};  ///< where it is copied to
    bool on_host = false;    ///< on a GPU: the caller's tensor is in memory of the host
    ByteRange range = {};
    int alias = -1;                        ///< of a result: the input whose memory it is
    bool is_state = false;                 ///< of an input: a result is its memory, or it is updated
    bool is_updated = false;               ///< of an input: Graph::updates()
    bool is_direct = false;                ///< of a result: kernels write the caller's memory
    std::vector<std::int64_t> shape = {};  ///< of a result that the caller asked for
    DLTensor stored = {};                  ///< the caller's tensor, of the run, as it is in memory
    Shape stored_shape = {}, stored_strides = {};

    TensorType seen() const;  ///< by the caller
    /// The tensor with its dimensions in the order of memory; the same where there is no order, or it does not fit.
    const DLTensor* in_memory(const DLTensor* tensor);
    /// A view of memory as the caller sees it.
    TensorView seen(const TensorView& memory) const;
  };
  const std::vector<Port>& inputs() const { return inputs_; }
  const std::vector<Port>& outputs() const { return outputs_; }
  const Port& output(std::size_t index) const;

  Shape output_shape(std::size_t index, std::span<const DLTensor* const> inputs);
  void run(std::span<const DLTensor* const> inputs, std::span<DLTensor* const> outputs, void* stream);
  /// In the session's memory, or the caller's.
  DLTensor result(std::size_t index);
  DLManagedTensor* result_copy(std::size_t index);
  std::string explain() const;

  Session& session() { return *session_; }
  const Session& session() const { return *session_; }
  std::size_t constant_bytes() const { return static_cast<std::size_t>(session_->weights().bytes()); }

  ValueText described;
  std::string text;  ///< what cermet_session_explain() returned last

 private:
  void find_state(const Graph& graph);
  void check_updated() const;
  void take_sizes(std::span<const DLTensor* const> inputs);
  void take_input(std::size_t i, const DLTensor& tensor);
  void take_output(std::size_t i, const DLTensor* tensor);
  TensorView copied(Port& port, const TensorView& host);
  void copy_inputs(Stream* stream);
  void copy_results(Stream* stream);
  Expectation expect(const Port& port, std::size_t index, bool is_output) const;
  TensorView result_view(std::size_t index);

  std::shared_ptr<Handle> handle_;
  Context context_;  ///< a stream of its own on the handle's device
  std::string name_;
  std::vector<Port> inputs_, outputs_;
  SymbolRanges ranges_;
  std::vector<Symbol> symbols_used_;
  std::vector<ShapedInput> shapes_;  ///< of the present run
  SymbolValues symbols_, maximum_;
  std::vector<CompileStep> steps_;
  std::shared_ptr<SharedWeights> weights_;  ///< null: the session's own
  std::optional<Session> session_;
  RunMemory memory_;
  Stream* last_stream_ = nullptr;
  std::vector<const DLTensor*> stored_;  ///< inputs of the run as they are in memory
  bool is_sized_ = false, has_run_ = false;
  bool has_moved_ = false;  ///< an input is in other memory than in the last run
};

}  // namespace cermet::api

struct cermet_session {
  cermet::api::GraphSession session;
};
