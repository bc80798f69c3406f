// What gated activations share: a row of 2F elements holds F gates and F linear halves; y = activation(gate) * up.
#pragma once

#include "op/schema/infer.hpp"
#include "op/schema/operator.hpp"

namespace cermet {

/// The attributes "gate" and "interleaved": where the gate is in a row.
AttributeSpec gate_attribute();
AttributeSpec interleaved_attribute();

/// Where the two halves of a row of 2F elements are: element i of one half is at first + i * step.
struct GatedLayout {
  std::int64_t gate_first, up_first, step;

  GatedLayout(const Attributes& attributes, std::int64_t features);
  std::int64_t gate(std::int64_t i) const { return gate_first + i * step; }
  std::int64_t up(std::int64_t i) const { return up_first + i * step; }
};

/// Definition of a gated activation of real types; `apply(gate, up, attributes)` is its arithmetic, `operations` the
/// count per result.
struct GatedActivation {
  std::string_view summary, semantics;
  std::vector<AttributeSpec> attributes;
  double (*apply)(double gate, double up, const Attributes& attributes);
  double operations;
  /// Factor of the error bound for a gate: how much the activation magnifies the rounding of its argument; 1 where
  /// null.
  double (*sensitivity)(double gate, const Attributes& attributes);
  std::vector<Case> extra_cases;
};
OpSpec define_gated(GatedActivation activation);

}  // namespace cermet
