#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/cpu/rowwise/add_rms_norm.cpp"
#include <hwy/foreach_target.h>

#include <cmath>

#include "kernel/cpu/rowwise/row_grain.hpp"
#include "kernel/cpu/rowwise/row_kernel.hpp"
#include "kernel/cpu/tile-inl.hpp"
#include "kernel/cpu/vec-inl.hpp"
#include "kernel/kernel.hpp"
#include "op/operands.hpp"

#ifndef CERMET_ADD_RMS_NORM_ONCE
#define CERMET_ADD_RMS_NORM_ONCE
namespace cermet::cpu {
struct AddRmsNorm {
  float eps, weight_offset;
  bool round_sum;
};
}  // namespace cermet::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace cermet::cpu::HWY_NAMESPACE {

struct AddRmsNormRow {
  RowIn x, residual, weight;
  RowOut y, sum;
};

/// `value` as it reads back after a store of type `dtype`.
HWY_INLINE Floats as_stored(Floats value, DType dtype) {
  HWY_ALIGN std::uint16_t half[hn::MaxLanes(FloatTag())];
  if (dtype == DType::bf16) {
    store(value, reinterpret_cast<format::bf16*>(half));
    return load(reinterpret_cast<const format::bf16*>(half));
  }
  if (dtype == DType::f16) {
    store(value, reinterpret_cast<format::f16*>(half));
    return load(reinterpret_cast<const format::f16*>(half));
  }
  return value;
}

/// Calls body(i, n, sum) for the vectors of x + residual in one tile: elements [first + i, first + i + n) of the row.
template <class Body>
HWY_INLINE void for_sums(const AddRmsNormRow& row, std::size_t first, std::size_t count, DType rounded_to,
                         Body&& body) {
  TileBuffer x_buffer, residual_buffer;
  const float *x = row.x.read(first, count, x_buffer), *residual = row.residual.read(first, count, residual_buffer);
  for_vectors(count, [&](std::size_t i, std::size_t n) HWY_ATTR {
    body(i, n, as_stored(hn::Add(load_n(x + i, n), load_n(residual + i, n)), rounded_to));
  });
}

/// Two passes over the inputs, the second of which writes only what it has read: so results may share the operands'
/// memory, and no scratch row is needed.
void add_rms_norm_row(const AddRmsNormRow& row, std::size_t length, const AddRmsNorm& parameters) {
  const DType rounded_to = parameters.round_sum ? row.sum.dtype : DType::f32;
  auto squares = hn::Zero(FloatTag());
  for_tiles(length, [&](std::size_t first, std::size_t count) HWY_ATTR {
    for_sums(row, first, count, rounded_to,
             [&](std::size_t, std::size_t, Floats s) HWY_ATTR { squares = hn::MulAdd(s, s, squares); });
  });
  const auto scale =
      hn::Set(FloatTag(), 1.0f / std::sqrt(sum_lanes(squares) / static_cast<float>(length) + parameters.eps));
  const auto offset = hn::Set(FloatTag(), parameters.weight_offset);
  TileBuffer weight_buffer, y_buffer, sum_buffer;
  for_tiles(length, [&](std::size_t first, std::size_t count) HWY_ATTR {
    const float* weight = row.weight ? row.weight.read(first, count, weight_buffer) : nullptr;
    float *y = row.y.tile(first, y_buffer), *sum = row.sum.tile(first, sum_buffer);
    for_sums(row, first, count, rounded_to, [&](std::size_t i, std::size_t n, Floats s) HWY_ATTR {
      auto v = hn::Mul(s, scale);
      if (weight) v = hn::Mul(v, hn::Add(load_n(weight + i, n), offset));
      store_n(s, sum + i, n);
      store_n(v, y + i, n);
    });
    row.y.commit(first, count, y_buffer);
    row.sum.commit(first, count, sum_buffer);
  });
}

void add_rms_norm(const LaunchArgs& args, const AddRmsNorm& parameters) {
  const TensorView &x = args.inputs[0], &residual = args.inputs[1], &y = args.outputs[0], &sum = args.outputs[1];
  const bool has_weight = args.has(op::add_rms_norm::weight);
  const RowIn weight = has_weight ? RowIn{args.inputs[op::add_rms_norm::weight].as<std::byte>(),
                                          args.inputs[op::add_rms_norm::weight].dtype}
                                  : RowIn{};
  const int trailing = has_weight ? args.inputs[op::add_rms_norm::weight].shape.rank() : 1;
  const Rows x_rows(x, trailing), residual_rows(residual, trailing), y_rows(y, trailing), sum_rows(sum, trailing);
  args.pool->parallel_for(x_rows.count(), row_grain(x_rows.count(), x_rows.length()),
                          [&](std::int64_t begin, std::int64_t end) {
                            for (std::int64_t r = begin; r < end; ++r)
                              add_rms_norm_row({{x_rows.row(r), x.dtype},
                                                {residual_rows.row(r), residual.dtype},
                                                weight,
                                                {y_rows.row(r), y.dtype},
                                                {sum_rows.row(r), sum.dtype}},
                                               static_cast<std::size_t>(x_rows.length()), parameters);
                          });
}

}  // namespace cermet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cermet::cpu {

HWY_EXPORT(add_rms_norm);

extern const Kernel rowwise_add_rms_norm;
const Kernel rowwise_add_rms_norm = with_row_regions({
    .name = "rowwise.add_rms_norm",
    .op = OpKind::add_rms_norm,
    .summary = "one pass for the sum of squares, one to add again, scale and store; rows spread over threads",
    .bind = [](const Problem& p) -> Launcher {
      const AddRmsNorm parameters{static_cast<float>(p.attributes.number("eps")),
                                  static_cast<float>(p.attributes.number("weight_offset")),
                                  p.attributes.flag("round_sum")};
      return [parameters](const LaunchArgs& args) { HWY_DYNAMIC_DISPATCH(add_rms_norm)(args, parameters); };
    },
});

}  // namespace cermet::cpu
#endif
