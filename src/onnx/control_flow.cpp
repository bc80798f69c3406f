// Branches and functions, whose nodes are imported in place.
#include <algorithm>

#include "onnx/frames.hpp"
#include "op/schema/reference.hpp"

namespace cermet::onnx {
/// A name that a node reads, of this frame or of one that it sees.
Operand Importer::operand(const Node& node, std::size_t i) const {
  const Operand x = find(node.inputs[i]);
  expect(node, static_cast<bool>(x), "operand {}: expected a value, found none", i);
  return x;
}

/// Results of a frame, which a function's may lack where a graph was handed to it as an attribute.
Operand Importer::frame_result(std::size_t i) const {
  const Frame& frame = state_.frames.back();
  const Operand x = find(frame.results[i]);
  expect(*frame.caller, static_cast<bool>(x), "result '{}': expected a value, found none", frame.results[i]);
  return x;
}

bool Importer::is_true(const Node& node, Operand condition) {
  const TensorData& data = known(condition);
  expect(node, data.bytes().size() == size_of(data.type().dtype), "condition: expected one element, found {}", data.type().to_string());
  return std::ranges::any_of(data.bytes(), [](std::byte b) { return b != std::byte{0}; });
}

void Importer::enter(Frame frame) {
  if (state_.frames.size() >= 100)
    fail(Status::invalid_file, "node '{}': expected at most 100 graphs and functions within each other, found more", frame.caller->name);
  if (frame.loop) {
    for (const Tensor& tensor : frame.loop->body->initializers) frame.names[tensor.name()] = add_tensor(tensor);
  }
  state_.frames.push_back(std::move(frame));
}

bool Importer::control_flow(const Node& node) {
  if (node.domain.empty() && node.op == "If") enter_branch(node);
  else if (node.domain.empty() && node.op == "Loop") enter_loop(node);
  else if (node.domain.empty() && node.op == "Scan") enter_scan(node);
  else if (const FunctionDef* function = model_.function(node)) enter_function(node, *function);
  else return false;
  return true;
}

/// Nodes with the attributes that they take from the call that they are part of; null where there is nothing to take.
std::shared_ptr<const std::vector<Node>> Importer::with_references(const std::vector<Node>& nodes, const Node* call) const {
  if (std::ranges::all_of(nodes, [](const Node& n) { return n.references.empty(); })) return nullptr;
  for (auto frame = state_.frames.rbegin(); !call && frame != state_.frames.rend(); ++frame) {
    if (frame->sees_outer) continue;
    call = frame->caller;  // none in the model's own graph
    break;
  }
  const FunctionDef* function = call ? model_.function(*call) : nullptr;
  auto made = std::make_shared<std::vector<Node>>(nodes);
  for (Node& inner : *made)
    for (const auto& [name, reference] : inner.references) {
      if (call && call->attributes.contains(reference)) inner.attributes[name] = call->attributes.at(reference);
      else if (function && function->defaults.contains(reference)) inner.attributes[name] = function->defaults.at(reference);
    }
  return made;
}

void Importer::enter_branch(const Node& node) {
  expect(node, node.inputs.size() == 1, "expected one operand, found {}", node.inputs.size());
  const GraphDef& branch = graph_attribute(node, is_true(node, operand(node, 0)) ? "then_branch" : "else_branch");
  expect(node, branch.outputs.size() == node.outputs.size(), "expected a branch of {} results, found {}", node.outputs.size(), branch.outputs.size());
  const auto own = with_references(branch.nodes);
  Frame frame{.nodes = own ? own.get() : &branch.nodes,
              .opsets = state_.frames.back().opsets,
              .names = {},
              .results = names_of(branch.outputs),
              .caller = &node,
              .own_nodes = own};
  for (const Tensor& tensor : branch.initializers) frame.names[tensor.name()] = add_tensor(tensor);
  ++state_.frames.back().next;
  enter(std::move(frame));
}

void Importer::enter_function(const Node& node, const FunctionDef& function) {
  expect(node, node.inputs.size() <= function.inputs.size(), "expected at most {} operands, found {}", function.inputs.size(), node.inputs.size());
  const auto own = with_references(function.nodes, &node);
  Frame frame{.nodes = own ? own.get() : &function.nodes,
              .opsets = &function.opsets,
              .names = {},
              .sees_outer = false,
              .results = function.outputs,
              .caller = &node,
              .own_nodes = own};
  for (std::size_t i = 0; i < node.inputs.size(); ++i) frame.names[function.inputs[i]] = find(node.inputs[i]);
  ++state_.frames.back().next;
  enter(std::move(frame));
}

std::vector<Operand> Importer::in_place(const GraphDef& graph, const std::vector<Operand>& inputs) {
  Lowering make(*this, (*state_.frames.back().nodes)[state_.frames.back().next], 0);
  const auto own = with_references(graph.nodes);
  const std::vector<Node>& nodes = own ? *own : graph.nodes;
  Frame frame{.nodes = &nodes, .opsets = state_.frames.back().opsets, .names = {}, .results = {}, .own_nodes = own};
  for (const Tensor& tensor : graph.initializers) frame.names[tensor.name()] = make.constant(tensor.data());  // the same ones when it is done again
  for (std::size_t i = 0; i < inputs.size(); ++i) frame.names[graph.inputs[i].name] = inputs[i];
  struct Entered {
    std::vector<Frame>& frames;
    ~Entered() { frames.pop_back(); }  // also where elements are needed
  };
  state_.frames.push_back(std::move(frame));
  const Entered entered{state_.frames};
  for (const Node& node : nodes) {
    const bool control = node.domain.empty() && (node.op == "If" || node.op == "Loop" || node.op == "Scan");
    if (control || model_.function(node)) fail(Status::unsupported, "node '{}' ({}): not supported in the graph of another operator", node.name, node.op);
    lower(node);
  }
  std::vector<Operand> results;
  for (const ValueInfo& output : graph.outputs) results.push_back(find(output.name));
  return results;
}

void Importer::finish_frame() {
  if (state_.frames.back().loop) {
    if (!next_iteration()) finish_loop();
    return;
  }
  const Frame& frame = state_.frames.back();
  std::vector<Operand> results;
  for (std::size_t i = 0; i < frame.results.size(); ++i) results.push_back(frame_result(i));
  const Node& caller = *frame.caller;
  state_.frames.pop_back();
  for (std::size_t o = 0; o < caller.outputs.size() && o < results.size(); ++o)
    if (!caller.outputs[o].empty()) bind(caller.outputs[o], results[o]);
}

}  // namespace cermet::onnx
