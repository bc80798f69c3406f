#include "kernel/cpu/gemm/row_factors.hpp"

#include <algorithm>

namespace cermet::cpu {
namespace {

/// Whether a value has one element for each channel of samples with dimensions `x`, channels last.
bool goes_by_channel(const Dims& dims, const Dims& x) {
  return dims.size() == x.size() && (dims[0] == x[0] || dims[0] == Dim(1)) && dims.back() == x.back() &&
         std::all_of(dims.begin() + 1, dims.end() - 1, [](const Dim& dim) { return dim == Dim(1); });
}

}  // namespace

std::optional<RowFactors> RowFactors::of(const Region& region) {
  if (region.anchor != 1 || region.problem().op->kind != OpKind::conv || region.nodes[0].problem.op->kind != OpKind::mul) return {};
  const RegionNode& anchor = region.nodes[1];
  const Problem& product = region.nodes[0].problem;
  const Dims& x = region.problem().input(0).dims;
  if (!anchor.inputs[0].is_inside() || std::ranges::count_if(anchor.inputs, &RegionInput::is_inside) != 1 || x.size() < 3) return {};
  if (std::ranges::any_of(region.results, [](const RegionPlace& result) { return result.node == 0; })) return {};
  for (const std::size_t i : {std::size_t{0}, std::size_t{1}}) {
    const auto whole = region.operand_of(0, i), factors = region.operand_of(0, 1 - i);
    if (!whole || !factors || product.input(i).dtype != DType::f32 || product.input(1 - i).dtype != DType::f32) continue;
    if (product.input(i).dims == x && goes_by_channel(product.input(1 - i).dims, x)) return RowFactors{*whole, *factors};
  }
  return {};
}

FactorRows::FactorRows(const RowFactors& of, const LaunchArgs& args) {
  const TensorView &x = args.inputs[of.x], &factors = args.inputs[of.factors];
  data = factors.as<const float>();
  for (int axis = 1; axis + 1 < x.shape.rank(); ++axis) rows *= x.shape[axis];
  if (factors.shape[0] != 1) step = factors.strides[0];
}

}  // namespace cermet::cpu
