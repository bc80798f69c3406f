// The end of a part: its graph, and what later parts read of it.
#include <algorithm>
#include <unordered_set>

#include "onnx/importer.hpp"

namespace cermet::onnx {

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
        return fmt::format("{}: operand {} ('{}') depends on elements, which are known only in a run", here(), i, current_->inputs[i]);
  return fmt::format("{} depends on elements of '{}', which are known only in a run", here(), state_.slots.at(static_cast<std::size_t>(x.slot)).name);
}

/// A session learns sizes from the shapes of its inputs: the graph gets an input of the model that has one even where nothing reads its elements.
void Importer::tell_sizes() {
  const auto tells = [](const TensorType& type, const Symbol& symbol) { return std::ranges::any_of(type.dims, [&](const Dim& d) { return d.is(symbol); }); };
  for (const SymbolRange& r : ranges_) {
    const auto& values = graph_.values();
    if (std::ranges::any_of(values, [&](const cermet::Value& v) { return v.kind == ValueKind::input && tells(v.type, r.symbol); })) continue;
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
  if (!reads.empty() && !ranges_.empty()) throw NeedsSizes{reads_elements({reads.front()}), slot({reads.front()}).undecided};
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
  part.sizes = std::move(sizes_);
  part.reads = std::move(reads);
  part.state = std::move(state_);
  return part;
}

}  // namespace cermet::onnx
