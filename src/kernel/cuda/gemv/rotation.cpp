#include "kernel/cuda/gemv/rotation.hpp"

#include <numeric>

#include "kernel/cuda/attention/kv_cache.hpp"
#include "kernel/cuda/gemm/product.hpp"
#include "kernel/cuda/gemv/prologue.hpp"
#include "kernel/cuda/task.hpp"
#include "op/operands.hpp"

namespace cermet::cuda {
namespace {

using enum op::rope_and_cache::Operand;

constexpr std::int64_t longest_row = 16384;

const Problem& rotation_of(const Region& region) { return region.nodes.back().problem; }

/// Operands of what follows the product are strictly rounded columns of it, in order: `what` is part `number` of a
/// split of its rows.
Decline declines_heads(const Region& region, std::size_t what) {
  const RegionInput* from = &region.nodes.back().inputs[what];
  const auto maker = [&]() -> const RegionNode& { return region.nodes[static_cast<std::size_t>(from->index)]; };
  const auto is_of = [&](OpKind op) { return from->is_inside() && maker().problem.op->kind == op; };
  const auto step = [&] {
    from = &maker().inputs[0];
    return from->rounding != Rounding::fast;
  };
  if (from->rounding == Rounding::fast) return "heads are not rounded before they are rotated";
  while (is_of(OpKind::reshape))
    if (!step()) return "columns are not rounded before they are rotated";
  if (!is_of(OpKind::split) || from->output != static_cast<std::int32_t>(what))
    return "queries, keys and values are not the parts of a split in this order";
  const Problem& split = maker().problem;
  const std::int64_t axis = split.attributes.integer("axis");
  if (split.input(0).rank() != 2 || split.outputs.size() != 3 || (axis != -1 && axis != 1))
    return "the split is not of a row's columns into three";
  if (!step()) return "columns are not rounded before they are rotated";
  if (*from != RegionInput::inside(static_cast<std::size_t>(region.anchor), 0, from->rounding))
    return "the split is not of the product's result";
  return std::nullopt;
}

Decline declines_rotation(const Region& region) {
  const Problem& p = rotation_of(region);
  const std::size_t last = region.nodes.size() - 1;
  if (p.has(q_weight) || p.has(k_weight))
    return "heads are normalized before they are rotated, and a block has parts of them";
  if (p.has(k_scale)) return "the cache is quantized with scales";
  if (in_columns(p.input(v_cache))) return "values go to columns";
  if (!dtypes::real.contains(p.outputs[0].dtype)) return "queries are rounded to 8 bits";
  if (p.size(q, 2) % 2 != 0 || !p.input(v).dims[2].is_constant() || p.size(v, 2) % 2 != 0)
    return "a head has no whole number of pairs";
  for (const std::size_t operand : {cos, sin, positions, k_cache, v_cache, slots})
    if (!region.operand_of(last, operand))
      return fmt::format("operand {} of rope_and_cache is computed inside", operand);
  for (const std::size_t result : {0, 1, 2})
    if (result_of(region, last, result) < 0) return fmt::format("result {} of rope_and_cache does not leave", result);
  for (const RegionPlace& place : region.results)
    if (place.node >= region.anchor && static_cast<std::size_t>(place.node) != last)
      return "what the product gives is read elsewhere";
  return std::nullopt;
}

}  // namespace

bool RotatedHeads::end(const Region& region) {
  return static_cast<std::size_t>(region.anchor) + 1 < region.nodes.size() &&
         rotation_of(region).op->kind == OpKind::rope_and_cache;
}

Decline RotatedHeads::declines(const Region& region) {
  const OpKind op = region.problem().op->kind;
  if (op != OpKind::linear && op != OpKind::scaled_mm) return "the product is not of rows and one weight";
  if (constexpr std::size_t zero_point = 5; op == OpKind::scaled_mm && region.problem().has(zero_point))
    return "the product has a zero point";
  if (const std::int64_t k = region.problem().size(1, -1); k > longest_row)
    return fmt::format("rows of {} elements leave no registers for rotation", k);
  if (Decline reason = declines_rotation(region)) return reason;
  for (const std::size_t heads : {q, k, v})
    if (Decline reason = declines_heads(region, heads)) return reason;
  for (std::size_t n = static_cast<std::size_t>(region.anchor) + 1; n + 1 < region.nodes.size(); ++n)
    if (const OpKind between = region.nodes[n].problem.op->kind; between != OpKind::split && between != OpKind::reshape)
      return fmt::format("{} is between the product and rope_and_cache", region.nodes[n].problem.op->name);
  const ProductLoops loops{.row_scale = true};
  if (Decline reason = Product::declines_after(product_of(region), loops)) return reason;
  if (Product(product_of(region), loops).blocked) return "scales cover blocks of the reduction";
  return std::nullopt;
}

Region RotatedHeads::product_of(const Region& region) {
  Region alone = region;
  alone.nodes.resize(static_cast<std::size_t>(region.anchor) + 1);
  std::erase_if(alone.results, [&](const RegionPlace& place) { return place.node > region.anchor; });
  alone.results.push_back({region.anchor, 0});
  return alone;
}

RotatedHeads::RotatedHeads(const Region& region)
    : axes_(rotation_of(region).attributes.text("layout")),
      pairs_(region.problem().outputs[0].dims.back().constant() / 2) {
  const std::size_t last = region.nodes.size() - 1;
  const Problem& p = rotation_of(region);
  const std::int64_t in_head = p.size(q, 2) / 2, rotated = p.size(cos, 1);
  most_neighbours_ = std::gcd(in_head, p.size(v, 2) / 2);
  if (p.attributes.text("style") == "neox" && rotated != in_head)
    most_neighbours_ = std::gcd(most_neighbours_, rotated);
  const auto result = [&](std::size_t output) { return static_cast<std::size_t>(result_of(region, last, output)); };
  at_ = {*region.operand_of(last, cos),
         *region.operand_of(last, sin),
         *region.operand_of(last, positions),
         *region.operand_of(last, slots),
         result(0),
         result(1),
         result(2)};
}

rotation::Config RotatedHeads::config(const Region& region) const {
  const Problem& p = rotation_of(region);
  const auto size = [&](std::size_t operand, int axis) { return static_cast<int>(p.size(operand, axis)); };
  return {.given = true,
          .head_size = size(q, 2),
          .half = size(cos, 1),
          .value_size = size(v, 2),
          .q_heads = size(q, 1),
          .kv_heads = size(k, 1),
          .page = size(k_cache, axes_.block),
          .neox = p.attributes.text("style") == "neox",
          .q = p.outputs[0].dtype,
          .cache = p.input(k_cache).dtype,
          .table = p.input(cos).dtype,
          .position = p.input(positions).dtype,
          .slot = p.input(slots).dtype};
}

TensorView RotatedHeads::rows(const LaunchArgs& args) const {
  const TensorView& out = args.outputs[at_.q];
  return {out.data, out.dtype, {out.shape[0], pairs_}, {out.strides[0], 1}};
}

void RotatedHeads::set(const LaunchArgs& args, rotation::Operands& p, std::int64_t row) const {
  const auto from = [&](std::size_t operand) {
    const TensorView& numbers = args.inputs[operand];
    return numbers.as<const std::byte>() + row * byte_size(numbers.dtype);
  };
  const TensorView& table = args.inputs[at_.cos];
  p.cos = table.data;
  p.sin = args.inputs[at_.sin].data;
  p.positions = from(at_.positions);
  p.slots = from(at_.slots);
  p.k_cache = cache_of(args.outputs[at_.k_cache], nullptr, axes_);
  p.v_cache = cache_of(args.outputs[at_.v_cache], nullptr, axes_);
  p.q_head_stride = args.outputs[at_.q].strides[1];
  p.cos_stride = table.strides[0];
  p.sin_stride = args.inputs[at_.sin].strides[0];
  p.table_rows = table.shape[0];
  p.pages = args.outputs[at_.k_cache].shape[0];
}

}  // namespace cermet::cuda
