#include "onnx/importer.hpp"

#include <algorithm>
#include <unordered_set>
#include <utility>

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
    id = graph_.add_constant(fmt::format("constant.{}", x.slot),
                             s.tensor->data());  // rewrite rules look at small constants
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
std::string Importer::here() const {
  return current_ ? fmt::format("node '{}' ({})", current_->name, current_->op) : "the model";
}

std::vector<Operand> Importer::emit(OpKind kind, const std::vector<Operand>& inputs, const Attributes& attributes,
                                    const std::string& scope) {
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

std::vector<Operand> Importer::apply(OpKind kind, const std::vector<Operand>& inputs, const Attributes& attributes,
                                     const std::string& scope) {
  if (replayed_ < state_.applied.size()) {
    const Applied& before = state_.applied[replayed_];
    if (before.kind == kind && before.inputs == inputs && before.attributes == attributes)
      return state_.applied[replayed_++].results;
    state_.applied.resize(replayed_);  // with what is known now the lowering goes another way
  }
  spend();
  undecided_.reset();
  std::optional<std::vector<Operand>> made = fold(kind, inputs, attributes);
  if (!made) {
    check_broadcast(inputs, kind);
    made = emit(kind, inputs, attributes, scope);
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
    fail(Status::unsupported, "node '{}': operator {}{}{} of opset {} is not supported", node.name, node.domain,
         node.domain.empty() ? "" : ".", node.op, version);
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
        fail(Status::unsupported, "result '{}': expected at most {} dimensions, found {}", name, Shape::max_rank,
             result.type.rank());
    return end_part({});
  } catch (const NeedsElements& needs) {
    return end_part({needs.operand.slot});
  }
}

// ---- The end of a part: its graph, and what later parts read of it ----

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
std::vector<bool> Importer::live_slots() {
  std::vector<bool> live(state_.slots.size());
  const auto keep = [&](Operand x) {
    if (!x) return;
    live[static_cast<std::size_t>(x.slot)] = true;
    if (const Operand elements = slot(x).elements) live[static_cast<std::size_t>(elements.slot)] = true;
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

/// Why a part ends: the node and its operand, where it is one.
std::string Importer::reads_elements(Operand x) const {
  if (const std::optional<Dim>& by = state_.slots.at(static_cast<std::size_t>(x.slot)).undecided)
    return fmt::format("{}: sizes in the range differ in the sign of {}", here(), by->to_string());
  if (current_)
    for (std::size_t i = 0; i < current_->inputs.size(); ++i)
      if (!current_->inputs[i].empty() && find(current_->inputs[i]) == x)
        return fmt::format("{}: operand {} ('{}') depends on elements, which are known only in a run", here(), i,
                           current_->inputs[i]);
  return fmt::format("{} depends on elements of '{}', which are known only in a run", here(),
                     state_.slots.at(static_cast<std::size_t>(x.slot)).name);
}

/// A session learns sizes from the shapes of its inputs: the graph gets an input of the model that has one even where
/// nothing reads its elements.
void Importer::tell_sizes() {
  const auto tells = [](const TensorType& type, const Symbol& symbol) {
    return std::ranges::any_of(type.dims, [&](const Dim& d) { return d.is(symbol); });
  };
  for (const SymbolRange& r : ranges_) {
    const auto& values = graph_.values();
    if (std::ranges::any_of(
            values, [&](const cermet::Value& v) { return v.kind == ValueKind::input && tells(v.type, r.symbol); }))
      continue;
    for (std::int32_t s = 0; s < static_cast<std::int32_t>(state_.slots.size()); ++s) {
      const Slot& x = slot({s});
      if (is_known({s}) || x.depends_on_sizes() || ids_.contains(s) || !tells(x.type, r.symbol)) continue;
      static_cast<void>(value({s}));
      break;
    }
  }
}

Part Importer::end_part(std::vector<std::int32_t> reads) {
  Part part;
  tell_sizes();
  if (!reads.empty() && !ranges_.empty())
    throw NeedsSizes{reads_elements({reads.front()}), slot({reads.front()}).undecided};
  std::unordered_set<std::int32_t> wanted(reads.begin(), reads.end());
  if (reads.empty())
    for (const std::string& name : state_.frames.back().results) part.results.push_back(find(name));
  const std::vector<bool> live = reads.empty() ? std::vector<bool>(state_.slots.size()) : live_slots();
  for (const Operand x : part.results) wanted.insert(x.slot);
  for (const auto& [slot, id] : ids_) {
    const bool made = graph_.value(id).kind == ValueKind::intermediate;
    if (made && (wanted.contains(slot) || live[static_cast<std::size_t>(slot)]))
      part.outputs.emplace_back(slot, graph_.value(id).name);
  }
  std::ranges::sort(part.outputs);
  for (const auto& [slot, name] : part.outputs) graph_.add_output(name, ids_.at(slot));
  part.graph = std::move(graph_);
  part.inputs = std::move(inputs_);
  part.sizes = std::move(sizes_);
  part.reads = std::move(reads);
  part.state = std::move(state_);
  return part;
}

// ---- What a file that means harm may not take: time and memory out of proportion to what it holds ----

namespace {

constexpr std::int64_t most_spent = 100'000;
constexpr std::int64_t most_made =
    std::int64_t{1} << 30;  ///< bytes of constants computed of others, beyond four times what the file has
constexpr double most_evaluated =
    1 << 24;  ///< elements and operations while importing, 10 to 50 ns each, beyond four for each byte of the file
constexpr double most_amplified = 4096;  ///< times what a model is given, beyond a GiB, that a result may take
constexpr double least_refused = 1u << 30;

}  // namespace

/// A small file may say what takes forever: functions that call functions, loops within loops.
void Importer::spend() {
  if (++state_.spent > most_spent)
    fail(Status::unsupported, "expected at most {} operators with all iterations and calls, found more", most_spent);
}

/// The same of memory: a constant that is expanded to any size.
void Importer::make_room(const TensorType& type) {
  const std::int64_t bytes = type.bytes().constant(),
                     most = most_made + 4 * std::min(model_.tensor_bytes, std::int64_t{1} << 50);
  if (bytes > most - state_.made_bytes)
    fail(Status::unsupported,
         "expected at most {} bytes of constants that are computed of others, found {} more than {}", most, bytes,
         state_.made_bytes);
  state_.made_bytes += bytes;
}

double Importer::work_left() const {
  return most_evaluated + 4 * static_cast<double>(std::min(model_.tensor_bytes, std::int64_t{1} << 50)) -
         state_.evaluated;
}

/// And of what is computed by definitions, element by element, before anything runs: nothing else here takes longer.
void Importer::evaluate_work(double work) {
  if (work > work_left())
    fail(Status::unsupported,
         "expected at most {} elements and operations to compute while importing, found {} more than {}",
         work_left() + state_.evaluated, work, state_.evaluated);
  state_.evaluated += work;
}

/// Memory is planned for the largest sizes, so nothing may shrink while one of them grows.
void Importer::check_sizes(const TensorType& type) const {
  for (const Dim& dim : type.dims) {
    if (dim.is_constant()) continue;
    if (!dim.grows_with_symbols())
      throw NeedsSizes{fmt::format("{} makes the size {}, which does not grow with every size it is made of", here(),
                                   dim.to_string())};
    if (dim.bounds(ranges_).least < 0)
      throw NeedsSizes{fmt::format("{} makes the size {}, which is negative for some sizes", here(), dim.to_string())};
  }
}

/// And of what is computed when the model runs: an input of one element that is repeated 2^32 times.
void Importer::check_result(const TensorType& type) const {
  const auto bytes = static_cast<double>(type.bytes().value(greatest_));
  if (bytes > least_refused + most_amplified * state_.given_bytes)
    fail(Status::unsupported,
         "expected results that take at most {} times what the model is given ({} bytes), found {}", most_amplified,
         state_.given_bytes, type.to_string());
}

/// A weight of few bits stands for more bytes than it has.
void Lowering::make_room(Operand x, std::int64_t bytes) {
  Slot& slot = importer_.slot(x);
  if (slot.tensor && !std::exchange(slot.has_room, true)) importer_.state().made_bytes -= bytes;
}

}  // namespace cermet::onnx
