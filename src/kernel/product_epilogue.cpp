// From a region around a product to the steps that follow its sums.
#include "base/checked.hpp"
#include "kernel/step_builder.hpp"
#include "op/operator.hpp"
#include "op/scales.hpp"

namespace cermet {
namespace {

using Extent = TileProgram::Extent;
using Source = TileProgram::Source;

constexpr std::size_t none = std::size_t(-1);

/// Where the operands of a product are that its epilogue reads.
struct ProductOperands {
  std::size_t row_scale = none, column_scale = none, bias = none, bias_up = none, zero_point = none, residual = none, out_scale = none;

  explicit ProductOperands(OpKind op) {
    switch (op) {
      case OpKind::linear: bias = 2; break;
      case OpKind::dual_linear: bias = 3, bias_up = 4; break;
      case OpKind::scaled_mm: row_scale = 2, column_scale = 3, bias = 4, zero_point = 5, residual = 6, out_scale = 7; break;
      case OpKind::grouped_linear: bias = 3, row_scale = 4, column_scale = 5; break;
      case OpKind::conv: bias = 2, residual = 3; break;
      case OpKind::conv_transpose: bias = 2; break;
      default: CERMET_ASSERT(op == OpKind::matmul);
    }
  }
};

/// A program under construction for a region.
class Builder {
 public:
  explicit Builder(const Region& region)
      : region_(region),
        anchor_(static_cast<std::size_t>(region.anchor)),
        p_(region.problem()),
        at_(p_.op->kind),
        steps_(
            region, [this](const Dims& dims) { return extent_of(dims, p_.outputs[0].dims); }, fmt::format(" after {}", p_.op->name)) {}

  TileProgramOrReason build() {
    steps_.set(anchor_, 0, product());
    for (std::size_t n = anchor_ + 1; n < region_.nodes.size(); ++n)
      if (steps_.reads_values(n)) follow(n);
    for (std::size_t i = 0; i < region_.results.size(); ++i) {
      const RegionPlace& place = region_.results[i];
      const std::optional<Source> value = steps_.value(static_cast<std::size_t>(place.node), static_cast<std::size_t>(place.index));
      if (value) steps_.program().results.push_back({i, *value, region_.result_type(i).dtype});
    }
    return steps_.finish();
  }

 private:
  bool has(std::size_t operand) const { return operand != none && p_.has(operand); }

  Source add(OpKind function, Source a, Source b = {}, bool integer = false) { return steps_.add(function, a, b, integer); }
  Source anchor_extra(std::size_t input, Extent extent) { return steps_.extra(anchor_, input, extent); }
  Source input(DType dtype) { return steps_.input(dtype); }

  /// The anchor's own result, before it is rounded.
  Source product() {
    const bool scaled = p_.op->kind == OpKind::scaled_mm || p_.op->kind == OpKind::grouped_linear;
    ScaleGrid left, right;
    if (scaled) {
      const Dims &x = p_.input(0).dims, &w = p_.input(1).dims;
      if (has(at_.row_scale)) left = *row_scale_grid(p_.input(at_.row_scale).dims, {x.begin(), x.end() - 1}, x.back());
      if (has(at_.column_scale))
        right = w.size() == 3 ? *stacked_scale_grid(p_.input(at_.column_scale).dims, w) : *column_scale_grid(p_.input(at_.column_scale).dims, w[0], w[1]);
    }
    const bool blocked = std::max(left.blocks, right.blocks) > 1;
    const bool integers = p_.input(0).dtype == DType::i8 && !blocked;
    Source v = input(integers ? DType::i32 : DType::f32);
    if (p_.op->kind == OpKind::dual_linear) return gated(v);
    const bool integer_bias = has(at_.bias) && p_.input(at_.bias).dtype == DType::i32;
    if (has(at_.zero_point)) {
      const Extent extent = p_.input(at_.zero_point).dims == Dims{} || p_.input(at_.zero_point).dims == Dims{1} ? Extent::scalar : Extent::row;
      const Source columns = input(DType::i32);
      v = add(OpKind::sub, v, add(OpKind::mul, anchor_extra(at_.zero_point, extent), columns, true), true);
    }
    if (integer_bias) v = add(OpKind::add, v, anchor_extra(at_.bias, Extent::column), true);
    if (p_.outputs[0].dtype == DType::i32) return v;
    if (integers) v = add(OpKind::cast, v);
    if (has(at_.column_scale) && !blocked)
      v = add(OpKind::mul, anchor_extra(at_.column_scale, right.group == 0 && p_.op->kind != OpKind::grouped_linear ? Extent::scalar : Extent::column), v);
    if (has(at_.row_scale) && !blocked) v = add(OpKind::mul, anchor_extra(at_.row_scale, left.group == 0 ? Extent::scalar : Extent::row), v);
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
    // CUDA kernels store what follows a product as real numbers only.
    const bool quantizes = !p_.target && (p.op->kind == OpKind::quantize || p.op->kind == OpKind::dequantize);
    if (!quantizes && !is_elementwise(p.op->kind)) return steps_.fail(n, "only elementwise operators can follow");
    if (!quantizes && !dtypes::real.contains(p.outputs[0].dtype)) return steps_.fail(n, "the result is no real number");
    steps_.follow(n);
  }

  const Region& region_;
  std::size_t anchor_;
  const Problem& p_;
  ProductOperands at_;
  StepBuilder steps_;
};

}  // namespace

TileProgramOrReason product_epilogue(const Region& region) { return Builder(region).build(); }

}  // namespace cermet
