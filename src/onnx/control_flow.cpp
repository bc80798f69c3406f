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
  expect(node, data.bytes().size() == size_of(data.type().dtype), "condition: expected one element, found {}",
         data.type().to_string());
  return std::ranges::any_of(data.bytes(), [](std::byte b) { return b != std::byte{0}; });
}

void Importer::enter(Frame frame) {
  if (state_.frames.size() >= 100)
    fail(Status::invalid_file, "node '{}': expected at most 100 graphs and functions within each other, found more",
         frame.caller->name);
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
std::shared_ptr<const std::vector<Node>> Importer::with_references(const std::vector<Node>& nodes,
                                                                   const Node* call) const {
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
      else if (function && function->defaults.contains(reference))
        inner.attributes[name] = function->defaults.at(reference);
    }
  return made;
}

void Importer::enter_branch(const Node& node) {
  expect(node, node.inputs.size() == 1, "expected one operand, found {}", node.inputs.size());
  const GraphDef& branch = graph_attribute(node, is_true(node, operand(node, 0)) ? "then_branch" : "else_branch");
  expect(node, branch.outputs.size() == node.outputs.size(), "expected a branch of {} results, found {}",
         node.outputs.size(), branch.outputs.size());
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
  expect(node, node.inputs.size() <= function.inputs.size(), "expected at most {} operands, found {}",
         function.inputs.size(), node.inputs.size());
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
  for (const Tensor& tensor : graph.initializers)
    frame.names[tensor.name()] = make.constant(tensor.data());  // the same ones when it is done again
  for (std::size_t i = 0; i < inputs.size(); ++i) frame.names[graph.inputs[i].name] = inputs[i];
  struct Entered {
    std::vector<Frame>& frames;
    ~Entered() { frames.pop_back(); }  // also where elements are needed
  };
  state_.frames.push_back(std::move(frame));
  const Entered entered{state_.frames};
  for (const Node& node : nodes) {
    const bool control = node.domain.empty() && (node.op == "If" || node.op == "Loop" || node.op == "Scan");
    if (control || model_.function(node))
      fail(Status::unsupported, "node '{}' ({}): not supported in the graph of another operator", node.name, node.op);
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

// ---- Loop and Scan: the nodes of their body are imported once for each iteration ----

namespace {

constexpr std::int64_t most_iterations = 10000;

}  // namespace

/// A frame that runs a loop's body.
Frame Importer::frame_of(const Node& node, const std::shared_ptr<Frame::Loop>& loop) const {
  const auto own = with_references(loop->body->nodes);
  return {.nodes = own ? own.get() : &loop->body->nodes,
          .opsets = state_.frames.back().opsets,
          .names = {},
          .results = names_of(loop->body->outputs),
          .caller = &node,
          .loop = loop,
          .own_nodes = own};
}

void Importer::enter_loop(const Node& node) {
  expect(node, node.inputs.size() >= 2, "expected at least 2 operands, found {}", node.inputs.size());
  const GraphDef& body = graph_attribute(node, "body");
  auto loop = std::make_shared<Frame::Loop>();
  loop->body = &body;
  loop->carried = node.inputs.size() - 2;
  expect(node, body.inputs.size() == node.inputs.size(), "expected a body of {} inputs, found {}", node.inputs.size(),
         body.inputs.size());
  expect(node, body.outputs.size() == node.outputs.size() + 1, "expected a body of {} results, found {}",
         node.outputs.size() + 1, body.outputs.size());
  expect(node, loop->carried <= node.outputs.size(), "expected at least {} results, found {}", loop->carried,
         node.outputs.size());
  bool goes = true;
  if (!node.inputs[0].empty()) {
    const Ints trips = Lowering(*this, node, 0).ints_in(operand(node, 0));
    expect(node, trips.size() == 1, "trip count: expected one element, found {}",
           slot(operand(node, 0)).type.to_string());
    loop->trips = trips[0];
  }
  Operand condition;
  if (!node.inputs[1].empty()) goes = is_true(node, condition = operand(node, 1));
  goes = goes && (!loop->trips || *loop->trips > 0);
  std::vector<Operand> carried;
  for (std::size_t i = 0; i < loop->carried; ++i) carried.push_back(operand(node, i + 2));
  loop->stacked.resize(node.outputs.size() - loop->carried);
  Frame frame = frame_of(node, loop);
  if (!goes) return bind_without_iteration(node, frame, carried);
  ++state_.frames.back().next;
  enter(std::move(frame));
  begin_iteration(carried, condition);
}

void Importer::enter_scan(const Node& node) {
  const auto opset = state_.frames.back().opsets->find("");
  expect(node, opset != state_.frames.back().opsets->end(), "expected an opset, found none");
  const Lowering given(*this, node, opset->second);
  const bool in_sequences = opset->second < 9;  // operands [B, S, ..] after lengths of the sequences
  const std::size_t lead = in_sequences ? 1 : 0;
  if (in_sequences && given.has(0))
    fail(Status::unsupported, "node '{}' (Scan): lengths of sequences are not supported", node.name);
  const GraphDef& body = graph_attribute(node, "body");
  const std::int64_t scanned = given.integer("num_scan_inputs", 0);
  expect(node,
         scanned >= 1 && scanned + static_cast<std::int64_t>(lead) <= static_cast<std::int64_t>(node.inputs.size()),
         "attribute num_scan_inputs: expected 1 to {}, found {}", node.inputs.size(), scanned);
  auto loop = std::make_shared<Frame::Loop>();
  loop->body = &body;
  loop->is_scan = true;
  loop->carried = node.inputs.size() - lead - static_cast<std::size_t>(scanned);
  expect(node,
         body.inputs.size() == node.inputs.size() - lead && body.outputs.size() == node.outputs.size() &&
             loop->carried <= node.outputs.size(),
         "expected a body of {} inputs and {} results, found {} and {}", node.inputs.size() - lead, node.outputs.size(),
         body.inputs.size(), body.outputs.size());
  const std::size_t results = node.outputs.size() - loop->carried;
  const auto list = [&](const char* name, std::size_t count) {
    Ints values = given.integers(name);
    if (values.empty()) values.resize(count);
    expect(node, values.size() == count, "attribute {}: expected {} entries, found {}", name, count, values.size());
    return values;
  };
  loop->input_axes = list("scan_input_axes", static_cast<std::size_t>(scanned));
  loop->input_directions =
      list(in_sequences ? "directions" : "scan_input_directions", static_cast<std::size_t>(scanned));
  loop->output_axes = list("scan_output_axes", results);
  loop->output_directions = list("scan_output_directions", results);
  for (std::size_t i = lead + loop->carried; i < node.inputs.size(); ++i) {
    const Operand x = operand(node, i);
    std::int64_t& axis = loop->input_axes[i - lead - loop->carried];
    axis = given.axis(in_sequences ? 1 : axis, given.rank(x));
    const std::int64_t length = given.size(x, static_cast<int>(axis));
    expect(node, !loop->trips || *loop->trips == length,
           "operand {}: expected {} positions, as the others have, found {}", i, loop->trips.value_or(0), length);
    loop->trips = length;
    loop->scan_inputs.push_back(x);
  }
  if (*loop->trips == 0 && in_sequences)
    fail(Status::unsupported, "node '{}' (Scan): sequences of no element are not supported", node.name);
  loop->stacked.resize(results);
  std::vector<Operand> carried;
  for (std::size_t i = 0; i < loop->carried; ++i) carried.push_back(operand(node, lead + i));
  if (in_sequences) {
    loop->sequences = given.size(loop->scan_inputs[0], 0);
    for (const std::vector<Operand>* operands : {&loop->scan_inputs, &carried})
      for (const Operand x : *operands)
        expect(node, given.size(x, 0) == loop->sequences, "expected {} sequences, found {}", loop->sequences,
               given.size(x, 0));
    expect(node, loop->sequences > 0, "expected a sequence, found none");
    loop->trips = *loop->trips * std::min(loop->sequences, most_iterations + 1);
    loop->initial = carried;
    loop->finals.resize(loop->carried);
  }
  Frame frame = frame_of(node, loop);
  if (*loop->trips == 0) return bind_without_iteration(node, frame, carried);
  ++state_.frames.back().next;
  enter(std::move(frame));
  begin_iteration(carried, {});
}

void Importer::begin_iteration(const std::vector<Operand>& carried, Operand condition) {
  Frame::Loop& loop = *state_.frames.back().loop;
  if (loop.iteration >= most_iterations)
    fail(Status::unsupported, "node '{}': loops of more than {} iterations are not supported",
         state_.frames.back().caller->name, most_iterations);
  Lowering make(*this, *state_.frames.back().caller, 0);
  const std::vector<ValueInfo>& inputs = loop.body->inputs;
  std::size_t next = 0;
  if (!loop.is_scan) {
    bind(inputs[next++].name,
         make.constant(TensorData::of({DType::i64, {}}, std::vector<std::int64_t>{loop.iteration})));
    bind(inputs[next++].name, condition ? condition : make.scalar(DType::boolean, 1));
  }
  const std::int64_t length = loop.trips.value_or(0) / std::max<std::int64_t>(loop.sequences, 1);
  const std::int64_t sequence = loop.sequences ? loop.iteration / length : 0,
                     step = loop.sequences ? loop.iteration % length : loop.iteration;
  const auto of_sequence = [&](Operand x) { return make.squeeze(make.slice(x, 0, sequence, sequence + 1), {0}); };
  const bool is_fresh = loop.sequences && step == 0;
  for (std::size_t i = 0; i < carried.size(); ++i)
    bind(inputs[next++].name, is_fresh ? of_sequence(loop.initial[i]) : carried[i]);
  for (std::size_t i = 0; i < loop.scan_inputs.size(); ++i) {
    const Operand x = loop.sequences ? of_sequence(loop.scan_inputs[i]) : loop.scan_inputs[i];
    const auto axis = static_cast<int>(loop.sequences ? 0 : loop.input_axes[i]);
    const std::int64_t at = loop.input_directions[i] ? length - 1 - step : step;
    bind(inputs[next++].name, make.squeeze(make.slice(x, axis, at, at + 1), {axis}));
  }
  state_.frames.back().next = 0;
}

bool Importer::next_iteration() {
  const Frame& frame = state_.frames.back();
  const std::size_t first = frame.loop->is_scan ? 0 : 1;
  Operand condition;
  if (!frame.loop->is_scan) condition = frame_result(0);
  const bool more = !frame.loop->trips || frame.loop->iteration + 1 < *frame.loop->trips;
  const bool goes =
      frame.loop->is_scan || !more || is_true(*frame.caller, condition);  // the last thing that may need elements
  // The state may be copied from here on, so the loop's own state is not shared with copies.
  state_.frames.back().loop = std::make_shared<Frame::Loop>(*frame.loop);
  Frame::Loop& loop = *state_.frames.back().loop;
  std::vector<Operand> carried;
  for (std::size_t i = 0; i < loop.carried; ++i) carried.push_back(frame_result(first + i));
  for (std::size_t i = 0; i < loop.stacked.size(); ++i)
    loop.stacked[i].push_back(frame_result(first + loop.carried + i));
  ++loop.iteration;
  if (loop.sequences && loop.iteration % (*loop.trips / loop.sequences) == 0)
    for (std::size_t i = 0; i < carried.size(); ++i) loop.finals[i].push_back(carried[i]);
  if (!more || !goes) return false;
  begin_iteration(carried, condition);
  return true;
}

void Importer::finish_loop() {
  const Frame frame = state_.frames.back();
  const Frame::Loop& loop = *frame.loop;
  std::vector<Operand> results;
  Lowering make(*this, *frame.caller, 0);
  const auto stacked = [&](std::vector<Operand> pieces, int axis) {
    for (Operand& piece : pieces) piece = make.unsqueeze(piece, {axis});
    return make.concat(std::move(pieces), axis);
  };
  for (std::size_t i = 0; i < loop.carried; ++i)
    results.push_back(loop.sequences ? stacked(loop.finals[i], 0) : frame_result((loop.is_scan ? 0 : 1) + i));
  for (std::size_t i = 0; i < loop.stacked.size(); ++i) {
    std::vector<Operand> pieces = loop.stacked[i];
    if (loop.is_scan && loop.output_directions[i]) std::ranges::reverse(pieces);
    const int axis = loop.is_scan ? make.axis(loop.output_axes[i], make.rank(pieces[0]) + 1) : 0;
    Operand all = stacked(std::move(pieces), axis);
    if (loop.sequences) {  // [B * S, ..]
      Dims dims = make.dims(all);
      dims[0] = *loop.trips / loop.sequences;
      dims.insert(dims.begin(), loop.sequences);
      all = make.reshape(all, dims);
    }
    results.push_back(all);
  }
  state_.frames.pop_back();
  for (std::size_t o = 0; o < results.size(); ++o)
    if (!frame.caller->outputs[o].empty()) bind(frame.caller->outputs[o], results[o]);
}

// ---- Loops of no iteration: results that stack what iterations give are empty, with the dimensions that one iteration
// would have given ----

namespace {

/// As the file declares it; sizes that it leaves open are 0, as ONNX Runtime has it.
TensorType declared_type(const Node& node, const ValueInfo& value) {
  if (!value.dtype || !value.dims)
    fail(Status::unsupported,
         "node '{}' ({}): no iteration: expected declared dimensions of the body's result '{}', found none", node.name,
         node.op, value.name);
  TensorType type{*value.dtype, {}};
  for (const DeclaredDim& d : *value.dims) type.dims.emplace_back(d.value.value_or(0));
  return type;
}

}  // namespace

/// Types of what an iteration would stack, from one on operands whose elements are not known; none where it needs them.
/// The number of the iteration is known on a second try, because slices may begin there; what is folded by it is not
/// used.
std::optional<std::vector<TensorType>> Importer::types_of_trial(const Frame& frame, const std::vector<Operand>& carried,
                                                                bool is_number_known) {
  state_.spent += static_cast<std::int64_t>(state_.slots.size() / 64);  // for the copy
  Importer trial(model_, weights_, ranges_, state_);
  std::optional<std::vector<TensorType>> types;
  try {
    const Frame::Loop& loop = *frame.loop;
    const std::vector<ValueInfo>& inputs = loop.body->inputs;
    trial.enter(frame);
    const auto unknown = [&](TensorType type) {
      return trial.add({.name = "trial", .type = std::move(type), .data = {}, .symbolic = {}});
    };
    std::size_t next = 0;
    if (!loop.is_scan) {
      trial.bind(inputs[next++].name,
                 is_number_known ? trial.add_constant(TensorData::of({DType::i64, {}}, std::vector<std::int64_t>{0}))
                                 : unknown({DType::i64, {}}));
      trial.bind(inputs[next++].name,
                 trial.add_constant(TensorData::of({DType::boolean, {}}, std::vector<std::uint8_t>{1})));
    }
    for (const Operand x : carried) trial.bind(inputs[next++].name, x);
    for (std::size_t i = 0; i < loop.scan_inputs.size(); ++i) {
      TensorType type = slot(loop.scan_inputs[i]).type;
      type.dims.erase(type.dims.begin() + loop.input_axes[i]);
      trial.bind(inputs[next++].name, unknown(std::move(type)));
    }
    const std::size_t depth = trial.state_.frames.size();
    while (trial.state_.frames.size() > depth ||
           trial.state_.frames.back().next < trial.state_.frames.back().nodes->size())
      trial.step();
    types.emplace();
    for (std::size_t i = 0; i < loop.stacked.size(); ++i)
      types->push_back(trial.slot(trial.frame_result((loop.is_scan ? 0 : 1) + carried.size() + i)).type);
  } catch (const NeedsElements&) {
    types.reset();
  } catch (const NeedsSizes&) {
    types.reset();
  } catch (const Error&) {
    types.reset();
  }
  state_.spent = trial.state_.spent;
  state_.made_bytes = trial.state_.made_bytes;
  state_.evaluated = trial.state_.evaluated;
  return types;
}

void Importer::bind_without_iteration(const Node& node, const Frame& frame, const std::vector<Operand>& carried) {
  const Frame::Loop& loop = *frame.loop;
  std::optional<std::vector<TensorType>> types;
  if (!loop.stacked.empty()) types = types_of_trial(frame, carried, false);
  if (!loop.stacked.empty() && !types && !loop.is_scan) types = types_of_trial(frame, carried, true);
  Lowering make(*this, node, 0);
  std::vector<Operand> results = carried;
  for (std::size_t i = 0; i < loop.stacked.size(); ++i) {
    TensorType type =
        types ? (*types)[i] : declared_type(node, loop.body->outputs[(loop.is_scan ? 0 : 1) + carried.size() + i]);
    const int axis = loop.is_scan ? make.axis(loop.output_axes[i], type.rank() + 1) : 0;
    type.dims.insert(type.dims.begin() + axis, 0);
    results.push_back(make.filled(type.dims, type.dtype, 0));
  }
  ++state_.frames.back().next;
  for (std::size_t o = 0; o < results.size(); ++o)
    if (!node.outputs[o].empty()) bind(node.outputs[o], results[o]);
}

}  // namespace cermet::onnx
