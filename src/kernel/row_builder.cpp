// What a region's operators are as steps and reductions along rows.
#include <algorithm>

#include "base/checked.hpp"
#include "kernel/row_program.hpp"
#include "kernel/step_builder.hpp"
#include "op/gated.hpp"
#include "op/norm_quant.hpp"
#include "op/operands.hpp"
#include "op/schema/axes.hpp"

namespace cermet {
namespace {

using Source = TileProgram::Source;
using Extent = TileProgram::Extent;
using Kind = RowProgram::Reduction::Kind;

/// Operators along rows: norms, reductions, and those that quantize rows or that take their halves together.
bool goes_along_rows(OpKind op) {
  switch (op) {
    case OpKind::rms_norm:
    case OpKind::add_rms_norm:
    case OpKind::layer_norm:
    case OpKind::softmax:
    case OpKind::reduce_sum:
    case OpKind::reduce_mean:
    case OpKind::reduce_max:
    case OpKind::dynamic_quant:
    case OpKind::rms_norm_quant:
    case OpKind::add_rms_norm_quant:
    case OpKind::silu_and_mul_quant:
    case OpKind::dequant_swiglu_quant: return true;
    default: return false;
  }
}

/// Whether an operator reads two values for each one of its result.
bool takes_halves(OpKind op) { return op == OpKind::silu_and_mul_quant || op == OpKind::dequant_swiglu_quant; }

/// Dimensions of the rows that an operator goes along.
const Dims& dims_of(const Problem& p) { return takes_halves(p.op->kind) ? p.outputs[0].dims : p.input(0).dims; }

/// Of the region's first such operator.
Dims row_dims(const Region& region) {
  for (const RegionNode& node : region.nodes)
    if (goes_along_rows(node.problem.op->kind)) return dims_of(node.problem);
  return {};
}

/// Dimensions of a row of an operator: those of its weight.
int row_rank(const Problem& p) {
  int rank = 1;
  if (p.op->kind != OpKind::rms_norm && p.op->kind != OpKind::add_rms_norm && p.op->kind != OpKind::layer_norm)
    return rank;
  for (std::size_t i = p.op->kind == OpKind::add_rms_norm ? 2 : 1; i < p.inputs.size(); ++i)
    if (p.has(i)) rank = p.input(i).rank();
  return rank;
}

class RowBuilder {
 public:
  explicit RowBuilder(const Region& region)
      : region_(region), steps_(region, [this](const Dims& dims) { return extent(dims); }) {
    made_.dims = row_dims(region);
    if (region.is_single()) made_.trailing = row_rank(region.problem());
  }

  RowProgramOrReason build() {
    if (made_.dims.empty()) return {{}, fmt::format("{}: reduces no rows", region_.operators())};
    for (std::size_t n = 0; n < region_.nodes.size() && !steps_.reason(); ++n) append(n);
    if (!steps_.reason()) add_results();
    if (made_.reductions.empty() && !steps_.reason())
      made_.row = made_.quantization ? made_.quantization->value : steps_.program().results.front().value;
    TileProgramOrReason tile = steps_.finish();
    made_.tile = std::move(tile.program);
    for (const TileProgram::Step& step : made_.tile.steps)
      made_.row_steps.push_back(made_.goes_by_row(step.a) &&
                                (!TileProgram::is_binary(step) || made_.goes_by_row(step.b)));
    return {std::move(made_), std::move(tile.reason)};
  }

 private:
  std::optional<Extent> extent(const Dims& dims) const {
    if (made_.trailing == 1) return broadcast_extent_of(dims, made_.dims);
    const bool is_row = std::equal(dims.begin(), dims.end(), made_.dims.end() - made_.trailing, made_.dims.end());
    return is_row && dims != made_.dims ? Extent::column : extent_of(dims, made_.dims);
  }

  const Problem& problem(std::size_t n) const { return region_.nodes[n].problem; }

  void append(std::size_t n) {
    const Problem& p = problem(n);
    const auto is_real = [](const TensorType& t) { return dtypes::real.contains(t.dtype); };
    if (p.op->kind == OpKind::gather) return steps_.follow_gather(n);
    if (!goes_along_rows(p.op->kind))
      return StepBuilder::knows(p.op->kind) ? steps_.follow(n)
                                            : steps_.fail(n, "neither elementwise nor a reduction of rows");
    if (dims_of(p) != made_.dims) return steps_.fail(n, "its rows have other dimensions than others of the region");
    if (takes_halves(p.op->kind)) return gate(n);
    if (!is_real(p.input(0))) return steps_.fail(n, "its rows are no real numbers");
    switch (p.op->kind) {
      case OpKind::rms_norm: return rms_norm(n, false);
      case OpKind::add_rms_norm: return rms_norm(n, true);
      case OpKind::rms_norm_quant: return norm_quant(n, false);
      case OpKind::add_rms_norm_quant: return norm_quant(n, true);
      case OpKind::layer_norm: return layer_norm(n);
      case OpKind::softmax: return softmax(n);
      case OpKind::dynamic_quant: return dynamic_quant(n);
      default: return reduce(n);
    }
  }

  Source reduced(Kind kind, Source value, float eps = 0) {
    made_.reductions.push_back({kind, value, eps});
    return steps_.input(DType::f32);
  }
  /// Notes what the first reduction of the region reads.
  Source row(Source value) {
    if (!has_row_) made_.row = value;
    has_row_ = true;
    return value;
  }
  bool has_weights_of_rows(std::size_t n, std::size_t weight) const {
    return !problem(n).has(weight) || problem(n).input(weight).rank() == made_.trailing;
  }

  /// The sum that add_rms_norm and add_rms_norm_quant normalize, which is their result 1.
  Source sum(std::size_t n) {
    const Problem& p = problem(n);
    const Source x = steps_.operand(n, 0), residual = steps_.operand(n, 1);
    if (residual.from == Source::From::extra) made_.overwritten = static_cast<std::size_t>(residual.index);
    Source v = steps_.add(OpKind::add, x, residual);
    if (p.attributes.flag("round_sum")) v = steps_.rounded(v, p.outputs[1].dtype, Rounding::strict);
    steps_.set(n, 1, v);
    return v;
  }

  /// Of operand 0, or of the sum of the first two; the next is the weight.
  Source normalized(std::size_t n, bool adds) {
    const Problem& p = problem(n);
    const std::size_t weight = adds ? 2 : 1;
    const Source v = row(adds ? sum(n) : steps_.operand(n, 0));
    const Source y =
        steps_.add(OpKind::mul, v, reduced(Kind::inverse_root, v, static_cast<float>(p.attributes.number("eps"))));
    if (!p.has(weight)) return y;
    const auto offset = static_cast<float>(p.attributes.number("weight_offset"));
    const Source w = steps_.operand(n, weight);
    return steps_.add(OpKind::mul, y, offset == 0 ? w : steps_.add(OpKind::add, w, StepBuilder::number(offset)));
  }

  void rms_norm(std::size_t n, bool adds) {
    if (!has_weights_of_rows(n, adds ? 2 : 1)) return steps_.fail(n, "normalizes over several dimensions");
    steps_.set(n, 0, normalized(n, adds));
  }

  void norm_quant(std::size_t n, bool adds) {
    const NormQuantOperands operands(adds ? 2 : 1);
    Source v = normalized(n, adds);
    if (problem(n).has(operands.smooth)) v = steps_.add(OpKind::mul, v, steps_.operand(n, operands.smooth));
    if (problem(n).has(operands.scale)) return quantize_by(n, v, operands.scale, operands.offset);
    quantize(n, v, adds ? 2 : 1);
  }

  /// silu(gates) * ups.
  Source gated(Source gates, Source ups) {
    const Source activated = steps_.add(OpKind::silu, gates);
    made_.gate = static_cast<std::size_t>(activated.index);
    return steps_.add(OpKind::mul, activated, ups);
  }

  void gate(std::size_t n) {
    const Problem& p = problem(n);
    if (std::ranges::any_of(region_.nodes[n].inputs, &RegionInput::is_inside))
      return steps_.fail(n, "its operands come from inside the region");
    using enum op::silu_and_mul_quant::Operand;
    if (p.op->kind == OpKind::dequant_swiglu_quant) return accumulated_gate(n);
    const GatedLayout layout(p.attributes, p.outputs[0].dims.back().constant());
    const Source gates = row(steps_.extra(n, 0, Extent::element, layout.gate_first, layout.step));
    Source v = gated(gates, steps_.extra(n, 0, Extent::element, layout.up_first, layout.step));
    if (p.has(smooth)) v = steps_.add(OpKind::mul, v, steps_.operand(n, smooth));
    if (p.has(scale)) return quantize_by(n, v, scale, offset);
    quantize(n, v, 1);
  }

  /// One half of rows of int32 accumulators, or of real numbers, dequantized.
  Source accumulated(std::size_t n, std::int64_t first) {
    using enum op::dequant_swiglu_quant::Operand;
    const Problem& p = problem(n);
    const auto half = [&](std::size_t operand) {
      if (p.input(operand).elements() == Dim(1)) return steps_.extra(n, operand, Extent::scalar);
      return steps_.extra(n, operand, p.input(operand).rank() > 1 ? Extent::element : Extent::column, first);
    };
    const bool before = p.has(bias) && p.input(bias).dtype == DType::i32;
    Source v = steps_.extra(n, x, Extent::element, first);
    if (before) v = steps_.add(OpKind::add, v, half(bias), true);
    if (p.input(x).dtype == DType::i32) v = steps_.add(OpKind::cast, v);
    Source scale = half(weight_scale);
    if (p.has(act_scale)) scale = steps_.add(OpKind::mul, scale, steps_.extra(n, act_scale, Extent::row));
    v = steps_.add(OpKind::mul, v, scale);
    return p.has(bias) && !before ? steps_.add(OpKind::add, v, half(bias)) : v;
  }

  void accumulated_gate(std::size_t n) {
    using enum op::dequant_swiglu_quant::Operand;
    const Problem& p = problem(n);
    const std::int64_t features = p.outputs[0].dims.back().constant();
    const bool left = p.attributes.text("activate") == "left";
    const Source gates = row(accumulated(n, left ? 0 : features)), ups = accumulated(n, left ? features : 0);
    Source v = gated(gates, ups);
    if (p.has(smooth)) v = steps_.add(OpKind::mul, v, steps_.operand(n, smooth));
    if (p.attributes.text("quantization") == "dynamic") return quantize(n, v, 1);
    steps_.set(n, 0, p.has(offset) ? steps_.add(OpKind::add, v, steps_.operand(n, offset)) : v);
  }

  void layer_norm(std::size_t n) {
    const Problem& p = problem(n);
    using enum op::layer_norm::Operand;
    if (!has_weights_of_rows(n, weight) || !has_weights_of_rows(n, bias))
      return steps_.fail(n, "normalizes over several dimensions");
    const Source v = row(steps_.operand(n, 0));
    const Source centered = steps_.add(OpKind::sub, v, reduced(Kind::mean, v));
    Source y = steps_.add(OpKind::mul, centered,
                          reduced(Kind::inverse_root, centered, static_cast<float>(p.attributes.number("eps"))));
    if (p.has(weight)) y = steps_.add(OpKind::mul, y, steps_.operand(n, weight));
    if (p.has(bias)) {
      y = steps_.add(OpKind::add, y, steps_.operand(n, bias));
      steps_.program().steps.back().fused_multiply = true;
    }
    steps_.set(n, 0, y);
  }

  void softmax(std::size_t n) {
    const Source v = row(steps_.operand(n, 0));
    const Source distance = steps_.add(OpKind::sub, v, reduced(Kind::max, v)), e = steps_.add(OpKind::exp, distance);
    const Source total = reduced(Kind::sum, e);
    const bool logarithm = problem(n).attributes.flag("log");
    steps_.set(n, 0,
               logarithm ? steps_.add(OpKind::sub, distance, steps_.add(OpKind::log, total))
                         : steps_.add(OpKind::mul, e, steps_.add(OpKind::reciprocal, total)));
  }

  void reduce(std::size_t n) {
    const Problem& p = problem(n);
    const std::vector<int> axes = axes_attribute(p, "axes", p.input(0).rank());
    if (axes != std::vector<int>{p.input(0).rank() - 1})
      return steps_.fail(n, "reduces other dimensions than the last");
    if (!p.attributes.flag("keepdims")) return steps_.fail(n, "drops the dimension that it reduces");
    const Source v = row(steps_.operand(n, 0));
    steps_.set(n, 0,
               reduced(p.op->kind == OpKind::reduce_sum    ? Kind::sum
                       : p.op->kind == OpKind::reduce_mean ? Kind::mean
                                                           : Kind::max,
                       v));
  }

  void dynamic_quant(std::size_t n) {
    using enum op::dynamic_quant::Operand;
    const Problem& p = problem(n);
    if (p.attributes.text("granularity") == "tensor")
      return steps_.fail(n, "one scale for everything takes two passes over all rows");
    if (p.has(group_index)) return steps_.fail(n, "its smoothing factors go by an index");
    if (p.has(bound)) return steps_.fail(n, "its scales have a bound");
    Source v = row(steps_.operand(n, 0));
    if (p.has(smooth)) v = steps_.add(OpKind::mul, v, steps_.operand(n, smooth));
    quantize(n, v, 1);
  }

  /// With scales of its own, which are result `scale`, with zero points after it.
  void quantize(std::size_t n, Source v, std::size_t scale) {
    if (made_.quantization) return steps_.fail(n, "a second dynamic quantization");
    made_.quantization = {n, v, {}};
    for (std::size_t o = 0; o < problem(n).outputs.size(); o = o == 0 ? scale : o + 1) {
      const auto found =
          std::ranges::find(region_.results, RegionPlace{static_cast<std::int32_t>(n), static_cast<std::int32_t>(o)});
      if (found == region_.results.end())
        return steps_.fail(n, fmt::format("its result {} does not leave the region", o));
      made_.quantization->results.push_back(static_cast<std::size_t>(found - region_.results.begin()));
    }
  }

  /// With a given scale.
  void quantize_by(std::size_t n, Source v, std::size_t scale, std::size_t offset) {
    const Problem& p = problem(n);
    v = steps_.add(p.attributes.text("mode") == "div" ? OpKind::div : OpKind::mul, v, steps_.operand(n, scale));
    steps_.set(n, 0, p.has(offset) ? steps_.add(OpKind::add, v, steps_.operand(n, offset)) : v);
  }

  void add_results() {
    Dims by_row = made_.dims;
    by_row.back() = Dim(1);
    for (std::size_t i = 0; i < region_.results.size(); ++i) {
      const auto node = static_cast<std::size_t>(region_.results[i].node);
      if (made_.quantization && std::ranges::find(made_.quantization->results, i) != made_.quantization->results.end())
        continue;
      const TensorType& type = region_.result_type(i);
      if (type.dims != made_.dims && type.dims != by_row)
        return steps_.fail(node, "its result has other dimensions than the rows");
      made_.results_by_row.push_back(type.dims != made_.dims);
      steps_.program().results.push_back(
          {i, *steps_.value(node, static_cast<std::size_t>(region_.results[i].index)), type.dtype});
    }
  }

  const Region& region_;
  RowProgram made_;
  bool has_row_ = false;
  StepBuilder steps_;
};

}  // namespace

RowProgramOrReason row_program(const Region& region) { return RowBuilder(region).build(); }

}  // namespace cermet
