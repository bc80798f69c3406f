#include "onnx/importer.hpp"

#include <algorithm>

namespace cermet::onnx {
namespace {

constexpr std::int64_t most_held_bytes = 256;  ///< of a tensor that the graph holds itself

}  // namespace

const std::string& WeightTable::name_of(const Tensor& tensor) {
  const auto [at, is_new] = names_.try_emplace(&tensor);
  if (is_new) {
    std::string name = tensor.name().empty() ? "constant" : tensor.name();
    for (int n = 2; tensors_.contains(name); ++n) name = fmt::format("{}.{}", tensor.name(), n);
    at->second = name;
    tensors_[name] = &tensor;
  }
  return at->second;
}

const Tensor* WeightTable::find(const std::string& name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? nullptr : found->second;
}

Importer::Importer(const Model& model, WeightTable& weights, const SymbolRanges& ranges, ImportState state)
    : model_(model), weights_(weights), ranges_(ranges), state_(std::move(state)) {
  graph_.name = model.graph->name.empty() ? "model" : model.graph->name;
  for (const SymbolRange& r : ranges) {
    graph_.set_range(r.symbol, r.range);
    greatest_.set(r.symbol, r.range.greatest);
  }
  if (state_.spent > 0) return;  // not the first part
  state_.given_bytes = static_cast<double>(model.tensor_bytes);
  for (const Slot& s : state_.slots)
    if (!s.tensor) state_.given_bytes += static_cast<double>(s.type.bytes().value(greatest_));
}

Operand Importer::add(Slot slot) {
  state_.slots.push_back(std::move(slot));
  return {static_cast<std::int32_t>(state_.slots.size() - 1)};
}

Operand Importer::add_tensor(const Tensor& tensor) {
  Slot slot{.name = tensor.name(), .type = tensor.type(), .data = {}, .symbolic = {}, .tensor = &tensor};
  slot.bits = tensor.bits();
  return add(std::move(slot));
}

Operand Importer::add_view(const Dims& dims, Operand elements) {
  Slot slot{.name = {}, .type = {this->slot(elements).type.dtype, dims}, .data = {}, .symbolic = {}};
  slot.elements = elements;
  return add(std::move(slot));
}

Operand Importer::find(const std::string& name) const {
  for (auto frame = state_.frames.rbegin(); frame != state_.frames.rend(); ++frame) {
    if (const auto found = frame->names.find(name); found != frame->names.end()) return found->second;
    if (!frame->sees_outer) break;
  }
  return {};
}

void Importer::bind(const std::string& name, Operand value) { state_.frames.back().names[name] = value; }

/// The value in the part's graph that an operand is.
ValueId Importer::value(Operand x) {
  if (!x) return {};
  if (const auto found = ids_.find(x.slot); found != ids_.end()) return found->second;
  Slot& s = slot(x);
  ValueId id;
  if (s.depends_on_sizes()) {
    id = size_input(s);
  } else if (s.tensor && s.type.is_constant() && s.type.bytes().constant() <= most_held_bytes) {
    id = graph_.add_constant(fmt::format("constant.{}", x.slot), s.tensor->data());  // rewrite rules look at small constants
  } else if (s.tensor) {
    id = graph_.add_constant(weights_.name_of(*s.tensor), s.type);
  } else if (s.expression) {
    ConstantExpression expression = *s.expression;
    for (ValueId& input : expression.inputs) input = value({input.index});
    id = graph_.add_constant(fmt::format("folded.{}", x.slot), std::move(expression));
  } else if (s.data) {
    id = graph_.add_constant(fmt::format("constant.{}", x.slot), *s.data);
  } else {
    id = graph_.add_input(fmt::format("value.{}", x.slot), s.type);
    inputs_.emplace_back(x.slot, fmt::format("value.{}", x.slot));
  }
  ids_[x.slot] = id;
  return id;
}

/// Every run computes it; nodes that need the same numbers share them.
ValueId Importer::size_input(const Slot& slot) {
  SizeTensor tensor = *size_tensor(slot);
  check_sizes(tensor.type);
  for (const auto& [name, made] : sizes_)
    if (made == tensor) return graph_.find(name);
  const std::string name = fmt::format("sizes.{}", sizes_.size());
  sizes_.emplace_back(name, tensor);
  return graph_.add_input(name, tensor.type);
}

/// The node that is being lowered, as errors name it.
std::string Importer::here() const { return current_ ? fmt::format("node '{}' ({})", current_->name, current_->op) : "the model"; }

std::vector<Operand> Importer::emit(OpKind kind, const std::vector<Operand>& inputs, const Attributes& attributes, const std::string& scope) {
  std::vector<ValueId> values;
  for (const Operand x : inputs) values.push_back(value(x));
  std::optional<Graph::Scope> named;
  if (!scope.empty()) named.emplace(graph_, scope);
  std::vector<Operand> made;
  for (const ValueId id : graph_.apply_all(kind, std::move(values), attributes)) {
    made.push_back(add({.name = graph_.value(id).name, .type = graph_.type(id), .data = {}, .symbolic = {}}));
    check_sizes(graph_.type(id));
    check_result(graph_.type(id));
    ids_[made.back().slot] = id;
  }
  return made;
}

std::optional<SizeTensor> size_tensor(const Slot& slot) {
  if (slot.symbolic) return SizeTensor{slot.type, *slot.symbolic, {}};
  if (slot.counting) return SizeTensor{slot.type, {}, *slot.counting};
  return {};
}

Operand Importer::add_constant(TensorData data) {
  if (replayed_ < state_.applied.size()) {
    const Applied& before = state_.applied[replayed_];
    if (!before.kind && slot(before.results[0]).data == data) return state_.applied[replayed_++].results[0];
    state_.applied.resize(replayed_);
  }
  Slot made{.name = {}, .type = data.type(), .data = {}, .symbolic = {}};
  made.data = std::move(data);
  const Operand result = add(std::move(made));
  state_.applied.push_back({{}, {}, {}, {result}});
  replayed_ = state_.applied.size();
  return result;
}

std::vector<Operand> Importer::apply(OpKind kind, const std::vector<Operand>& inputs, const Attributes& attributes, const std::string& scope) {
  if (replayed_ < state_.applied.size()) {
    const Applied& before = state_.applied[replayed_];
    if (before.kind == kind && before.inputs == inputs && before.attributes == attributes) return state_.applied[replayed_++].results;
    state_.applied.resize(replayed_);  // with what is known now the lowering goes another way
  }
  spend();
  undecided_.reset();
  std::optional<std::vector<Operand>> made = fold(kind, inputs, attributes);
  if (!made) {
    check_broadcast(inputs, kind);
    made = emit(kind, with_one_element(kind, inputs, attributes), attributes, scope);
    note_undecided(inputs, *made);
  }
  state_.applied.push_back({kind, inputs, attributes, *made});
  replayed_ = state_.applied.size();
  return *made;
}

void Importer::lower(const Node& node) {
  const Frame& frame = state_.frames.back();
  const auto opset = frame.opsets->find(node.domain);
  const std::int64_t version = opset == frame.opsets->end() ? 0 : opset->second;
  const OpRow* row = find_row(node.op, node.domain, version);
  if (!row)
    fail(Status::unsupported, "node '{}': operator {}{}{} of opset {} is not supported", node.name, node.domain, node.domain.empty() ? "" : ".", node.op,
         version);
  Lowering lowering(*this, node, version);
  current_ = &node;
  try {
    row->lower(lowering);
  } catch (const Error& error) {
    const std::string message = error.what(), prefix = fmt::format("node '{}' ({})", node.name, node.op);
    throw Error(error.status(), message.starts_with(prefix) ? message : fmt::format("{}: {}", prefix, message));
  }
  for (const std::string& name : node.outputs)
    if (!name.empty() && !state_.frames.back().names.contains(name))
      fail(Status::unsupported, "node '{}' ({}): result '{}' is not supported", node.name, node.op, name);
}

void Importer::step() {
  spend();
  Frame& frame = state_.frames.back();
  replayed_ = 0;
  if (frame.next == frame.nodes->size()) {
    finish_frame();
    state_.applied.clear();
    return;
  }
  const Node& node = (*frame.nodes)[frame.next];
  current_ = &node;
  if (!control_flow(node)) {
    lower(node);
    ++state_.frames.back().next;
  }
  state_.applied.clear();
}

Part Importer::run() {
  try {
    while (!(state_.frames.size() == 1 && state_.frames.back().next == state_.frames.back().nodes->size())) step();
    for (const std::string& name : state_.frames.back().results)
      if (const Slot& result = slot(find(name)); result.elements)
        fail(Status::unsupported, "result '{}': expected at most {} dimensions, found {}", name, Shape::max_rank, result.type.rank());
    return end_part({});
  } catch (const NeedsElements& needs) {
    return end_part({needs.operand.slot});
  }
}

}  // namespace cermet::onnx
