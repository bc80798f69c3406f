// Regions of several operators, as tests build them.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "op/schema/region.hpp"

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
  Problem norm = make_problem(definition(adds ? OpKind::add_rms_norm : OpKind::rms_norm), std::move(inputs),
                              {{"out_dtype", "f32"}});
  norm.maximum = then.maximum;
  norm.target = then.target;
  return chained(std::move(norm), then);
}

/// An elementwise operator that reads what the node before it gives.
struct Follower {
  OpKind op;
  std::optional<TensorType> other =
      std::nullopt;  ///< of a binary operator: the second operand, or the first where `last` is set
  bool last = false;
  Attributes attributes = {};
};

/// Appends a chain of nodes to a region; the last one's result leaves in place of the last node's.
inline Region followed(Region region, const std::vector<Follower>& chain, Rounding rounding = Rounding::strict) {
  for (const Follower& f : chain) {
    const std::size_t before = region.nodes.size() - 1;
    const Problem& maker = region.nodes[before].problem;
    std::vector<std::optional<TensorType>> types{maker.outputs[0]};
    if (f.other) types.insert(f.last ? types.begin() : types.end(), f.other);
    Problem problem = make_problem(definition(f.op), std::move(types), f.attributes);
    problem.target = maker.target;
    problem.maximum = maker.maximum;
    std::vector<RegionInput> inputs(problem.inputs.size());
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if ((i == 0) == !(f.other && f.last)) {
        inputs[i] = RegionInput::inside(before, 0, rounding);
        continue;
      }
      inputs[i] = RegionInput::outside(region.operands.size());
      region.operands.push_back({static_cast<std::int32_t>(before + 1), static_cast<std::int32_t>(i)});
    }
    std::ranges::replace(region.results, RegionPlace{static_cast<std::int32_t>(before), 0},
                         RegionPlace{static_cast<std::int32_t>(before + 1), 0});
    region.nodes.push_back({std::move(problem), std::move(inputs)});
  }
  return region;
}

/// y = product * scalar + residual.
inline std::vector<Follower> scaled_residual(const TensorType& y) {
  return {{OpKind::mul, TensorType{y.dtype, {}}}, {OpKind::add, y, true}};
}

}  // namespace cermet
