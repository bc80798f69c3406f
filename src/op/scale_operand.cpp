#include "op/scale_operand.hpp"

#include <algorithm>

#include "op/schema/reference.hpp"

namespace cermet {

void expect_scalar_or_channel(const Problem& p, std::size_t operand) {
  const TensorType& type = p.input(operand);
  if (type.rank() == 0 || (type.rank() == 1 && (type.dims[0] == Dim(1) || type.dims[0] == dim_of(p, 0, -1)))) return;
  bad_operand(p, operand,
              fmt::format("one number or [{}] (the last dimension of the first operand)", dim_of(p, 0, -1).to_string()),
              type.to_string());
}

void expect_broadcasts(const Problem& p, std::size_t operand) {
  const Dims &own = p.input(operand).dims, &dims = p.input(0).dims;
  const auto fits = [](const Dim& a, const Dim& b) { return a == Dim(1) || a == b; };
  if (own.size() <= dims.size() &&
      std::equal(own.begin(), own.end(), dims.end() - static_cast<std::ptrdiff_t>(own.size()), fits))
    return;
  bad_operand(p, operand, fmt::format("dimensions that broadcast to {}", p.input(0).to_string()),
              p.input(operand).to_string());
}

std::int64_t broadcast_index(const TensorView& view, const Shape& shape, std::int64_t i) {
  std::int64_t index = 0, step = 1;
  for (int axis = shape.rank() - 1, own = view.shape.rank() - 1; own >= 0; --axis, --own) {
    if (view.shape[own] != 1) index += i % shape[axis] * step;
    step *= view.shape[own];
    i /= shape[axis];
  }
  return index;
}

std::optional<float> scalar_or_channel(const ReferenceCall& call, std::size_t operand, std::int64_t i) {
  if (!call.has(operand)) return {};
  const TensorView& view = call.inputs[operand];
  return static_cast<float>(load(view, view.elements() == 1 ? 0 : i));
}

}  // namespace cermet
