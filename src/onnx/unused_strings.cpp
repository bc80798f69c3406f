#include "onnx/unused_strings.hpp"

#include <onnx/onnx_pb.h>

#include <algorithm>

namespace cermet::onnx {
namespace {

using P = ::onnx::TensorProto;
using Names = std::set<std::string>;

void add_reads(const ::onnx::NodeProto& node, Names& names, int depth);

void add_reads(const ::onnx::GraphProto& graph, Names& names, int depth) {
  if (depth > 32) return;  // more are refused when they are read
  for (const auto& node : graph.node()) add_reads(node, names, depth);
  for (const auto& output : graph.output()) names.insert(output.name());
}

void add_reads(const ::onnx::NodeProto& node, Names& names, int depth) {
  names.insert(node.input().begin(), node.input().end());
  for (const auto& attribute : node.attribute())
    if (attribute.has_g()) add_reads(attribute.g(), names, depth + 1);
}

bool is_string_constant(const ::onnx::NodeProto& node) {
  return node.op_type() == "Constant" && std::ranges::any_of(node.attribute(), [](const auto& a) {
           return a.name() == "value_string" || a.name() == "value_strings" ||
                  (a.name() == "value" && a.t().data_type() == P::STRING);
         });
}

bool reads_any(const ::onnx::NodeProto& node, const Names& names) {
  Names reads;
  add_reads(node, reads, 0);
  return std::ranges::any_of(reads, [&](const std::string& name) { return names.contains(name); });
}

/// `needed`: results of the nodes; `strings`: names of constants of strings outside the nodes. What is needed of these
/// is taken out.
template <class Nodes>
std::set<int> unused_nodes(const Nodes& nodes, Names needed, Names& strings) {
  std::set<int> dead, unused;
  for (int n = nodes.size(); n-- > 0;) {  // each after those that read its results
    const auto& node = nodes.Get(n);
    if (std::ranges::none_of(node.output(),
                             [&](const std::string& name) { return !name.empty() && needed.contains(name); }))
      dead.insert(n);
    else add_reads(node, needed, 0);
  }
  std::erase_if(strings, [&](const std::string& name) { return needed.contains(name); });
  Names gone = strings;
  for (const int n : dead) {
    if (!is_string_constant(nodes.Get(n)) && !reads_any(nodes.Get(n), gone)) continue;
    unused.insert(n);
    gone.insert(nodes.Get(n).output().begin(), nodes.Get(n).output().end());
    gone.erase("");
  }
  return unused;
}

}  // namespace

UnusedStrings unused_strings(const ::onnx::GraphProto& graph) {
  UnusedStrings unused;
  for (const auto& tensor : graph.initializer())
    if (tensor.data_type() == P::STRING) unused.initializers.insert(tensor.name());
  if (unused.initializers.empty() && std::ranges::none_of(graph.node(), is_string_constant)) return unused;
  Names needed;
  for (const auto& output : graph.output()) needed.insert(output.name());
  unused.nodes = unused_nodes(graph.node(), std::move(needed), unused.initializers);
  return unused;
}

UnusedStrings unused_strings(const ::onnx::FunctionProto& function) {
  UnusedStrings unused;
  if (std::ranges::any_of(function.node(), is_string_constant))
    unused.nodes =
        unused_nodes(function.node(), Names(function.output().begin(), function.output().end()), unused.initializers);
  return unused;
}

}  // namespace cermet::onnx
