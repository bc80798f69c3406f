#include "kernel/cpu/gemm/norm_after.hpp"

#include <algorithm>
#include <array>

#include "kernel/cpu/before_anchor.hpp"

namespace cermet::cpu {
namespace {

constexpr std::size_t most_operands = 4;

std::int32_t last_of(const Region& region) { return static_cast<std::int32_t>(region.nodes.size()) - 1; }

}  // namespace

bool NormAfter::ends(const Region& region) {
  return last_of(region) > region.anchor && region.nodes.back().problem.op->kind == OpKind::layer_norm;
}

Decline NormAfter::declines(const Region& region) {
  const RegionNode& norm = region.nodes.back();
  const auto fails = [&](std::string_view why) -> Decline {
    return fmt::format("{} after {}: {}", norm.problem.op->name, region.problem().op->name, why);
  };
  if (region.problem().op->kind != OpKind::linear) return fails("only linear stores rows that are normalized");
  const RegionInput& x = norm.inputs[0];
  if (!x.is_inside() || x.index < region.anchor || std::ranges::count_if(norm.inputs, &RegionInput::is_inside) != 1)
    return fails("it reads what the product makes as more than x");
  const TensorType &from = norm.problem.input(0), &to = norm.problem.outputs[0];
  if (from.dtype != to.dtype || from.dims != to.dims) return fails("it does not replace what it reads");
  if (x.rounding != Rounding::strict && from.dtype != DType::f32)
    return fails("float32 is stored as the operand's type");
  if (std::ranges::count_if(region.results, [&](const RegionPlace& place) { return place.node >= region.anchor; }) !=
          1 ||
      std::ranges::find(region.results, RegionPlace{last_of(region), 0}) == region.results.end())
    return fails("what it reads leaves, too");
  if (ends(without(region))) return fails("another norm comes before it");
  if (norm.problem.inputs.size() > most_operands) return fails("too many operands");
  return kernel_without_workspace(norm.problem) ? std::nullopt : fails("no kernel computes it alone");
}

Region NormAfter::without(const Region& region) {
  const std::int32_t last = last_of(region);
  const RegionInput& x = region.nodes.back().inputs[0];
  Region product = region;
  for (RegionPlace& place : product.results)
    if (place.node == last) place = {x.index, x.output};
  while (!product.operands.empty() && product.operands.back().node == last) product.operands.pop_back();
  product.nodes.pop_back();
  return product;
}

NormAfter::NormAfter(const Region& region) {
  if (!ends(region)) return;
  const Region norm(region.nodes.back().problem);
  launch_ = kernel_without_workspace(norm)->bind(norm);
  for (std::size_t i = 1; i < region.nodes.back().inputs.size(); ++i)
    operands_.push_back(region.operand_of(region.nodes.size() - 1, i));
  result_ = static_cast<std::size_t>(std::ranges::find(region.results, RegionPlace{last_of(region), 0}) -
                                     region.results.begin());
}

void NormAfter::run(const LaunchArgs& args) const {
  if (!launch_) return;
  std::array<TensorView, most_operands> inputs;
  inputs[0] = args.outputs[result_];
  for (std::size_t i = 0; i < operands_.size(); ++i)
    if (operands_[i] && args.has(*operands_[i])) inputs[i + 1] = args.inputs[*operands_[i]];
  launch_({.inputs = {inputs.data(), operands_.size() + 1}, .outputs = {&args.outputs[result_], 1}, .pool = args.pool});
}

}  // namespace cermet::cpu
