#include "kernel/cpu/rowwise/row_steps.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/cpu/rowwise/row_steps.cpp"
#include <hwy/foreach_target.h>

#include <cmath>

#include "kernel/cpu/reduce/lanes-inl.hpp"
#include "kernel/cpu/rowwise/quantize_row-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace cermet::cpu::HWY_NAMESPACE {
namespace {

using Kind = RowSteps::Kind;
static_assert(hn::MaxLanes(FloatTag()) <= TileOperand::repeated);

void begin_part(Kind kind, RowPart& part) {
  const auto first = static_cast<float>(kind == Kind::max ? Maximum::identity : Sum::identity);
  for (auto& lanes_of_part : part.lanes) hn::Store(hn::Set(FloatTag(), first), FloatTag(), lanes_of_part);
}

HWY_INLINE Floats lanes_of(const RowPart& part, std::size_t k) { return hn::Load(FloatTag(), part.lanes[k]); }

template <class Op>
HWY_INLINE void combine_part(const float* values, std::size_t count, RowPart& part) {
  Real total[4] = {lanes_of(part, 0), lanes_of(part, 1), lanes_of(part, 2), lanes_of(part, 3)};
  combine_tile<Op>(values, count, total);
  for (std::size_t k = 0; k < 4; ++k) hn::Store(total[k].v, FloatTag(), part.lanes[k]);
}

template <class Op>
float whole(const RowPart& part) {
  const Real total[4] = {lanes_of(part, 0), lanes_of(part, 1), lanes_of(part, 2), lanes_of(part, 3)};
  return combine_all<Op>(total);
}

void add_squares(const float* values, std::size_t count, RowPart& part) {
  auto squares = hn::Load(FloatTag(), part.lanes[0]);
  for_vectors(count, [&](std::size_t i, std::size_t n) HWY_ATTR {
    const auto v = load_n(values + i, n);
    squares = hn::MulAdd(v, v, squares);
  });
  hn::Store(squares, FloatTag(), part.lanes[0]);
}

void reduce_part(Kind kind, const float* values, std::size_t count, RowPart& part) {
  switch (kind) {
    case Kind::sum:
    case Kind::mean: return combine_part<Sum>(values, count, part);
    case Kind::max: return combine_part<Maximum>(values, count, part);
    case Kind::inverse_root: return add_squares(values, count, part);
  }
}

float end_part(Kind kind, const RowPart& part, std::int64_t length, float eps) {
  switch (kind) {
    case Kind::sum: return whole<Sum>(part);
    case Kind::mean: return whole<Sum>(part) / static_cast<float>(length);
    case Kind::max: return whole<Maximum>(part);
    case Kind::inverse_root:
      return 1.0f / std::sqrt(sum_lanes(hn::Load(FloatTag(), part.lanes[0])) / static_cast<float>(length) + eps);
  }
  return 0;
}

void quantize_values(const RowReader& values, std::size_t length, const QuantizedFormat& format,
                     const QuantizedRow& out) {
  quantize_row([&](std::size_t first, std::size_t n) HWY_ATTR { return values.read(values.state, first, n); }, length,
               format, out);
}

}  // namespace

RowSteps find_row_steps() { return {begin_part, reduce_part, end_part, quantize_values}; }

}  // namespace cermet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cermet::cpu {

HWY_EXPORT(find_row_steps);

RowSteps row_steps() { return HWY_DYNAMIC_DISPATCH(find_row_steps)(); }

}  // namespace cermet::cpu
#endif
