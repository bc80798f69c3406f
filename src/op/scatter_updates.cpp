#include "op/scatter_updates.hpp"

#include "op/operands.hpp"
#include "op/schema/infer.hpp"

namespace cermet {
namespace {

template <class T>
void combine(Reduction kind, const TensorView& updates, std::int64_t i, const TensorView& y, std::int64_t j) {
  T& target = y.as<T>()[element_offset(y, j)];
  target = combined_integers(kind, target, updates.as<const T>()[element_offset(updates, i)]);
}

void combine_integers(Reduction kind, const TensorView& updates, std::int64_t i, const TensorView& y, std::int64_t j) {
  switch (y.dtype) {
    case DType::boolean: return combine<std::uint8_t>(boolean_reduction(kind), updates, i, y, j);
    case DType::u8: return combine<std::uint8_t>(kind, updates, i, y, j);
    case DType::i8: return combine<std::int8_t>(kind, updates, i, y, j);
    case DType::u16: return combine<std::uint16_t>(kind, updates, i, y, j);
    case DType::i16: return combine<std::int16_t>(kind, updates, i, y, j);
    case DType::u32: return combine<std::uint32_t>(kind, updates, i, y, j);
    case DType::i32: return combine<std::int32_t>(kind, updates, i, y, j);
    case DType::u64: return combine<std::uint64_t>(kind, updates, i, y, j);
    default: return combine<std::int64_t>(kind, updates, i, y, j);
  }
}

}  // namespace

void expect_reducible(const Problem& p) {
  const DTypeSet numbers = dtypes::real | dtypes::integer | DTypeSet{DType::boolean, DType::f64};
  const DType dtype = p.input(0).dtype;
  if (p.attributes.text("reduction") != "none" && !numbers.contains(dtype))
    bad_operand(p, 0, numbers.to_string() + " for a reduction", name_of(dtype));
}

ScatterUpdates::ScatterUpdates(const ReferenceCall& call)
    : call_(call), reduces_(call.attributes.text("reduction") != "none") {
  const TensorView &x = call.inputs[0], &y = call.outputs[0];
  for (std::int64_t i = 0; i < x.elements(); ++i) copy_element(x, i, y, i);
  if (!reduces_) return;
  reduction_ = reduction_from_name(call.attributes.text("reduction"));
  if (is_floating(x.dtype)) targets_.resize(static_cast<std::size_t>(x.elements()));
}

void ScatterUpdates::add_real(Target& target, std::int64_t j, std::int64_t update) {
  const TensorView &x = call_.inputs[0], &updates = call_.inputs[op::scatter::updates];
  if (!target.touched) target = {load(x, j), std::abs(load(x, j)), true};
  RealReducer step(reduction_);
  step.add(target.value);
  step.add(load(updates, update));
  target.value = step.result();
  target.magnitude =
      reduction_ == Reduction::sum ? target.magnitude + std::abs(load(updates, update)) : std::abs(target.value);
}

void ScatterUpdates::add(std::int64_t target, std::int64_t update) {
  const TensorView &updates = call_.inputs[op::scatter::updates], &y = call_.outputs[0];
  if (!reduces_) copy_element(updates, update, y, target);
  else if (targets_.empty()) combine_integers(reduction_, updates, update, y, target);
  else add_real(targets_[static_cast<std::size_t>(target)], target, update);
}

void ScatterUpdates::finish() {
  for (std::int64_t j = 0; j < static_cast<std::int64_t>(targets_.size()); ++j) {
    const Target& target = targets_[static_cast<std::size_t>(j)];
    if (!target.touched) continue;
    store(call_.outputs[0], j, target.value);
    note_magnitude(call_, 0, j, target.magnitude);
  }
}

}  // namespace cermet
