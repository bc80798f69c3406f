#include "op/schema/mapping.hpp"

#include "op/schema/axes.hpp"
#include "op/schema/operator.hpp"

namespace cermet {
namespace {

/// Lined up with the result's last dimensions, some element of the operand is read at several places.
bool broadcasts(const Dims& operand, const Dims& result) {
  if (operand.size() > result.size()) return false;
  const std::size_t lead = result.size() - operand.size();
  for (std::size_t i = 0; i < result.size(); ++i) {
    const Dim from = i < lead ? Dim(1) : operand[i - lead];
    if (from == Dim(1) && result[i] != Dim(1)) return true;
  }
  return false;
}

/// Whether a transposition leaves all axes but those of length 1 in their order.
bool keeps_order(const Problem& p) {
  const Ints& permutation = p.attributes.integers("permutation");
  const int rank = p.input(0).rank();
  std::int64_t before = -1;
  for (int i = 0; i < rank; ++i) {
    const int axis = permutation.empty() ? rank - 1 - i : wrap_axis(permutation[static_cast<std::size_t>(i)], rank);
    if (p.input(0).dims[static_cast<std::size_t>(axis)] == Dim(1)) continue;
    if (axis < before) return false;
    before = axis;
  }
  return true;
}

/// The sum of add_rms_norm is elementwise, and its weight has no part in it.
std::optional<Mapping> mapping_of_sum(std::size_t operand) {
  return operand < 2 ? std::optional(Mapping::one_to_one) : std::nullopt;
}

}  // namespace

std::optional<Mapping> mapping_of(const Problem& p, std::size_t operand, std::size_t output) {
  CERMET_ASSERT(output < p.outputs.size());
  if (!p.has(operand)) return {};
  const bool adds_and_norms = p.op->kind == OpKind::add_rms_norm || p.op->kind == OpKind::add_rms_norm_quant;
  if (adds_and_norms && output == 1) return mapping_of_sum(operand);
  const OperandSpec& spec = definition(p).inputs[std::min(operand, definition(p).inputs.size() - 1)];
  const Dims &from = p.input(operand).dims, &to = p.outputs[output].dims;
  switch (p.op->kind) {
    case OpKind::expand:
      return broadcasts(from, to) ? Mapping::one_to_many : from == to ? Mapping::one_to_one : Mapping::reorganize;
    case OpKind::reshape: return from == to ? Mapping::one_to_one : Mapping::reorganize;
    case OpKind::transpose:
      return !keeps_order(p) ? Mapping::shuffle : from == to ? Mapping::one_to_one : Mapping::reorganize;
    default: break;
  }
  const bool reads_in_place = spec.mapping == Mapping::one_to_one && !spec.variadic;
  return reads_in_place && !p.is_constant(operand) && broadcasts(from, to) ? Mapping::one_to_many : spec.mapping;
}

}  // namespace cermet
