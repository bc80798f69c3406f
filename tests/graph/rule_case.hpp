// Random graphs that a rule of algebra finds: types, shapes, attributes and constants of the pattern's operands are
// drawn until its side condition holds.
#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>

#include "format/element.hpp"
#include "graph/rewrite/rule.hpp"
#include "op/schema/operator.hpp"
#include "tests/graph/random_attributes.hpp"

namespace cermet {

class RuleCase : private RandomAttributes {
 public:
  using Elements = std::map<std::string, std::vector<double>>;

  RuleCase(const Rule& rule, std::uint32_t seed) : RandomAttributes(rule.name, seed), rule_(rule) {}

  /// A graph whose result is the pattern's, or nothing where the operators do not take what was drawn.
  std::optional<Graph> draw() {
    graph_ = Graph();
    graph_.name = std::string(rule_.name);
    values_.assign(rule_.before.names.size(), {});
    dtype_ = draw_dtype();
    base_ = draw_dims();
    alike_ = one_in(2);
    begin();
    try {
      for (const PatternNode& node : rule_.before.nodes) add(node);
    } catch (const Error&) {
      return {};
    }
    for (const PatternName& result : rule_.before.nodes.back().results)
      if (result.slot >= 0)
        graph_.add_output(rule_.before.names[static_cast<std::size_t>(result.slot)],
                          values_[static_cast<std::size_t>(result.slot)]);
    return std::move(graph_);
  }

  /// Elements of the graph's inputs, and of constants without any. `special`: infinities, NaN and signed zeros among
  /// them.
  Elements draw_elements(const Graph& graph, bool special) {
    Elements elements;
    for (const Value& value : graph.values()) {
      if (value.kind == ValueKind::intermediate || value.data() || value.expression()) continue;
      std::vector<double>& list = elements[value.name];
      const double width = one_in(4) ? 8 : 2;
      for (std::int64_t i = 0; i < value.type.elements().constant(); ++i)
        list.push_back(rounded(draw_element(value.type.dtype, special, width), value.type.dtype));
    }
    return elements;
  }

 private:
  double draw_element(DType dtype, bool special, double width) {
    if (dtype == DType::boolean) return one_in(2) ? 1 : 0;
    if (!is_floating(dtype))
      return static_cast<double>(one_in(8) ? between(0, 1 << 30) * (one_in(2) ? 1 : -1) : between(-9, 40));
    static constexpr double specials[] = {0.0, -0.0, INFINITY, -INFINITY,
                                          NAN, 1,    -1,       1e30};  // whose square is infinite
    if (special && one_in(4)) return specials[random_() % std::size(specials)];
    double sum = 0;
    for (int i = 0; i < 4; ++i) sum += uniform(-1, 1);
    return width * sum / 2;
  }

  static double rounded(double value, DType dtype) {
    std::byte element[8];
    format::store_element(element, dtype, 0, value);
    return format::load_element(element, dtype, 0);
  }

  DType draw_dtype() {
    using enum DType;
    static constexpr DType floats[] = {f32, f32, f32, f64, bf16, f16}, whole[] = {i32, i64, u32, u8, i16, u64},
                           all[] = {f32, i64, boolean, f16, u8, boolean};
    if (rule_.condition.types() == Condition::Types::real) return floats[random_() % std::size(floats)];
    if (rule_.condition.types() == Condition::Types::integer) return whole[random_() % std::size(whole)];
    if (rule_.condition.types() == Condition::Types::any) return all[random_() % std::size(all)];
    return one_in(2) ? floats[random_() % std::size(floats)] : whole[random_() % std::size(whole)];
  }

  Dims draw_dims() {
    Dims dims;
    for (std::int64_t a = between(0, 3); a >= 0; --a) dims.push_back(one_in(4) ? 1 : between(1, 3) * 2);
    return dims;
  }

  /// Dimensions that broadcast to the others.
  Dims narrowed(const Dims& dims) {
    Dims narrow = dims;
    if (alike_ || one_in(2)) return narrow;
    for (Dim& dim : narrow)
      if (one_in(3)) dim = 1;
    while (!narrow.empty() && one_in(3)) narrow.erase(narrow.begin());
    return narrow;
  }

  std::optional<TensorType> type(const PatternName& name) const {
    if (name.slot < 0 || !values_[static_cast<std::size_t>(name.slot)]) return {};
    return graph_.type(values_[static_cast<std::size_t>(name.slot)]);
  }

  Dims dims_of_operand(const PatternNode& node, std::size_t i) {
    const auto first = type(node.operands[0]);
    const Dim row = first && first->rank() > 0 ? first->dims.back() : Dim(4),
              rows = first && first->rank() > 1 ? first->dims[0] : Dim(4);
    const auto vector = [&](const Dim& size) { return Dims{size}; };
    switch (node.op) {
      case OpKind::linear: {
        if (i == 0) return base_;
        const auto w = i == 2 ? type(node.operands[1]) : std::nullopt;
        if (i == 2) return vector(w ? w->dims[0] : columns_);
        return {columns_, row};
      }
      case OpKind::conv:
        if (i == 0) return {between(1, 2), channels_, 4, 4};
        return i == 1 ? Dims{columns_, channels_, 3, 3} : vector(columns_);
      case OpKind::matmul: {
        if (i == 0) return {between(1, 4) * 2, between(1, 4) * 2};
        return {one_in(4) ? rows : row, between(1, 4) * 2};
      }
      case OpKind::layer_norm:
      case OpKind::rms_norm: return i == 0 ? base_ : vector(row);
      case OpKind::instance_norm:
      case OpKind::group_norm: return i == 0 ? Dims{2, channels_, 2, 3} : vector(channels_);
      case OpKind::dequantize:
      case OpKind::quantize: return i == 0 ? base_ : one_in(2) ? Dims{} : vector(base_.empty() ? Dim(1) : base_.back());
      case OpKind::reshape:
        if (rule_.name == "group-norm") return {2, 4, 2, 3};
        return base_;
      default: break;
    }
    for (const PatternName& other : node.operands) {
      const auto known = type(other);
      if (!known || known->dtype == DType::boolean) continue;
      if (known->rank() >= 3 && one_in(4)) {  // a number for each channel
        Dims dims(known->dims.size() - 1, 1);
        dims[0] = known->dims[1];
        return dims;
      }
      if (known->rank() >= 1 && one_in(4)) return {known->dims.back()};
      return one_in(8) ? base_ : narrowed(known->dims);
    }
    return narrowed(base_);
  }

  DType dtype_of_operand(const PatternNode& node, std::size_t i) {
    if (node.op == OpKind::where) return i == 0 ? DType::boolean : dtype_;
    if (node.op == OpKind::dequantize) return i == 0 ? DType::i8 : DType::f32;
    if (node.op == OpKind::quantize && i > 0) return DType::f32;
    if (!definition(node.op).inputs[0].dtypes.contains(dtype_) &&
        definition(node.op).inputs[0].dtypes.contains(DType::boolean))
      return DType::boolean;
    return dtype_;
  }

  ValueId number(double value, DType dtype, const Dims& dims) {
    const TensorType type{dtype, dims};
    const auto count = static_cast<std::size_t>(type.elements().constant());
    std::vector<std::byte> bytes(count * size_of(dtype));
    for (std::size_t e = 0; e < count; ++e)
      format::store_element(bytes.data(), dtype, static_cast<std::int64_t>(e), value);
    return graph_.add_constant(fmt::format("k{}", graph_.values().size()), TensorData(type, bytes));
  }

  double draw_scalar(DType dtype) {
    if (!is_floating(dtype)) return static_cast<double>(between(0, 9));
    switch (between(0, 6)) {
      case 0: return static_cast<double>(between(1, 4));
      case 1: return std::ldexp(1, static_cast<int>(between(-3, 3)));
      case 2: return uniform(0, 1);
      case 3: return uniform(-3, 0);
      case 4: return 0.125 * static_cast<double>(between(1, 8));
      case 5: return terms_;  // of a reduction
      default: return uniform(0.01, 3);
    }
  }

  /// An input as the side condition may want it: positive, finite, bounded.
  ValueId input(const std::string& name, DType dtype, const Dims& dims) {
    const auto wrapped = [&](OpKind op) {
      return graph_.apply(op, {graph_.add_input(name, {dtype, dims})}, {}, name + ".in");
    };
    const auto plain = [&] { return graph_.add_input(name, {dtype, dims}); };
    if (!is_floating(dtype) || !mentions(name) || one_in(8)) return plain();
    switch (between(0, 6)) {
      case 0: return wrapped(OpKind::abs);
      case 1: return wrapped(OpKind::sigmoid);
      case 2: return graph_.apply(OpKind::add, {wrapped(OpKind::sigmoid), number(0.5, dtype, {})}, {}, name + ".above");
      case 3: return graph_.apply(OpKind::add, {wrapped(OpKind::abs), number(0.25, dtype, {})}, {}, name + ".above");
      case 4:
      case 5: {  // of whole numbers: finite, not NaN
        const ValueId whole = graph_.add_input(name, {DType::u8, dims});
        const ValueId real =
            graph_.apply(OpKind::cast, {whole}, {{"out_dtype", std::string(name_of(dtype))}}, name + ".in");
        return graph_.apply(OpKind::add, {real, number(0.5, dtype, {})}, {}, name + ".above");
      }
      default: return wrapped(OpKind::exp);
    }
  }
  bool mentions(const std::string& name) const {
    for (std::size_t at = rule_.when.find(name); at != std::string_view::npos; at = rule_.when.find(name, at + 1)) {
      const auto is_part = [&](std::size_t i) {
        return i < rule_.when.size() && std::isalnum(static_cast<unsigned char>(rule_.when[i]));
      };
      if (!(at > 0 && is_part(at - 1)) && !is_part(at + name.size())) return true;
    }
    return false;
  }

  ValueId operand(const PatternNode& node, std::size_t i) {
    const PatternName& name = node.operands[i];
    if (name.kind == PatternName::Kind::absent) return {};
    const DType dtype = dtype_of_operand(node, i);
    if (name.kind == PatternName::Kind::number) {
      const bool is_vector = node.op == OpKind::instance_norm;
      return number(name.number, dtype,
                    is_vector ? dims_of_operand(node, i) : Dims(static_cast<std::size_t>(one_in(4) ? 1 : 0), 1));
    }
    ValueId& made = values_[static_cast<std::size_t>(name.slot)];
    if (made) return made;
    if (name.optional && one_in(2)) return {};
    const std::string& text = rule_.before.names[static_cast<std::size_t>(name.slot)];
    if (name.kind == PatternName::Kind::scalar)
      made = number(draw_scalar(dtype), dtype, Dims(static_cast<std::size_t>(one_in(4) ? 1 : 0), 1));
    else if (name.kind == PatternName::Kind::constant)
      made = graph_.add_constant(text, TensorType{dtype, dims_of_operand(node, i)});
    else made = input(text, dtype, dims_of_operand(node, i));
    return made;
  }

  void add(const PatternNode& node) {
    std::vector<ValueId> inputs;
    if (&node == &rule_.before.nodes.front()) {
      columns_ = between(1, 3) * 2;
      channels_ = rule_.name == "group-norm" ? 2 : 4;
    }
    for (std::size_t i = 0; i < node.operands.size(); ++i) inputs.push_back(operand(node, i));
    if (definition(node.op).commutative && inputs.size() == 2 && one_in(2)) std::swap(inputs[0], inputs[1]);
    Attributes attributes = draw_attributes(node, inputs.empty() || !inputs[0] ? TensorType{} : graph_.type(inputs[0]));
    for (const auto& [name, value] : node.attributes) {
      const auto* text = std::get_if<std::string>(&value);
      if (text && *text == "last") attributes.set(name, Ints{-1});
      else attributes.set(name, value);
    }
    std::vector<std::string> names;
    for (const PatternName& result : node.results) {
      const std::string& name = rule_.before.names[static_cast<std::size_t>(result.slot)];
      names.push_back(name.starts_with('.') ? fmt::format("n{}", graph_.values().size()) : name);
    }
    const std::vector<ValueId> made = graph_.apply_all(node.op, std::move(inputs), attributes, names);
    for (std::size_t o = 0; o < node.results.size(); ++o)
      values_[static_cast<std::size_t>(node.results[o].slot)] = made.at(o);
  }

  const Rule& rule_;
  Graph graph_;
  std::vector<ValueId> values_;  ///< by slot
  Dim columns_ = 4, channels_ = 4;
  bool alike_ = false;
};

}  // namespace cermet
