#include "api/call_key.hpp"

#include <algorithm>

#include "api/plain_tensor.hpp"
#include "base/error.hpp"
#include "op/schema/problem.hpp"

namespace cermet::api {
namespace {

/// One step of a hash: the multiplication and rotation of FxHash, which is made for short keys of integers.
void mix(std::uint64_t& hash, std::uint64_t value) { hash = (std::rotl(hash, 5) ^ value) * 0x517cc1b727220a95u; }

std::uint64_t word_of(DLDataType type) {
  return type.code | std::uint64_t{type.bits} << 8 | std::uint64_t{type.lanes} << 16;
}

/// The end of the range that a size lies in: 0, 1, 2, 4, 8 and so on; beyond what kernels count in 32 bits, the size
/// itself.
std::int64_t range_end(std::int64_t size) {
  constexpr std::int64_t largest = std::int64_t{1} << 30;
  return size <= 1 || size > largest ? size
                                     : static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(size)));
}

void require_form(std::string_view op, std::size_t i, const DLTensor& t) {
  if (t.ndim < 0 || t.ndim > Shape::max_rank)
    fail(Status::invalid_argument, "{}: input {}: expected 0 to {} dimensions, found {}", op, i, Shape::max_rank,
         t.ndim);
  if (t.ndim > 0 && !t.shape) fail(Status::invalid_argument, "{}: input {}: expected a shape, found NULL", op, i);
}

}  // namespace

CallShape::CallShape(std::string_view op, std::span<const DLTensor* const> given) : inputs(given) {
  if (given.size() > static_cast<std::size_t>(max_variadic))
    fail(Status::invalid_argument, "{}: expected at most {} inputs, found {}", op, max_variadic, given.size());
  while (!inputs.empty() && !inputs.back()) inputs = inputs.first(inputs.size() - 1);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const DLTensor* const t = inputs[i];
    if (!t) continue;
    require_form(op, i, *t);
    const std::size_t rank = static_cast<std::size_t>(t->ndim), counted = rank == 1 ? 1 : rank - 1;
    for (std::size_t axis = 0; i == 0 && axis < std::min(counted, row_axes) && rank > 0; ++axis) {
      rows[axis] = t->shape[axis];
      range_ends[axis] = range_end(t->shape[axis]);
    }
    for (std::size_t axis = 0; axis < std::min(rank, row_axes); ++axis)
      if (t->shape[axis] == rows[axis]) shared[axis] |= std::uint64_t{1} << i;
  }
}

std::uint64_t CallShape::hash() const {
  std::uint64_t hash = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const DLTensor* const t = inputs[i];
    mix(hash, t ? word_of(t->dtype) << 8 | static_cast<std::uint64_t>(t->ndim + 1) : 0);
    for (std::size_t a = 0; t && a < static_cast<std::size_t>(t->ndim); ++a)
      if (a >= row_axes || !(shared[a] >> i & 1u)) mix(hash, static_cast<std::uint64_t>(t->shape[a]));
  }
  for (std::size_t axis = 0; axis < row_axes; ++axis) {
    mix(hash, static_cast<std::uint64_t>(range_ends[axis]));
    mix(hash, shared[axis]);
  }
  return hash;
}

CallKey::CallKey(const CallShape& shape, const PerRowAxis<std::uint64_t>& open,
                 std::vector<PerRowAxis<std::int64_t>> but)
    : inputs_(shape.inputs.size()),
      range_ends_(shape.range_ends),
      shared_(shape.shared),
      but_(std::move(but)),
      hash_(shape.hash()) {
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    const DLTensor* const t = shape.inputs[i];
    if (!t) continue;
    inputs_[i].given = true;
    inputs_[i].type = t->dtype;
    inputs_[i].ndim = t->ndim;
    std::copy_n(t->shape, t->ndim, inputs_[i].dims.begin());
    for (std::size_t axis = 0; axis < row_axes; ++axis)
      if (open[axis] >> i & 1u) inputs_[i].dims[axis] = any_of_range;
  }
}

bool CallKey::matches(const CallShape& shape) const {
  if (shape.inputs.size() != inputs_.size() || shape.range_ends != range_ends_ || shape.shared != shared_) return false;
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    const Input& input = inputs_[i];
    const DLTensor* const t = shape.inputs[i];
    if (!t || !input.given) {
      if (t || input.given) return false;
      continue;
    }
    if (t->ndim != input.ndim || !same(t->dtype, input.type)) return false;
    for (std::size_t a = 0; a < static_cast<std::size_t>(t->ndim);
         ++a)  // `shared` says which of them share an open size
      if (input.dims[a] != t->shape[a] && input.dims[a] != any_of_range) return false;
  }
  return but_.empty() || std::ranges::find(but_, shape.rows) == but_.end();
}

}  // namespace cermet::api
