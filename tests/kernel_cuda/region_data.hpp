// Operands of a region of several operators, and what the operators make of them one after another.
#pragma once

#include <functional>
#include <random>
#include <span>
#include <vector>

#include "base/checked.hpp"
#include "op/grouped_work.hpp"
#include "op/schema/case_data.hpp"
#include "op/schema/operator.hpp"
#include "op/schema/reference.hpp"
#include "tests/support/pointwise_regions.hpp"
#include "tests/support/region_operands.hpp"

namespace cermet {

/// Which operand of a node a result is in the memory of; -1 for none.
inline int alias_of(const Problem& p, std::size_t output) {
  const std::vector<int>& aliases = definition(p).aliases;
  return output < aliases.size() ? aliases[output] : -1;
}

inline void copy(const TensorView& from, const TensorView& to) {
  for (std::int64_t e = 0; e < from.elements(); ++e) copy_element(from, e, to, e);
}

/// Operands of a region and what its nodes give, each result in its own type.
struct RegionData {
  Region region;
  std::vector<OwnedTensor> operands;
  std::vector<std::vector<OwnedTensor>> made;  ///< by node and result

  explicit RegionData(const NamedRegion& named) : region(named.region) {
    operands = filled_operands(region, std::mt19937_64(std::hash<std::string>()(named.name)),
                               [&](std::size_t i) { return fill_of(i); });
  }
  /// The results of the region as the references compute them.
  std::vector<TensorView> reference() {
    return run([](const Problem& p, std::span<const TensorView> inputs, std::span<const TensorView> outputs) {
      definition(p).reference({inputs, outputs, p.attributes});
    });
  }
  /// The same as other functions do: compute(problem, inputs, outputs).
  template <class Compute>
  std::vector<TensorView> run(Compute compute) {
    made.clear();
    for (const RegionNode& node : region.nodes) {
      std::vector<TensorView> inputs, outputs;
      for (const RegionInput& input : node.inputs) {
        if (input.is_inside())
          inputs.push_back(made[static_cast<std::size_t>(input.index)][static_cast<std::size_t>(input.output)].view);
        else if (input.from == RegionInput::From::outside)
          inputs.push_back(operands[static_cast<std::size_t>(input.index)].view);
        else inputs.push_back(absent());
      }
      made.emplace_back();
      for (const TensorType& type : node.problem.outputs) made.back().emplace_back(type.dtype, bind(type.dims, {}));
      for (const OwnedTensor& tensor : made.back()) outputs.push_back(tensor.view);
      for (std::size_t o = 0; o < outputs.size(); ++o)
        if (const int alias = alias_of(node.problem, o); alias >= 0)
          copy(inputs[static_cast<std::size_t>(alias)], outputs[o]);
      compute(node.problem, inputs, outputs);
    }
    std::vector<TensorView> results;
    for (const RegionPlace& place : region.results)
      results.push_back(made[static_cast<std::size_t>(place.node)][static_cast<std::size_t>(place.index)].view);
    return results;
  }
  static TensorView absent() {
    TensorView view;
    view.present = false;
    return view;
  }

 private:
  /// Scales of quantized values are positive and such that most values stay in range.
  Fill fill_of(std::size_t operand) const {
    const RegionPlace& place = region.operands[operand];
    const OpKind reader = region.nodes[static_cast<std::size_t>(place.node)].problem.op->kind;
    const Problem& p = region.nodes[static_cast<std::size_t>(place.node)].problem;
    const DType dtype = region.operand_type(operand).dtype;
    if (reader == OpKind::moe_permute && place.index == 1) return integers(0, p.attributes.integer("experts") - 1);
    if (reader == OpKind::moe_unpermute && place.index == 1) {  // the last row first
      std::vector<double> rows;
      for (std::int64_t row = p.size(0, 0); row-- > 0;) rows.push_back(static_cast<double>(row));
      return values(rows);
    }
    if (reader == OpKind::grouped_linear && place.index == 2) {  // some experts have no row, some several
      std::vector<double> offsets;
      const std::int64_t experts = p.size(1, 0), rows = p.size(0, 0),
                         unweighted = has_unweighted_group(p) ? div_up(rows, std::int64_t{3}) : 0;
      for (std::int64_t e = 0; e <= experts; ++e)
        offsets.push_back(static_cast<double>(std::min(rows - unweighted, e / 5 * 2)));
      offsets.back() = static_cast<double>(rows - unweighted);
      if (has_unweighted_group(p)) offsets.push_back(static_cast<double>(rows));
      return values(offsets);
    }
    if (reader == OpKind::rope_and_cache && dtypes::index.contains(dtype))
      return integers(17, 39);  // of 48 slots and 40 positions
    if (dtype == DType::i8) return integers(-127, 127);
    if ((reader == OpKind::scaled_mm || reader == OpKind::grouped_linear) && dtype == DType::f32 && place.index > 1)
      return uniform(0.001, 0.02);
    if ((reader == OpKind::quantize || reader == OpKind::dequantize) && place.index > 0) return uniform(0.02, 0.04);
    return dtype == DType::i32 ? integers(-50, 50) : normal();
  }
};

}  // namespace cermet
