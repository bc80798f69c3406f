// Regions of two operators, as tests build them.
#pragma once

#include <utility>

#include "op/region.hpp"

namespace cermet {

/// `first`, whose first result is operand 0 of `then`, the anchor; its other results leave the region.
inline Region chained(Problem first, Problem then, Rounding rounding = Rounding::strict) {
  Region region;
  region.anchor = 1;
  region.results.push_back({1, 0});
  for (std::size_t o = 1; o < first.outputs.size(); ++o) region.results.push_back({0, static_cast<std::int32_t>(o)});
  const auto add = [&](Problem problem) {
    const std::size_t n = region.nodes.size();
    std::vector<RegionInput> inputs;
    for (std::size_t i = 0; i < problem.inputs.size(); ++i) {
      if (n == 1 && i == 0) {
        inputs.push_back(RegionInput::inside(0, 0, rounding));
        continue;
      }
      inputs.push_back(problem.has(i) ? RegionInput::outside(region.operands.size()) : RegionInput{});
      if (problem.has(i)) region.operands.push_back({static_cast<std::int32_t>(n), static_cast<std::int32_t>(i)});
    }
    region.nodes.push_back({std::move(problem), std::move(inputs)});
  };
  add(std::move(first));
  add(std::move(then));
  return region;
}

/// rms_norm, or add_rms_norm, before a problem of the same target and symbols. Operand 0 must be float32.
inline Region with_norm(const Problem& then, bool adds) {
  const TensorType& row = then.input(0);
  const TensorType weight{DType::f32, {row.dims.back()}};
  std::vector<std::optional<TensorType>> inputs{row, weight};
  if (adds) inputs.insert(inputs.begin(), row);
  Problem norm = make_problem(definition(adds ? OpKind::add_rms_norm : OpKind::rms_norm), std::move(inputs), {{"out_dtype", "f32"}});
  norm.maximum = then.maximum;
  norm.target = then.target;
  return chained(std::move(norm), then);
}

}  // namespace cermet
