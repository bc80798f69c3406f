// A graph behind the C ABI: built node by node, with the caller's tensors as the values of its constants.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "api/handle.hpp"
#include "cermet/graph.h"
#include "graph/graph.hpp"

namespace cermet::api {

/// What the caller's pointers to a value's description point to.
class ValueText {
 public:
  cermet_value_info of(const std::string& name, const TensorType& type);

 private:
  std::string name_, type_;
  std::vector<std::int64_t> shape_;
  std::vector<std::string> dims_;
  std::vector<const char*> symbols_;
};

/// The caller's memory, which is read when the graph is compiled.
struct ConstantMemory {
  TensorView view;
  bool on_device = false;
};

/// Reads a constant of the caller, or one matrix of it, as LoadWeight does.
void read_constant(const Handle& handle, const ConstantMemory& memory, std::int64_t slice,
                   const TensorView& destination);
/// The caller's tensor, checked, of this type. `is_read`: its memory is touched.
ConstantMemory constant_memory(const Handle& handle, const char* name, std::size_t index, const TensorType& type,
                               const DLTensor& tensor, bool is_read);

class GraphBuilder {
 public:
  GraphBuilder(std::shared_ptr<Handle> handle, Graph graph) : handle_(std::move(handle)), graph_(std::move(graph)) {}
  GraphBuilder(const GraphBuilder&) = delete;  // scopes refer to the graph
  GraphBuilder& operator=(const GraphBuilder&) = delete;

  /// Of a caller's tensor of this type, with its dimensions in this order in memory: the value, and the result, have
  /// the caller's dimensions.
  ValueId add_input(const char* name, const TensorType& type, Ints order);
  void add_output(const char* name, ValueId value, Ints order);
  ValueId add_constant(const char* name, const char* dtype, const DLTensor& tensor);
  ValueId add_literal(const char* name, const char* dtype, const DLTensor& tensor);
  void set_constant(const char* name, const DLTensor& tensor);
  std::vector<ValueId> apply(const char* op, std::span<const cermet_value> inputs,
                             std::span<const cermet_attribute> attributes, const char* const* names);
  void begin_scope(const char* name);
  void end_scope();
  /// Without a name: excludes.
  void begin_super_kernel(const char* name, const char* options);
  void end_super_kernel();
  /// Throws Error where the graph has no such value.
  ValueId value(cermet_value id, std::string_view what) const;

  Graph& graph() { return graph_; }
  const Graph& graph() const { return graph_; }
  const std::shared_ptr<Handle>& handle() const { return handle_; }
  const std::map<std::string, ConstantMemory, std::less<>>& constants() const { return constants_; }

  ValueText described;
  std::string text;  ///< what cermet_graph_text() returned last

 private:
  ConstantMemory memory_of(const char* name, const TensorType& type, const DLTensor& tensor, bool is_read) const;

  std::shared_ptr<Handle> handle_;
  Graph graph_;
  std::map<std::string, ConstantMemory, std::less<>> constants_;
  std::vector<std::unique_ptr<Graph::Scope>> scopes_;
  std::vector<std::unique_ptr<Graph::SuperKernelScope>> super_kernels_;
};

}  // namespace cermet::api

struct cermet_graph {
  cermet::api::GraphBuilder builder;
};
