#include "graph/channels_last.hpp"

#include <algorithm>
#include <numeric>
#include <optional>

#include "graph/channel_order.hpp"
#include "op/schema/operator.hpp"

namespace cermet {
namespace {

bool is_windowed(OpKind op) {
  return op == OpKind::conv || op == OpKind::max_pool || op == OpKind::average_pool || op == OpKind::lp_pool;
}

class Conversion {
 public:
  explicit Conversion(const Graph& from) : from_(from), first_(from.values().size()), last_(from.values().size()) {
    to_.name = from.name;
  }

  Graph run() {
    for (const SymbolRange& r : from_.ranges()) to_.set_range(r.symbol, r.range);
    for (const SuperKernel& each : from_.super_kernels()) to_.add_super_kernel(each.name, each.options);
    for (std::size_t v = 0; v < from_.values().size(); ++v) declare(v);
    for (const Node& node : from_.nodes()) {
      std::optional<Graph::Scope> scope;
      if (!node.scope.empty()) scope.emplace(to_, node.scope);
      const Graph::SuperKernelScope mark(to_, node.super_kernel);
      if (!moved(node)) copied(node);
    }
    for (const GraphOutput& output : from_.outputs()) to_.add_output(output.name, first(output.value), output.order);
    for (const GraphUpdate& update : from_.updates()) to_.add_update(first_[update.input.at()], first(update.value));
    return std::move(to_);
  }

 private:
  const TensorType& type(ValueId id) const { return from_.type(id); }

  void declare(std::size_t v) {
    const Value& value = from_.values()[v];
    if (value.kind == ValueKind::input) first_[v] = to_.add_input(value.name, value.type, value.order);
    if (value.kind != ValueKind::constant) return;
    if (value.data()) {
      first_[v] = to_.add_constant(value.name, *value.data());
    } else if (value.expression()) {
      ConstantExpression expression = *value.expression();
      for (ValueId& input : expression.inputs)
        if (input) input = first_[input.at()];
      first_[v] = to_.add_constant(value.name, std::move(expression));
    } else {
      first_[v] = to_.add_constant(value.name, value.type);
    }
  }

  /// Both orders are the same memory where there is one channel, or one place.
  bool is_alike(const TensorType& type) const {
    Dim places = 1;
    for (std::size_t a = 2; a < type.dims.size(); ++a) places = places * type.dims[a];
    return places == Dim(1) || type.dims[1] == Dim(1);
  }

  /// A name that the graph itself does not use.
  std::string name_beside(ValueId value, std::string_view suffix) {
    std::string name = fmt::format("{}.{}", to_.value(value).name, suffix);
    while (from_.find(name) || to_.find(name)) name = fmt::format("{}.{}{}", to_.value(value).name, suffix, ++count_);
    return name;
  }

  ValueId reordered(ValueId value, const TensorType& shape_of, bool is_last) {
    const std::string name = name_beside(value, is_last ? "channels_last" : "channels_first");
    const int rank = shape_of.rank();
    if (!is_alike(shape_of))
      return to_.apply(OpKind::transpose, {value}, {{"permutation", is_last ? to_last(rank) : to_first(rank)}}, name);
    const Dims dims = is_last ? moved_entries(shape_of.dims, rank) : shape_of.dims;
    Ints shape;
    for (std::size_t a = 0; a < dims.size(); ++a) {
      // An entry of 0 stands for a dimension that stays.
      if ((!dims[a].is_constant() || dims[a] == Dim(0)) && to_.type(value).dims[a] != dims[a])
        return to_.apply(OpKind::transpose, {value}, {{"permutation", is_last ? to_last(rank) : to_first(rank)}}, name);
      shape.push_back(to_.type(value).dims[a] == dims[a] ? 0 : dims[a].constant());
    }
    return to_.apply(OpKind::reshape, {value}, {{"shape", std::move(shape)}}, name);
  }

  /// The value as the graph had it.
  ValueId first(ValueId id) {
    if (!id) return {};
    ValueId& known = first_[id.at()];
    if (!known) known = reordered(last_[id.at()], type(id), false);
    return known;
  }

  /// The value [N, C, ..] with its channels last. Constants are reordered while weights load.
  ValueId last(ValueId id) {
    ValueId& known = last_[id.at()];
    if (!known)
      known = is_constant(id) ? constant_last(first_[id.at()], type(id)) : reordered(first_[id.at()], type(id), true);
    return known;
  }

  bool is_constant(ValueId id) const { return from_.value(id).kind == ValueKind::constant; }

  ValueId constant_last(ValueId value, const TensorType& type) {
    ConstantExpression expression{OpKind::transpose, {value}, {{"permutation", to_last(type.rank())}}, 0};
    return to_.add_constant(name_beside(value, "channels_last"), std::move(expression));
  }

  void copied(const Node& node) {
    std::vector<ValueId> inputs, outputs;
    for (const ValueId id : node.inputs) inputs.push_back(first(id));
    outputs = to_.apply_all(node.op, std::move(inputs), node.attributes, names_of(node));
    for (std::size_t o = 0; o < outputs.size(); ++o) first_[node.outputs[o].at()] = outputs[o];
  }

  std::vector<std::string> names_of(const Node& node) const {
    std::vector<std::string> names;
    for (const ValueId id : node.outputs) names.push_back(from_.value(id).name);
    return names;
  }

  /// Applies the node to channels-last operands.
  bool apply_last(const Node& node, std::vector<ValueId> inputs, const Attributes& attributes) {
    const std::vector<ValueId> outputs = to_.apply_all(node.op, std::move(inputs), attributes, names_of(node));
    for (std::size_t o = 0; o < outputs.size(); ++o) last_[node.outputs[o].at()] = outputs[o];
    return true;
  }

  bool has_last(ValueId id) const { return id && last_[id.at()] && !is_constant(id); }

  /// Whether the node is one that runs with its channels last; then it was applied so.
  bool moved(const Node& node) {
    if (node.inputs.empty() || !node.inputs[0]) return false;
    const int rank = type(node.inputs[0]).rank();
    if (is_windowed(node.op)) return windowed(node, rank);
    if (is_elementwise(node)) return elementwise(node);
    if (node.op == OpKind::transpose) return transposed(node);
    if (!std::ranges::any_of(node.inputs, [&](ValueId id) { return has_last(id); })) return false;
    switch (node.op) {
      case OpKind::transpose: return transposed(node);
      case OpKind::concat: return joined(node, rank);
      case OpKind::slice: return sliced(node, rank);
      case OpKind::split: return split(node, rank);
      case OpKind::pad: return padded(node, rank);
      case OpKind::resize: return resized(node, rank);
      case OpKind::reduce_sum:
      case OpKind::reduce_mean:
      case OpKind::reduce_max:
      case OpKind::reduce_min: return reduced(node, rank);
      default: return false;
    }
  }

  bool windowed(const Node& node, int rank) {
    Attributes attributes = node.attributes;
    const AttributeValue* layout = attributes.find("layout");
    if (layout && *layout != AttributeValue(std::string("nchw"))) return false;
    if (node.op == OpKind::max_pool && node.outputs.size() > 1) return false;
    if (rank < 3 || (node.op != OpKind::conv && !has_last(node.inputs[0]))) return false;
    attributes.set("layout", "nhwc");
    std::vector<ValueId> inputs = node.inputs;
    for (std::size_t i = 0; i < inputs.size(); ++i)
      inputs[i] = i == 0 || i == 3 ? (inputs[i] ? last(inputs[i]) : inputs[i]) : first(inputs[i]);
    return apply_last(node, std::move(inputs), attributes);
  }

  static bool is_elementwise(const Node& node) {
    const OpDefinition& op = definition(node.op);
    if (node.op == OpKind::concat || node.op == OpKind::slice || node.op == OpKind::split || node.outputs.size() != 1)
      return false;
    return std::ranges::all_of(op.inputs,
                               [](const OperandSpec& operand) { return operand.mapping == Mapping::one_to_one; });
  }

  /// Operands broadcast: those of fewer dimensions get leading ones first.
  bool elementwise(const Node& node) {
    const Dims& dims = type(node.outputs[0]).dims;
    const int rank = static_cast<int>(dims.size());
    bool any = false;
    for (const ValueId id : node.inputs) {
      if (!id) continue;
      any = any || (has_last(id) && type(id).dims == dims);
      // A full value in the plain order alone would have to be reordered, which pays only where something else needs it
      // so, too.
      if (!is_constant(id) && type(id).rank() > 1 && type(id).rank() < rank) return false;
    }
    if (!any || rank < 3) return false;
    std::vector<ValueId> inputs;
    for (const ValueId id : node.inputs) inputs.push_back(id ? broadcast_last(id, rank) : id);
    return apply_last(node, std::move(inputs), node.attributes);
  }

  ValueId broadcast_last(ValueId id, int rank) {
    if (type(id).rank() == rank) return last(id);
    if (type(id).rank() == 0) return first(id);
    Ints shape(static_cast<std::size_t>(rank - type(id).rank()), 1);
    for (const Dim& d : type(id).dims) shape.push_back(d.is_constant() ? d.constant() : -1);
    const Attributes attributes{{"shape", std::move(shape)}};
    if (!is_constant(id)) {
      const ValueId full = to_.apply(OpKind::reshape, {first(id)}, attributes, name_beside(first(id), "full"));
      return to_.apply(OpKind::transpose, {full}, {{"permutation", to_last(rank)}}, name_beside(full, "channels_last"));
    }
    const ValueId full = to_.add_constant(name_beside(first(id), "full"),
                                          ConstantExpression{OpKind::reshape, {first(id)}, attributes, 0});
    return constant_last(full, to_.type(full));
  }

  /// To channels last, or back, by the graph's own will: nothing is to be done.
  bool transposed(const Node& node) {
    const AttributeValue* permutation = node.attributes.find("permutation");
    const int rank = type(node.inputs[0]).rank();
    if (!permutation || rank < 3) return false;
    const Ints& order = std::get<Ints>(*permutation);
    if (order == to_last(rank) && has_last(node.inputs[0])) first_[node.outputs[0].at()] = last(node.inputs[0]);
    else if (order == to_first(rank) && !has_last(node.inputs[0])) last_[node.outputs[0].at()] = first(node.inputs[0]);
    else return false;
    return true;
  }

  bool joined(const Node& node, int rank) {
    for (const ValueId id : node.inputs)
      if (!has_last(id)) return false;
    const AttributeValue* axis = node.attributes.find("axis");
    const std::int64_t a = axis ? std::get<std::int64_t>(*axis) : 0;
    std::vector<ValueId> inputs;
    for (const ValueId id : node.inputs) inputs.push_back(last(id));
    Attributes attributes = node.attributes;
    attributes.set("axis", moved_axis(a < 0 ? a + rank : a, rank));
    return apply_last(node, std::move(inputs), attributes);
  }

  bool split(const Node& node, int rank) {
    const AttributeValue* axis = node.attributes.find("axis");
    const std::int64_t a = axis ? std::get<std::int64_t>(*axis) : 0;
    Attributes attributes = node.attributes;
    attributes.set("axis", moved_axis(a < 0 ? a + rank : a, rank));
    return apply_last(node, {last(node.inputs[0])}, attributes);
  }

  bool sliced(const Node& node, int rank) {
    Attributes attributes = node.attributes;
    const AttributeValue* given = attributes.find("axes");
    Ints axes = given ? std::get<Ints>(*given) : Ints();
    if (axes.empty()) {
      const AttributeValue* starts = attributes.find("starts");
      axes.resize(starts ? std::get<Ints>(*starts).size() : 0);
      std::iota(axes.begin(), axes.end(), 0);
    }
    for (std::int64_t& a : axes) a = moved_axis(a < 0 ? a + rank : a, rank);
    attributes.set("axes", std::move(axes));
    return apply_last(node, {last(node.inputs[0])}, attributes);
  }

  static bool has_text_dims(const Node& node) {
    const AttributeValue* const dims = node.attributes.find("dims");
    return dims && !std::get<Strings>(*dims).empty();
  }

  bool padded(const Node& node, int rank) {
    if (has_text_dims(node)) return false;
    Attributes attributes = node.attributes;
    const Ints pads = std::get<Ints>(*attributes.find("pads"));
    const auto middle = pads.begin() + rank;
    Ints moved = moved_entries(Ints(pads.begin(), middle), rank);
    const Ints after = moved_entries(Ints(middle, pads.end()), rank);
    moved.insert(moved.end(), after.begin(), after.end());
    attributes.set("pads", std::move(moved));
    return apply_last(node, {last(node.inputs[0])}, attributes);
  }

  bool resized(const Node& node, int rank) {
    if (has_text_dims(node)) return false;
    Attributes attributes = node.attributes;
    if (const AttributeValue* roi = attributes.find("roi"); roi && !std::get<Floats>(*roi).empty()) return false;
    if (const AttributeValue* sizes = attributes.find("sizes"); sizes && !std::get<Ints>(*sizes).empty())
      attributes.set("sizes", moved_entries(std::get<Ints>(*sizes), rank));
    if (const AttributeValue* scales = attributes.find("scales"); scales && !std::get<Floats>(*scales).empty())
      attributes.set("scales", moved_entries(std::get<Floats>(*scales), rank));
    return apply_last(node, {last(node.inputs[0])}, attributes);
  }

  bool reduced(const Node& node, int rank) {
    Attributes attributes = node.attributes;
    const AttributeValue* given = attributes.find("axes");
    Ints axes = given ? std::get<Ints>(*given) : Ints();
    if (axes.empty()) return false;
    for (std::int64_t& a : axes) a = a < 0 ? a + rank : a;
    const AttributeValue* keep = attributes.find("keepdims");
    const bool keeps = keep && std::get<bool>(*keep);
    // Without the reduced axes, what is left must stand in the order that it had.
    const bool spatial = axes.size() == static_cast<std::size_t>(rank - 2) &&
                         std::ranges::none_of(axes, [](std::int64_t a) { return a < 2; });
    if (!keeps && !spatial) return false;
    for (std::int64_t& a : axes) a = moved_axis(a, rank);
    attributes.set("axes", std::move(axes));
    if (keeps) return apply_last(node, {last(node.inputs[0])}, attributes);
    first_[node.outputs[0].at()] = to_.apply_all(node.op, {last(node.inputs[0])}, attributes, names_of(node))[0];
    return true;
  }

  const Graph& from_;
  Graph to_;
  std::vector<ValueId> first_, last_;  ///< by value of the graph, in each order where it is
  int count_ = 0;
};

}  // namespace

Graph with_channels_last(const Graph& graph) {
  // A convolution of quantized values is a scaled_mm between transposes.
  if (std::ranges::none_of(graph.nodes(),
                           [](const Node& node) { return node.op == OpKind::conv || node.op == OpKind::scaled_mm; }))
    return graph;
  return Conversion(graph).run();
}

}  // namespace cermet
