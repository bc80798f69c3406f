#include "kernel/cpu/pointwise/quantize_plain.hpp"

#include <cmath>

#include "base/checked.hpp"
#include "format/element.hpp"
#include "kernel/cpu/movement/axes.hpp"
#include "op/operands.hpp"
#include "op/quantization.hpp"

namespace cermet::cpu {
namespace {

bool is_one_or_channel(const Problem& p, std::size_t operand) {
  const Dims& dims = p.input(operand).dims;
  return dims.empty() || (dims.size() == 1 && (dims[0] == Dim(1) || dims[0] == p.input(op::quantize::x).dims.back()));
}

constexpr std::int64_t block = 256;

/// Elements of an operand that broadcasts, as float32.
void read_block(const TensorView& view, std::int64_t offset, std::int64_t step, std::int64_t n, float* to) {
  for (std::int64_t i = 0; i < n; ++i)
    to[i] = static_cast<float>(format::load_element(view.data, view.dtype, offset + i * step));
}

/// What a launch reads: values, scales, and where they are given offsets and zero points; and what it writes. Each
/// walks the axes of the result.
struct Operands {
  static constexpr std::size_t result = 4;
  std::array<const TensorView*, 5> views{};

  Operands(const LaunchArgs& args, std::span<const TensorView> parameters)
      : views{&args.inputs[op::quantize::x], &parameters[0]} {
    for (std::size_t i = 1; i < parameters.size(); ++i)
      if (parameters[i].present) views[1 + i] = &parameters[i];
    views[result] = &args.outputs[0];
  }
};

/// Strides along the axes of the result, 0 where an operand repeats or is not given.
std::array<std::int64_t, 5> strides_at(const Operands& operands, int axis) {
  std::array<std::int64_t, 5> strides{};
  for (std::size_t o = 0; o < strides.size(); ++o) {
    const TensorView* const view = operands.views[o];
    const int own = view ? axis - (operands.views[Operands::result]->shape.rank() - view->shape.rank()) : -1;
    if (own >= 0 && view->shape[own] != 1) strides[o] = view->strides[own];
  }
  return strides;
}

/// Calls body(values, n, y, offset, step): what values[kind][i] are for elements offset + i * step of y.
template <class Body>
void for_blocks(const LaunchArgs& args, const Operands& operands, Body&& body) {
  const TensorView& y = *operands.views[Operands::result];
  if (y.elements() == 0) return;
  StridedAxes<5> outer;
  const int last = y.shape.rank() - 1;
  for (int a = 0; a < last; ++a) outer.append(y.shape[a], strides_at(operands, a));
  const std::array<std::int64_t, 5> step = strides_at(operands, last);
  const std::int64_t length = y.shape[last], pieces = div_up(length, block);
  args.pool->parallel_for(outer.shape.elements() * pieces, 4, [&](std::int64_t begin, std::int64_t end) {
    Walk<5> walk(outer, begin / pieces);
    float values[4][block];
    for (std::int64_t unit = begin; unit < end; ++unit) {
      const std::int64_t first = unit % pieces * block, n = std::min(block, length - first);
      for (std::size_t o = 0; o < 4; ++o)
        if (operands.views[o]) read_block(*operands.views[o], walk.offset[o] + first * step[o], step[o], n, values[o]);
      body(values, n, y, walk.offset[Operands::result] + first);
      if ((unit + 1) % pieces == 0) walk.next();
    }
  });
}

void quantize(const LaunchArgs& args, bool divide, bool saturates) {
  const TensorView parameters[] = {
      args.inputs[op::quantize::scale],
      args.has(op::quantize::offset) ? args.inputs[op::quantize::offset] : TensorView(),
      args.has(op::quantize::zero_point) ? args.inputs[op::quantize::zero_point] : TensorView()};
  const bool has_offset = args.has(op::quantize::offset), has_zero_point = args.has(op::quantize::zero_point);
  for_blocks(args, Operands(args, parameters),
             [&](const float(&v)[4][block], std::int64_t n, const TensorView& q, std::int64_t at) {
               for (std::int64_t i = 0; i < n; ++i) {
                 float value =
                     static_value(v[op::quantize::x][i], v[op::quantize::scale][i],
                                  has_offset ? std::optional(v[op::quantize::offset][i]) : std::nullopt, divide);
                 if (has_zero_point) value = std::nearbyint(value) + v[op::quantize::zero_point][i];
                 else if (!saturates) value = unsaturated(value, q.dtype);
                 format::store_element(q.data, q.dtype, at + i, value);
               }
             });
}

/// A parameter of a dequantization as an operand that broadcasts to the quantized values.
TensorView broadcasting(const TensorView& view, bool by_token) {
  if (!view.present || !by_token) return view;
  TensorView column = view;
  column.shape.push_back(1);
  column.strides.push_back(1);
  return column;
}

void dequantize(const LaunchArgs& args, bool by_token, bool divide) {
  const TensorView parameters[] = {
      broadcasting(args.inputs[op::quantize::scale], by_token),
      args.has(op::quantize::offset) ? broadcasting(args.inputs[op::quantize::offset], by_token) : TensorView()};
  const bool has_offset = args.has(op::quantize::offset);
  for_blocks(args, Operands(args, parameters),
             [&](const float(&v)[4][block], std::int64_t n, const TensorView& y, std::int64_t at) {
               for (std::int64_t i = 0; i < n; ++i) {
                 const float value = has_offset ? v[op::quantize::x][i] - v[op::quantize::offset][i]
                                                : v[op::quantize::x][i],
                             scale = v[op::quantize::scale][i];
                 format::store_element(y.data, y.dtype, at + i, divide ? value / scale : value * scale);
               }
             });
}

}  // namespace

bool is_plain_quantize(const Problem& p) {
  if (!quantized_types.contains(p.outputs[0].dtype) || p.has(op::quantize::zero_point) ||
      !p.attributes.flag("saturate"))
    return true;
  return !is_one_or_channel(p, op::quantize::scale) ||
         (p.has(op::quantize::offset) && !is_one_or_channel(p, op::quantize::offset));
}

bool is_plain_dequantize(const Problem& p) {
  constexpr DTypeSet quantized = quantized_types | DTypeSet{DType::i32}, offsets{DType::f32, DType::i32};
  if (p.attributes.text("granularity") == "broadcast" || !quantized.contains(p.input(op::quantize::x).dtype))
    return true;
  return p.has(op::quantize::offset) && !offsets.contains(p.input(op::quantize::offset).dtype);
}

Launcher bind_plain_quantize(const Problem& p) {
  return [divide = p.attributes.text("mode") == "div",
          saturates = p.attributes.flag("saturate")](const LaunchArgs& args) { quantize(args, divide, saturates); };
}

Launcher bind_plain_dequantize(const Problem& p) {
  const bool by_token = p.attributes.text("granularity") == "token", divide = p.attributes.text("mode") == "mul";
  return [by_token, divide](const LaunchArgs& args) { dequantize(args, by_token, divide); };
}

}  // namespace cermet::cpu
