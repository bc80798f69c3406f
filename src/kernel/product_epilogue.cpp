// From a region around a product to the steps that follow its sums.
#include "base/checked.hpp"
#include "kernel/step_builder.hpp"
#include "op/product_operands.hpp"
#include "op/scales.hpp"
#include "op/schema/operator.hpp"

namespace cermet {
namespace {

using Extent = TileProgram::Extent;
using Source = TileProgram::Source;

/// A program under construction for a region.
class Builder {
 public:
  Builder(const Region& region, ProductLoops loops)
      : region_(region),
        loops_(loops),
        anchor_(static_cast<std::size_t>(region.anchor)),
        p_(region.problem()),
        at_(product_operands(p_.op->kind)),
        gate_(loops.gated ? gate_after(region) : std::nullopt),
        steps_(
            region, [this](const Dims& dims) { return extent_over_results(dims); },
            fmt::format(" after {}", p_.op->name)) {}

  TileProgramOrReason build() {
    if (gate_) steps_.set(*gate_, 0, gated_halves());
    else steps_.set(anchor_, 0, product());
    for (std::size_t n = gate_.value_or(anchor_) + 1; n < region_.nodes.size(); ++n)
      if (steps_.reads_values(n)) follow(n);
    if (row_scale_) name_row_scale();
    for (std::size_t i = 0; i < region_.results.size(); ++i) {
      const RegionPlace& place = region_.results[i];
      const std::optional<Source> value =
          steps_.value(static_cast<std::size_t>(place.node), static_cast<std::size_t>(place.index));
      if (value) steps_.program().results.push_back({i, *value, region_.result_type(i).dtype});
    }
    return steps_.finish();
  }

 private:
  std::optional<Extent> extent_over_results(const Dims& operand) const {
    const Dims& results = region_.nodes[gate_.value_or(anchor_)].problem.outputs[0].dims;
    return loops_.repeats ? broadcast_extent_of(operand, results) : extent_of(operand, results);
  }
  bool has(std::size_t operand) const { return operand != ProductOperands::none && p_.has(operand); }

  Source add(OpKind function, Source a, Source b = {}, bool integer = false) {
    return steps_.add(function, a, b, integer);
  }
  Source anchor_extra(std::size_t input, Extent extent) {
    return steps_.extra(anchor_, input, extent, extent == Extent::column ? shift_ : 0);
  }
  Source input(DType dtype) { return steps_.input(dtype); }

  Source gated_halves() {
    const RegionInput& edge = region_.nodes[*gate_].inputs[0];
    if (has(at_.zero_point) || has(at_.residual)) steps_.fail(*gate_, "the product has a zero point or a residual");
    const Source gate = steps_.rounded(product(), p_.outputs[0].dtype, edge.rounding);
    shift_ = p_.outputs[0].dims.back().constant() / 2;
    const Source up = steps_.rounded(product(), p_.outputs[0].dtype, edge.rounding);
    return add(OpKind::mul, add(activation_of_gate(region_.nodes[*gate_].problem), gate), up);
  }

  static OpKind activation_of_gate(const Problem& gate) {
    if (gate.op->kind == OpKind::silu_and_mul) return OpKind::silu;
    const std::string_view form = gate.attributes.text("approximate");
    return form == "none" ? OpKind::gelu : form == "tanh" ? OpKind::gelu_tanh : OpKind::gelu_quick;
  }

  /// The row's scale: an operand, or what is computed before the product.
  Source row_scale(Extent extent) {
    if (!region_.nodes[anchor_].inputs[at_.x_scale].is_inside()) return anchor_extra(at_.x_scale, extent);
    if (!loops_.row_scale) steps_.fail(anchor_, "the row is quantized inside");
    row_scale_ = true;
    return {Source::From::input, unnamed, 0};
  }
  /// The last input, whose place is known when all others are there.
  void name_row_scale() {
    const Source last = input(DType::f32);
    for (TileProgram::Step& step : steps_.program().steps)
      for (Source* source : {&step.a, &step.b})
        if (source->from == Source::From::input && source->index == unnamed) *source = last;
  }

  /// What the product is of rows without a weight: none of its scales is read.
  Source unweighted() {
    if (!unweighted_) unweighted_ = input(DType::f32);
    return *unweighted_;
  }

  /// The anchor's own result, before it is rounded.
  Source product() {
    if (loops_.unweighted) return unweighted();
    const bool scaled = p_.op->kind == OpKind::scaled_mm || p_.op->kind == OpKind::grouped_linear;
    ScaleGrid left, right;
    if (scaled) {
      const Dims &x = p_.input(0).dims, &w = p_.input(1).dims;
      if (has(at_.x_scale)) left = *row_scale_grid(p_.input(at_.x_scale).dims, {x.begin(), x.end() - 1}, x.back());
      if (has(at_.w_scale))
        right = w.size() == 3 ? *stacked_scale_grid(p_.input(at_.w_scale).dims, w)
                              : *column_scale_grid(p_.input(at_.w_scale).dims, w[0], w[1]);
    }
    const bool blocked = std::max(left.blocks, right.blocks) > 1;
    if (gate_ && !blocked && right.group > 1) steps_.fail(*gate_, "scales cover blocks of the weight");
    const bool integers = p_.input(0).dtype == DType::i8 && !blocked;
    Source v = input(integers ? DType::i32 : DType::f32);
    if (p_.op->kind == OpKind::dual_linear) return gated(v);
    const bool integer_bias = has(at_.bias) && p_.input(at_.bias).dtype == DType::i32;
    if (has(at_.zero_point)) {
      const Extent extent = p_.input(at_.zero_point).dims.empty() || p_.input(at_.zero_point).dims == Dims{1}
                                ? Extent::scalar
                                : Extent::row;
      const Source columns = input(DType::i32);
      v = add(OpKind::sub, v, add(OpKind::mul, anchor_extra(at_.zero_point, extent), columns, true), true);
    }
    if (integer_bias) v = add(OpKind::add, v, anchor_extra(at_.bias, Extent::column), true);
    if (p_.outputs[0].dtype == DType::i32) return v;
    if (integers) v = add(OpKind::cast, v);
    if (has(at_.w_scale) && !blocked)
      v = add(OpKind::mul,
              anchor_extra(at_.w_scale,
                           right.group == 0 && p_.op->kind != OpKind::grouped_linear ? Extent::scalar : Extent::column),
              v);
    if (has(at_.x_scale) && !blocked)
      v = add(OpKind::mul, row_scale(left.group == 0 ? Extent::scalar : Extent::row), v);
    if (has(at_.bias) && !integer_bias) v = add(OpKind::add, v, anchor_extra(at_.bias, Extent::column));
    if (has(at_.residual)) v = add(OpKind::add, v, anchor_extra(at_.residual, Extent::element));
    if (has(at_.out_scale)) v = add(OpKind::div, v, anchor_extra(at_.out_scale, Extent::scalar));
    return p_.op->kind == OpKind::conv ? activated(v) : v;
  }

  Source activated(Source v) {
    const std::string_view activation = p_.attributes.text("activation");
    return activation == "identity" ? v : add(find_operator(activation)->kind, v);
  }

  Source gated(Source gate) {
    Source up = input(DType::f32);
    if (has(at_.bias)) gate = add(OpKind::add, gate, anchor_extra(at_.bias, Extent::column));
    if (has(at_.bias_up)) up = add(OpKind::add, up, anchor_extra(at_.bias_up, Extent::column));
    return add(OpKind::mul, activated(gate), up);
  }

  void follow(std::size_t n) {
    const Problem& p = region_.nodes[n].problem;
    if (loops_.combines && p.op->kind == OpKind::moe_unpermute && n + 1 == region_.nodes.size())
      return steps_.set(n, 0, steps_.operand(n, 0));
    const bool quantizes = p.op->kind == OpKind::quantize || p.op->kind == OpKind::dequantize;
    if (!quantizes && !is_elementwise(p.op->kind)) return steps_.fail(n, "only elementwise operators can follow");
    if (!quantizes && !dtypes::real.contains(p.outputs[0].dtype)) return steps_.fail(n, "the result is no real number");
    steps_.follow(n);
  }

  static constexpr std::int32_t unnamed = -1;

  const Region& region_;
  ProductLoops loops_;
  std::size_t anchor_;
  const Problem& p_;
  ProductOperands at_;
  std::optional<std::size_t> gate_;  ///< the node that gate_after() names, where the loops give both halves
  StepBuilder steps_;
  std::int64_t shift_ = 0;  ///< of the columns whose operands are read
  bool row_scale_ = false;  ///< whether the row's scale is an input
  std::optional<Source> unweighted_;
};

}  // namespace

std::optional<std::size_t> gate_after(const Region& region) {
  const auto gate = static_cast<std::size_t>(region.anchor) + 1;
  const OpKind product = region.problem().op->kind;
  if (product != OpKind::linear && product != OpKind::scaled_mm && product != OpKind::grouped_linear)
    return std::nullopt;
  if (gate >= region.nodes.size()) return std::nullopt;
  const Problem& p = region.nodes[gate].problem;
  if ((p.op->kind != OpKind::silu_and_mul && p.op->kind != OpKind::gelu_and_mul) ||
      p.attributes.text("gate") != "first" || p.attributes.flag("interleaved"))
    return std::nullopt;
  if (!region.problem().outputs[0].dims.back().is_constant()) return std::nullopt;
  const auto reads = [&](const RegionInput& input) { return input.is_inside() && input.index == region.anchor; };
  if (!reads(region.nodes[gate].inputs[0])) return std::nullopt;
  // What reads the halves, too, needs them side by side.
  std::int64_t readers = std::ranges::count(region.results, RegionPlace{region.anchor, 0});
  for (const RegionNode& node : region.nodes) readers += std::ranges::count_if(node.inputs, reads);
  return readers == 1 ? std::optional(gate) : std::nullopt;
}

TileProgramOrReason product_epilogue(const Region& region) { return product_epilogue(region, {}); }
TileProgramOrReason product_epilogue(const Region& region, ProductLoops loops) {
  return Builder(region, loops).build();
}

}  // namespace cermet
