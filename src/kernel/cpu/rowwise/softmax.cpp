#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/cpu/rowwise/softmax.cpp"
#include <hwy/foreach_target.h>

#include <cmath>
#include <limits>

#include "kernel/cpu/reduce/lanes-inl.hpp"
#include "kernel/cpu/rowwise/row_grain.hpp"
#include "kernel/cpu/rowwise/row_kernel.hpp"
#include "kernel/cpu/tile-inl.hpp"
#include "kernel/kernel.hpp"

HWY_BEFORE_NAMESPACE();
namespace cermet::cpu::HWY_NAMESPACE {

/// Calls body(k, x) for the vectors of a row and the total that each belongs to; lanes past the end hold -inf, which
/// changes neither a maximum nor a sum of exponentials.
template <class Body>
HWY_INLINE void for_row(const RowIn& row, std::size_t length, Body&& body) {
  TileBuffer buffer;
  for_tiles(length, [&](std::size_t first, std::size_t count) HWY_ATTR {
    const float* x = row.read(first, count, buffer);
    for_chains(count, [&](std::size_t k, std::size_t i, std::size_t n)
                          HWY_ATTR { body(k, Real(load_n(x + i, n, -std::numeric_limits<float>::infinity()))); });
  });
}

/// The largest element of a row; NaN where it holds one.
float row_max(const RowIn& x, std::size_t length) {
  Real largest[4] = {Maximum::identity, Maximum::identity, Maximum::identity, Maximum::identity};
  for_row(x, length, [&](std::size_t k, Real v) HWY_ATTR { largest[k] = maximum(largest[k], v); });
  return combine_all<Maximum>(largest);
}

/// y = e^(x - largest), float32; returns the sum of y.
float store_exponentials(const RowIn& x, const RowOut& y, std::size_t length, Real largest) {
  Real sum[4] = {0.0, 0.0, 0.0, 0.0};
  TileBuffer x_buffer, none;
  for_tiles(length, [&](std::size_t first, std::size_t count) HWY_ATTR {
    const float* const from = x.read(first, count, x_buffer);
    float* const to = y.tile(first, none);
    for_chains(count, [&](std::size_t k, std::size_t i, std::size_t n) HWY_ATTR {
      const Real term = exp(Real(load_n(from + i, n, -std::numeric_limits<float>::infinity())) - largest);
      sum[k] = sum[k] + term;
      store_n(term.v, to + i, n);
    });
  });
  return combine_all<Sum>(sum);
}

/// y = y / total, by its reciprocal.
void scale_row(const RowOut& y, std::size_t length, float total) {
  const Real scale(1.0f / total);
  float* const row = reinterpret_cast<float*>(y.data);
  for_vectors(length, [&](std::size_t i, std::size_t n)
                          HWY_ATTR { store_n((Real(load_n(row + i, n)) * scale).v, row + i, n); });
}

void softmax_row(const RowIn& x, const RowOut& y, std::size_t length, bool logarithm) {
  const Real largest(row_max(x, length));
  if (!logarithm && y.dtype == DType::f32) return scale_row(y, length, store_exponentials(x, y, length, largest));
  Real sum[4] = {0.0, 0.0, 0.0, 0.0};
  for_row(x, length, [&](std::size_t k, Real v) HWY_ATTR { sum[k] = sum[k] + exp(v - largest); });
  const float total = combine_all<Sum>(sum);
  const Real log_total = logarithm ? log(Real(total)) : Real(0.0), scale(1.0f / total);
  TileBuffer x_buffer, y_buffer;
  for_tiles(length, [&](std::size_t first, std::size_t count) HWY_ATTR {
    const float* from = x.read(first, count, x_buffer);
    float* to = y.tile(first, y_buffer);
    for_vectors(count, [&](std::size_t i, std::size_t n) HWY_ATTR {
      const Real distance = Real(load_n(from + i, n)) - largest;
      store_n(logarithm ? (distance - log_total).v : (exp(distance) * scale).v, to + i, n);
    });
    y.commit(first, count, y_buffer);
  });
}

void softmax(const LaunchArgs& args, bool logarithm) {
  const TensorView &x = args.inputs[0], &y = args.outputs[0];
  const Rows from(x), to(y);
  if (from.length() == 0) return;
  args.pool->parallel_for(
      from.count(), row_grain(from.count(), from.length()), [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t r = begin; r < end; ++r)
          softmax_row({from.row(r), x.dtype}, {to.row(r), y.dtype}, static_cast<std::size_t>(from.length()), logarithm);
      });
}

}  // namespace cermet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cermet::cpu {
namespace {

/// One row of doubles, element by element.
void softmax_row(const double* x, double* y, std::int64_t length, bool logarithm) {
  double largest = -std::numeric_limits<double>::infinity(), sum = 0;
  for (std::int64_t i = 0; i < length; ++i) largest = std::max(x[i], largest);
  for (std::int64_t i = 0; i < length; ++i) sum += std::exp(x[i] - largest);
  const double log_sum = std::log(sum);
  for (std::int64_t i = 0; i < length; ++i)
    y[i] = logarithm ? x[i] - largest - log_sum : std::exp(x[i] - largest) / sum;
}

void softmax_f64(const LaunchArgs& args, bool logarithm) {
  const Rows from(args.inputs[0]), to(args.outputs[0]);
  if (from.length() == 0) return;
  args.pool->parallel_for(from.count(), row_grain(from.count(), from.length()),
                          [&](std::int64_t begin, std::int64_t end) {
                            for (std::int64_t r = begin; r < end; ++r)
                              softmax_row(reinterpret_cast<const double*>(from.row(r)),
                                          reinterpret_cast<double*>(to.row(r)), from.length(), logarithm);
                          });
}

}  // namespace

HWY_EXPORT(softmax);

extern const Kernel rowwise_softmax;
const Kernel rowwise_softmax = with_row_regions({
    .name = "rowwise.softmax",
    .op = OpKind::softmax,
    .summary = "three passes over a row: maximum, exponentials and their sum, result; rows spread over threads",
    .bind = [](const Problem& p) -> Launcher {
      if (p.input(0).dtype == DType::f64)
        return [logarithm = p.attributes.flag("log")](const LaunchArgs& args) { softmax_f64(args, logarithm); };
      return [logarithm = p.attributes.flag("log")](const LaunchArgs& args) {
        HWY_DYNAMIC_DISPATCH(softmax)(args, logarithm);
      };
    },
});

}  // namespace cermet::cpu
#endif
