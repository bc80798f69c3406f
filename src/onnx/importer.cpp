#include "onnx/importer.hpp"

#include <algorithm>
#include <unordered_set>

#include "base/buffer.hpp"
#include "op/operator.hpp"
#include "op/reference.hpp"

namespace cermet::onnx {
namespace {

constexpr std::int64_t most_folded = 1 << 16;  ///< elements of an operator that is evaluated while importing; larger ones are computed as weights load
constexpr double most_operations = 1e8;        ///< of such an operator
constexpr int deepest_expression = 200;

std::int64_t elements_of(const TensorType& type) {
  for (const Dim& d : type.dims)
    if (!d.is_constant()) return -1;
  return type.elements().constant();
}

/// Elements of an integer tensor as dimensions.
Dims dims_of(const TensorData& data) {
  const std::int64_t count = elements_of(data.type());
  TensorView view(const_cast<std::byte*>(data.bytes().data()), data.type().dtype, cermet::bind(data.type().dims, {}));
  Dims dims;
  for (std::int64_t i = 0; i < count; ++i) dims.push_back(load_integer(view, i));
  return dims;
}

Slot slot_of(const TensorType& type, Dims elements) {
  Slot slot{.name = {}, .type = type, .data = {}, .symbolic = {}};
  if (!std::ranges::all_of(elements, &Dim::is_constant)) {
    slot.symbolic = std::move(elements);
    return slot;
  }
  OwnedTensor memory(type.dtype, cermet::bind(type.dims, {}));
  for (std::size_t i = 0; i < elements.size(); ++i) store_integer(memory.view, static_cast<std::int64_t>(i), elements[i].constant());
  slot.data.emplace(type, std::span(memory.view.as<const std::byte>(), static_cast<std::size_t>(dense_bytes(type.dtype, memory.view.shape))));
  return slot;
}

/// The definition's result, on the CPU.
std::vector<TensorData> evaluate(const Problem& problem, const std::vector<const TensorData*>& inputs) {
  std::vector<TensorView> from, to;
  std::vector<OwnedTensor> memory;
  for (const TensorData* data : inputs)
    from.push_back(data ? TensorView(const_cast<std::byte*>(data->bytes().data()), data->type().dtype, cermet::bind(data->type().dims, {})) : TensorView());
  from.resize(problem.inputs.size());
  for (const TensorType& type : problem.outputs) to.push_back(memory.emplace_back(type.dtype, cermet::bind(type.dims, {})).view);
  definition(problem).reference({from, to, problem.attributes});
  std::vector<TensorData> results;
  for (std::size_t o = 0; o < to.size(); ++o)
    results.emplace_back(problem.outputs[o], std::span(to[o].as<const std::byte>(), static_cast<std::size_t>(dense_bytes(to[o].dtype, to[o].shape))));
  return results;
}

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

Operand Importer::find(const std::string& name) const {
  for (auto frame = state_.frames.rbegin(); frame != state_.frames.rend(); ++frame) {
    if (const auto found = frame->names.find(name); found != frame->names.end()) return found->second;
    if (!frame->sees_outer) break;
  }
  return {};
}

void Importer::bind(const std::string& name, Operand value) { state_.frames.back().names[name] = value; }

bool Importer::is_known(Operand x) const {
  const Slot& s = state_.slots.at(static_cast<std::size_t>(x.slot));
  return s.data || s.tensor || s.expression;
}

const TensorData& Importer::known(Operand x) {
  Slot& s = slot(x);
  if (s.symbolic) throw NeedsSizes{fmt::format("elements of '{}'", s.name)};
  if (!is_known(x)) throw NeedsElements{x};
  if (s.data) return *s.data;
  if (s.tensor) return s.data.emplace(s.tensor->data());
  const std::shared_ptr<const ConstantExpression> e = s.expression;
  std::vector<const TensorData*> inputs;
  std::vector<std::optional<TensorType>> types;
  for (const ValueId id : e->inputs) {
    const Operand operand{id.index};
    inputs.push_back(operand ? &known(operand) : nullptr);
    types.push_back(operand ? std::optional(inputs.back()->type()) : std::nullopt);
  }
  const Problem problem = make_problem(definition(e->op), std::move(types), e->attributes);
  return slot(x).data.emplace(evaluate(problem, inputs).at(static_cast<std::size_t>(e->output)));
}

/// The value in the part's graph that an operand is.
ValueId Importer::value(Operand x) {
  if (!x) return {};
  if (const auto found = ids_.find(x.slot); found != ids_.end()) return found->second;
  Slot& s = slot(x);
  if (s.symbolic) throw NeedsSizes{fmt::format("'{}' depends on sizes and is read as elements", s.name)};
  ValueId id;
  if (s.tensor) {
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

std::optional<std::vector<Operand>> Importer::fold(OpKind kind, const std::vector<Operand>& inputs, const Attributes& attributes) {
  const bool constant = std::ranges::all_of(inputs, [&](Operand x) { return !x || is_known(x); });
  if (!constant) {
    std::vector<std::pair<TensorType, Dims>> operands;
    bool any = false;
    for (const Operand x : inputs) {
      if (!x) return {};
      const Slot& s = slot(x);
      any = any || s.symbolic;
      if (s.symbolic) operands.emplace_back(s.type, *s.symbolic);
      else if (is_known(x) && (is_integer(s.type.dtype) || s.type.dtype == DType::boolean) && elements_of(s.type) <= 64)
        operands.emplace_back(s.type, dims_of(known(x)));
      else return {};
    }
    if (!any) return {};
    const auto results = shape_arithmetic(kind, operands, attributes, ranges_);
    if (!results) return {};
    std::vector<Operand> made;
    for (const auto& [type, elements] : *results) made.push_back(add(slot_of(type, elements)));
    return made;
  }
  const OpDefinition& op = definition(kind);
  std::vector<std::optional<TensorType>> types;
  for (const Operand x : inputs) types.push_back(x ? std::optional(slot(x).type) : std::nullopt);
  const Problem problem = make_problem(op, std::move(types), attributes);
  std::int64_t elements = 0;
  const auto count = [&](const TensorType& type) { elements += std::min(elements_of(type), most_folded + 1); };
  for (const Operand x : inputs)
    if (x) count(slot(x).type);
  for (const TensorType& type : problem.outputs) {
    if (elements_of(type) < 0) return {};
    count(type);
  }
  std::vector<Operand> made;
  if (elements <= most_folded && cost_of(problem).operations <= most_operations) {
    std::vector<const TensorData*> data;
    for (const Operand x : inputs)
      if (x) known(x);  // before any address is taken
    for (const Operand x : inputs) data.push_back(x ? &known(x) : nullptr);
    for (TensorData& result : evaluate(problem, data)) {
      Slot s{.name = {}, .type = result.type(), .data = {}, .symbolic = {}};
      s.data = std::move(result);
      made.push_back(add(std::move(s)));
    }
    return made;
  }
  int depth = 0;
  for (const Operand x : inputs)
    if (x) depth = std::max(depth, slot(x).expression ? slot(x).depth + 1 : 0);
  for (const TensorType& type : problem.outputs) make_room(type);
  if (depth > deepest_expression) return {};
  for (std::size_t o = 0; o < problem.outputs.size(); ++o) {
    ConstantExpression e{kind, {}, attributes, static_cast<std::int32_t>(o)};
    for (const Operand x : inputs) e.inputs.push_back({x.slot});
    Slot s{.name = {}, .type = problem.outputs[o], .data = {}, .symbolic = {}};
    s.expression = std::make_shared<const ConstantExpression>(std::move(e));
    s.depth = depth;
    made.push_back(add(std::move(s)));
  }
  return made;
}

std::vector<Operand> Importer::emit(OpKind kind, const std::vector<Operand>& inputs, const Attributes& attributes, const std::string& scope) {
  std::vector<ValueId> values;
  for (const Operand x : inputs) values.push_back(value(x));
  std::optional<Graph::Scope> named;
  if (!scope.empty()) named.emplace(graph_, scope);
  std::vector<Operand> made;
  for (const ValueId id : graph_.apply_all(kind, std::move(values), attributes)) {
    made.push_back(add({.name = graph_.value(id).name, .type = graph_.type(id), .data = {}, .symbolic = {}}));
    check_result(graph_.type(id));
    ids_[made.back().slot] = id;
  }
  return made;
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
  std::optional<std::vector<Operand>> made = fold(kind, inputs, attributes);
  if (!made) made = emit(kind, inputs, attributes, scope);
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
      if (const Operand x = find(name); slot(x).symbolic) throw NeedsSizes{fmt::format("result '{}' depends on sizes", name)};
    return end_part({});
  } catch (const NeedsElements& needs) {
    return end_part({needs.operand.slot});
  }
}

/// Adds the names that nodes from `first` on read, in their graphs too.
void add_names_read(const std::vector<Node>& nodes, std::size_t first, std::unordered_set<std::string>& names) {
  for (std::size_t n = first; n < nodes.size(); ++n) {
    names.insert(nodes[n].inputs.begin(), nodes[n].inputs.end());
    for (const auto& [attribute, value] : nodes[n].attributes) {
      const auto* graph = std::get_if<std::shared_ptr<const GraphDef>>(&value);
      if (!graph) continue;
      add_names_read((*graph)->nodes, 0, names);
      for (const ValueInfo& output : (*graph)->outputs) names.insert(output.name);
    }
  }
}

/// Slots that something may read after this part: by name in the frames, or because a lowering has begun.
std::vector<bool> Importer::live_slots() const {
  std::vector<bool> live(state_.slots.size());
  const auto keep = [&](Operand x) {
    if (x) live[static_cast<std::size_t>(x.slot)] = true;
  };
  std::unordered_set<std::string> read;
  for (const Frame& frame : state_.frames) {
    add_names_read(*frame.nodes, frame.loop ? 0 : frame.next, read);
    read.insert(frame.results.begin(), frame.results.end());
  }
  for (const Frame& frame : state_.frames) {
    for (const auto& [name, x] : frame.names)
      if (read.contains(name)) keep(x);
    if (!frame.loop) continue;
    for (const auto& pieces : frame.loop->stacked) std::ranges::for_each(pieces, keep);
    std::ranges::for_each(frame.loop->scan_inputs, keep);
  }
  for (const Applied& applied : state_.applied) std::ranges::for_each(applied.results, keep);
  return live;
}

Part Importer::end_part(std::vector<std::int32_t> reads) {
  Part part;
  if (!reads.empty() && !ranges_.empty()) throw NeedsSizes{fmt::format("elements of '{}' must be known", slot({reads.front()}).name)};
  std::unordered_set<std::int32_t> wanted(reads.begin(), reads.end());
  if (reads.empty())
    for (const std::string& name : state_.frames.back().results) part.results.push_back(find(name));
  const std::vector<bool> live = reads.empty() ? std::vector<bool>(state_.slots.size()) : live_slots();
  for (const Operand x : part.results) wanted.insert(x.slot);
  for (const auto& [slot, id] : ids_) {
    const bool made = graph_.value(id).kind == ValueKind::intermediate;
    if (made && (wanted.contains(slot) || live[static_cast<std::size_t>(slot)])) part.outputs.emplace_back(slot, graph_.value(id).name);
  }
  std::ranges::sort(part.outputs);
  for (const auto& [slot, name] : part.outputs) graph_.add_output(name, ids_.at(slot));
  part.graph = std::move(graph_);
  part.inputs = std::move(inputs_);
  part.reads = std::move(reads);
  part.state = std::move(state_);
  return part;
}

}  // namespace cermet::onnx
