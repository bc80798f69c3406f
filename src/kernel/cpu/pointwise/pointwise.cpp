// Every elementwise operator: the rows of pointwise.inc over vectors of float32, or over integers one by one. Other
// element types: plain.cpp.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/cpu/pointwise/pointwise.cpp"
#include <hwy/foreach_target.h>

#include "base/checked.hpp"
#include "kernel/cpu/math-inl.hpp"
#include "kernel/cpu/pointwise/broadcast.hpp"
#include "kernel/cpu/pointwise/plain.hpp"
#include "kernel/cpu/pointwise/tile_functions.hpp"
#include "kernel/cpu/pointwise/tile_region.hpp"
#include "kernel/cpu/pointwise/whole-inl.hpp"
#include "kernel/cpu/tile-inl.hpp"
#include "kernel/kernel.hpp"
#include "op/pointwise_types.hpp"
#include "op/wrapping.hpp"

#ifndef CERMET_POINTWISE_ONCE
#define CERMET_POINTWISE_ONCE
namespace cermet::cpu {
struct Pointwise {
  PointwiseFunctions functions;
  float parameters[2] = {0, 0};
};
}  // namespace cermet::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace cermet::cpu::HWY_NAMESPACE {

using namespace pointwise_types;

#define FUNCTIONS(name, row_types, operands, FIRST, P, Q, expression)                               \
  struct name##_row {                                                                               \
    static constexpr DTypeSet types = row_types;                                                    \
    static constexpr std::size_t arity = operands;                                                  \
    template <class V>                                                                              \
    static HWY_INLINE V apply([[maybe_unused]] V FIRST, [[maybe_unused]] V b, [[maybe_unused]] V P, \
                              [[maybe_unused]] V Q) {                                               \
      return expression;                                                                            \
    }                                                                                               \
  };
#define UNARY(name, types, result, depth, terms, text, expression) FUNCTIONS(name, types, 1, x, p_, q_, expression)
#define UNARY1(name, types, result, depth, p, p_default, terms, text, expression) \
  FUNCTIONS(name, types, 1, x, p, q_, expression)
#define UNARY2(name, types, result, depth, p, p_default, q, q_default, terms, text, expression) \
  FUNCTIONS(name, types, 1, x, p, q, expression)
#define BINARY(name, types, result, properties, depth, terms, text, expression) \
  FUNCTIONS(name, types, 2, a, p_, q_, expression)
#include "op/pointwise.inc"
#undef FUNCTIONS

/// The same number as the row's x * sigmoid(x), by three operations fewer.
template <>
HWY_INLINE Real silu_row::apply<Real>(Real x, Real, Real, Real) {
  return silu(x);
}

template <class Row>
void real_tile(const TileOperand* operands, const TileTarget& y, const float* parameters) {
  const TileOperand a = operands[0], b = operands[Row::arity - 1];
  const Real p(parameters[0]), q(parameters[1]);
  for (std::size_t r = 0; r < y.rows; ++r) {
    const float *left = a.data + r * a.row_step, *right = b.data + r * b.row_step;
    float* const to = y.data + r * y.row_step;
    for_vectors(y.columns, [&](std::size_t i, std::size_t n) HWY_ATTR {
      store_n(Row::template apply<Real>(Real(load_n(left + i * a.column_step, n)),
                                        Real(load_n(right + i * b.column_step, n)), p, q)
                  .v,
              to + i, n);
    });
  }
}

/// The same of a + b.
template <class Row>
void sum_tile(const TileOperand* operands, const TileTarget& y, const float* parameters) {
  const Real p(parameters[0]), q(parameters[1]);
  for (std::size_t r = 0; r < y.rows; ++r) {
    const float *left = operands[0].data + r * operands[0].row_step,
                *right = operands[1].data + r * operands[1].row_step;
    float* const to = y.data + r * y.row_step;
    for_vectors(y.columns, [&](std::size_t i, std::size_t n) HWY_ATTR {
      const Real sum =
          hn::Add(load_n(left + i * operands[0].column_step, n), load_n(right + i * operands[1].column_step, n));
      store_n(Row::template apply<Real>(sum, sum, p, q).v, to + i, n);
    });
  }
}

constexpr bool follows_biases(OpKind kind) {
  switch (kind) {
    case OpKind::relu:
    case OpKind::clip:
    case OpKind::sigmoid:
    case OpKind::silu:
    case OpKind::gelu:
    case OpKind::gelu_tanh:
    case OpKind::gelu_quick: return true;
    default: return false;
  }
}

template <class Row>
void integer_tile(const TileOperand* operands, const TileTarget& y, const float*) {
  const TileOperand a = operands[0], b = operands[Row::arity - 1];
  for (std::size_t r = 0; r < y.rows; ++r) {
    const float *left = a.data + r * a.row_step, *right = b.data + r * b.row_step;
    float* const to = y.data + r * y.row_step;
    for_vectors(y.columns, [&](std::size_t i, std::size_t n) HWY_ATTR {
      const Whole first = Whole::of_bits(load_n(left + i * a.column_step, n)),
                  second = Whole::of_bits(load_n(right + i * b.column_step, n));
      store_n(Row::template apply<Whole>(first, second, 0, 0).bits(), to + i, n);
    });
  }
}

template <class Row>
void wide_run(const std::int64_t* a, const std::int64_t* b, std::int64_t* y, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) y[i] = Row::template apply<Integer>(a[i], b[i], 0, 0).value;
}

template <class Row, OpKind kind>
PointwiseFunctions functions_of() {
  PointwiseFunctions functions;
  if constexpr (Row::types.contains(DType::f32) || Row::types.contains(DType::boolean))
    functions.real = &real_tile<Row>;  // truth: 0 and 1
  if constexpr (Row::types.contains(DType::i32)) functions.integer = &integer_tile<Row>;
  if constexpr (follows_biases(kind)) functions.of_sum = &sum_tile<Row>;
  if constexpr (Row::types.contains(DType::i32) || Row::types.contains(DType::boolean)) functions.wide = &wide_run<Row>;
  return functions;
}

PointwiseFunctions find_pointwise_functions(OpKind kind) {
  switch (kind) {
#define UNARY(name, ...) \
  case OpKind::name:     \
    return functions_of<name##_row, OpKind::name>();
#define UNARY1(name, ...) UNARY(name, )
#define UNARY2(name, ...) UNARY(name, )
#define BINARY(name, ...) UNARY(name, )
#include "op/pointwise.inc"
    default: return {};
  }
}

/// Elements first, first + step, ... of an operand as float32; step 0 repeats one element.
TileOperand read_real(const BroadcastOperand& operand, std::size_t first, std::size_t n, TileBuffer& buffer) {
  const RowIn row{operand.data, operand.dtype};
  if (operand.step != 0) return {row.read(first, n, buffer), 0, 1};
  const float value = *row.read(0, 1, buffer);
  std::fill_n(buffer.data, TileOperand::repeated, value);
  return {buffer.data, 0, 0};
}

void real_pieces(const LaunchArgs& args, const Broadcast& broadcast, const Pointwise& op, std::int64_t begin,
                 std::int64_t end) {
  TileBuffer a_buffer, b_buffer, y_buffer;
  broadcast.for_pieces(begin, end,
                       [&](BroadcastOperand a, BroadcastOperand b, BroadcastOperand y, std::size_t first, std::size_t n)
                           HWY_ATTR {
                             TileOperand operands[2] = {read_real(a, first, n, a_buffer)};
                             if (args.has(1)) operands[1] = read_real(b, first, n, b_buffer);
                             if (y.dtype == DType::boolean) {
                               op.functions.real(operands, {y_buffer.data, 0, 1, n}, op.parameters);
                               for (std::size_t i = 0; i < n; ++i)
                                 y.data[first + i] = static_cast<std::byte>(y_buffer.data[i] != 0);
                               return;
                             }
                             const RowOut out{y.data, y.dtype};
                             op.functions.real(operands, {out.tile(first, y_buffer), 0, 1, n}, op.parameters);
                             out.commit(first, n, y_buffer);
                           });
}

/// Rows [begin, end) of float32, as one tile.
void real_rows(const LaunchArgs& args, const Broadcast& broadcast, const Pointwise& op, std::int64_t begin,
               std::int64_t end) {
  const auto step = [&](std::size_t o) { return static_cast<std::size_t>(broadcast.row_step(o)); };
  const auto row = [&](const TensorView& view, std::size_t o) {
    return view.as<float>() + begin * broadcast.row_step(o);
  };
  const TileOperand operands[] = {{row(args.inputs[0], 0), step(0), 1},
                                  {row(args.inputs[args.has(1) ? 1 : 0], 1), step(1), 1}};
  op.functions.real(operands,
                    {row(args.outputs[0], 2), step(2), static_cast<std::size_t>(end - begin),
                     static_cast<std::size_t>(broadcast.length())},
                    op.parameters);
}

template <class T>
void read_integers(const BroadcastOperand& operand, std::size_t first, std::size_t n, std::int64_t* to) {
  const T* from = reinterpret_cast<const T*>(operand.data) + (operand.step != 0 ? first : 0);
  for (std::size_t i = 0; i < n; ++i) to[i] = static_cast<std::int64_t>(from[operand.step != 0 ? i : 0]);
}

void read_integers(const BroadcastOperand& operand, std::size_t first, std::size_t n, std::int64_t* to) {
  switch (operand.dtype) {
    case DType::i32: return read_integers<std::int32_t>(operand, first, n, to);
    case DType::i64: return read_integers<std::int64_t>(operand, first, n, to);
    default: return read_integers<std::uint8_t>(operand, first, n, to);
  }
}

template <class T>
void write_integers(const std::int64_t* from, std::size_t n, T* to) {
  for (std::size_t i = 0; i < n; ++i) to[i] = static_cast<T>(from[i]);
}

void integer_pieces(const LaunchArgs& args, const Broadcast& broadcast, const Pointwise& op, std::int64_t begin,
                    std::int64_t end) {
  std::int64_t left[tile_size], right[tile_size], result[tile_size];
  broadcast.for_pieces(begin, end,
                       [&](BroadcastOperand a, BroadcastOperand b, BroadcastOperand y, std::size_t first, std::size_t n)
                           HWY_ATTR {
                             read_integers(a, first, n, left);
                             if (args.has(1)) read_integers(b, first, n, right);
                             op.functions.wide(left, args.has(1) ? right : left, result, n);
                             switch (y.dtype) {
                               case DType::i32:
                                 return write_integers(result, n, reinterpret_cast<std::int32_t*>(y.data) + first);
                               case DType::i64:
                                 return write_integers(result, n, reinterpret_cast<std::int64_t*>(y.data) + first);
                               default:
                                 return write_integers(result, n, reinterpret_cast<std::uint8_t*>(y.data) + first);
                             }
                           });
}

void pointwise(const LaunchArgs& args, OpKind kind, const float* parameters) {
  const Pointwise op{find_pointwise_functions(kind), {parameters[0], parameters[1]}};
  const Broadcast broadcast(args.inputs[0], args.has(1) ? args.inputs[1] : args.inputs[0], args.outputs[0], tile_size);
  const bool real_operands = dtypes::real.contains(args.inputs[0].dtype);
  const auto is_float = [&](const TensorView& view) { return view.dtype == DType::f32; };
  if (broadcast.is_tile() && std::ranges::all_of(args.inputs, is_float) && is_float(args.outputs[0]))
    return args.pool->parallel_for(broadcast.pieces(), broadcast.grain(), [&](std::int64_t begin, std::int64_t end) {
      real_rows(args, broadcast, op, begin, end);
    });
  args.pool->parallel_for(broadcast.pieces(), broadcast.grain(), [&](std::int64_t begin, std::int64_t end) {
    if (real_operands) real_pieces(args, broadcast, op, begin, end);
    else integer_pieces(args, broadcast, op, begin, end);
  });
}

}  // namespace cermet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cermet::cpu {

HWY_EXPORT(pointwise);
HWY_EXPORT(find_pointwise_functions);

PointwiseFunctions pointwise_functions(OpKind kind) { return HWY_DYNAMIC_DISPATCH(find_pointwise_functions)(kind); }

namespace {

Launcher bind_pointwise(const Problem& p) {
  std::array<float, 2> parameters{};
  std::ranges::transform(p.numbers(), parameters.begin(), [](double value) { return static_cast<float>(value); });
  if (is_plain(p.input(0).dtype)) return bind_plain(p);
  return [kind = p.op->kind, parameters](const LaunchArgs& args) {
    HWY_DYNAMIC_DISPATCH(pointwise)(args, kind, parameters.data());
  };
}

}  // namespace

#define UNARY(op_name, ...)                                \
  extern const Kernel pointwise_##op_name = with_regions({ \
      .name = "pointwise." #op_name,                       \
      .op = OpKind::op_name,                               \
      .summary = "tiles of all rows, spread over threads", \
      .bind = bind_pointwise,                              \
  });
#define UNARY1(name, ...) UNARY(name, )
#define UNARY2(name, ...) UNARY(name, )
#define BINARY(name, ...) UNARY(name, )
#include "op/pointwise.inc"

}  // namespace cermet::cpu
#endif
