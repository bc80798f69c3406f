// From a region around a product to the steps that follow its sums.
#include "base/checked.hpp"
#include "kernel/tile_program.hpp"
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
      default: CERMET_ASSERT(op == OpKind::matmul);
    }
  }
};

/// A program under construction for a region.
class Builder {
 public:
  explicit Builder(const Region& region) : region_(region), anchor_(static_cast<std::size_t>(region.anchor)), p_(region.problem()), at_(p_.op->kind) {}

  TileProgramOrReason build() {
    values_.resize(region_.nodes.size());
    values_[anchor_] = product();
    for (std::size_t n = anchor_ + 1; n < region_.nodes.size(); ++n)
      if (follows(n)) follow(n);
    for (std::size_t i = 0; i < region_.results.size(); ++i) {
      const RegionPlace& place = region_.results[i];
      const std::optional<Source> value = values_[static_cast<std::size_t>(place.node)];
      if (value) program_.results.push_back({i, *value, region_.result_type(i).dtype});
    }
    return {std::move(program_), std::move(reason_)};
  }

 private:
  bool has(std::size_t operand) const { return operand != none && p_.has(operand); }

  Source add(OpKind function, Source a, Source b = {}, bool integer = false) {
    program_.steps.push_back({.function = function, .a = a, .b = b, .integer = integer});
    return {Source::From::step, static_cast<std::int32_t>(program_.steps.size() - 1)};
  }
  Source extra(std::size_t node, std::size_t input, Extent extent) {
    const TileProgram::Extra wanted{*region_.operand_of(node, input), region_.nodes[node].problem.input(input).dtype, extent};
    const auto found = std::ranges::find(program_.extras, wanted);
    const auto index = static_cast<std::int32_t>(found - program_.extras.begin());
    if (found == program_.extras.end()) program_.extras.push_back(wanted);
    return {Source::From::extra, index};
  }
  Source anchor_extra(std::size_t input, Extent extent) { return extra(anchor_, input, extent); }
  Source input(DType dtype) {
    program_.inputs.push_back(dtype);
    return {Source::From::input, static_cast<std::int32_t>(program_.inputs.size() - 1)};
  }

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
    return v;
  }

  Source gated(Source gate) {
    Source up = input(DType::f32);
    if (has(at_.bias)) gate = add(OpKind::add, gate, anchor_extra(at_.bias, Extent::column));
    if (has(at_.bias_up)) up = add(OpKind::add, up, anchor_extra(at_.bias_up, Extent::column));
    const std::string_view activation = p_.attributes.text("activation");
    if (activation != "identity") gate = add(find_operator(activation)->kind, gate);
    return add(OpKind::mul, gate, up);
  }

  /// Whether a node reads, through others or not, what the anchor gives.
  bool follows(std::size_t n) const {
    return std::ranges::any_of(region_.nodes[n].inputs, [&](const RegionInput& i) { return i.is_inside() && values_[static_cast<std::size_t>(i.index)]; });
  }

  void follow(std::size_t n) {
    const RegionNode& node = region_.nodes[n];
    const OpDefinition& op = definition(node.problem);
    const auto fails = [&](std::string_view why) {
      if (!reason_) reason_ = fmt::format("{} after {}: {}", op.name, p_.op->name, why);
    };
    if (!is_elementwise(op)) return fails("only elementwise operators can follow");
    if (!dtypes::real.contains(node.problem.outputs[0].dtype)) return fails("the result is no real number");
    std::array<Source, 2> operands;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const RegionInput& from = node.inputs[i];
      if (from.is_inside()) {
        const auto source = static_cast<std::size_t>(from.index);
        if (!values_[source]) return fails("an operand comes from a node beside the product");
        operands[i] = rounded(*values_[source], source, from.rounding);
      } else {
        const std::optional<Extent> extent = extent_of(node.problem.input(i).dims, p_.outputs[0].dims);
        if (!extent) return fails(fmt::format("operand {} does not extend over the product's results", i));
        operands[i] = extra(n, i, *extent);
      }
    }
    if (node.problem.outputs[0].dims != p_.outputs[0].dims) return fails("the result has other dimensions");
    values_[n] = add(op.kind, operands[0], operands[1]);
    for (std::size_t i = 0; i < op.attributes.size(); ++i)
      program_.steps.back().parameters.at(i) = static_cast<float>(node.problem.attributes.number(op.attributes[i].name));
  }

  /// A node's value as another of the region reads it.
  Source rounded(Source value, std::size_t node, Rounding rounding) {
    const DType dtype = region_.nodes[node].problem.outputs[0].dtype;
    if (rounding != Rounding::strict || dtype == DType::f32 || program_.is_integer(value)) return value;
    if (!dtypes::real.contains(dtype)) {
      if (!reason_) reason_ = fmt::format("the result of {} is {}, which nothing can follow", region_.nodes[node].problem.op->name, cermet::name_of(dtype));
      return value;
    }
    const Source copy = add(OpKind::cast, value);
    program_.steps.back().round = dtype;
    return copy;
  }

  static bool is_elementwise(const OpDefinition& op) {
    switch (op.kind) {
#define UNARY(name, ...) case OpKind::name:
#define UNARY1(name, ...) case OpKind::name:
#define UNARY2(name, ...) case OpKind::name:
#define BINARY(name, ...) case OpKind::name:
#include "op/pointwise.inc"
      return true;
      default: return false;
    }
  }

  const Region& region_;
  std::size_t anchor_;
  const Problem& p_;
  ProductOperands at_;
  TileProgram program_;
  std::optional<std::string> reason_;
  std::vector<std::optional<Source>> values_;  ///< of nodes: the anchor and what follows it
};

}  // namespace

TileProgramOrReason product_epilogue(const Region& region) { return Builder(region).build(); }

}  // namespace cermet
