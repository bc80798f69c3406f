#include "kernel/cpu/pointwise/plain.hpp"

#include <array>
#include <bit>
#include <cmath>

#include "kernel/cpu/pointwise/broadcast.hpp"
#include "op/pointwise_math.hpp"
#include "op/pointwise_types.hpp"

namespace cermet::cpu {
namespace {

using std::abs, std::acos, std::acosh, std::asin, std::asinh, std::atan, std::atanh, std::ceil, std::cos, std::cosh,
    std::erf, std::exp, std::expm1;
using std::floor, std::log, std::log1p, std::pow, std::sin, std::sinh, std::sqrt, std::tan, std::tanh;
using namespace pointwise_types;

/// The bits of a double, or of an integer extended to 64 bits, so that there is one loop for each operator and kind of
/// number, not for each type.
using Cell = std::uint64_t;
using Parameters = std::array<double, 2>;
using CellFunction = void (*)(const Cell* a, const Cell* b, Cell* y, std::size_t n, const Parameters& parameters);

/// One function for each kind of number; null where the operator does not take it.
struct CellFunctions {
  CellFunction real = nullptr, integer = nullptr, natural = nullptr;
};

#define FUNCTIONS(name, row_types, FIRST, P, Q, expression)                                                      \
  struct name##_row {                                                                                            \
    static constexpr DTypeSet types = row_types;                                                                 \
    template <class V>                                                                                           \
    static V apply([[maybe_unused]] V FIRST, [[maybe_unused]] V b, [[maybe_unused]] V P, [[maybe_unused]] V Q) { \
      return expression;                                                                                         \
    }                                                                                                            \
  };
#define UNARY(name, types, result, depth, terms, text, expression) FUNCTIONS(name, types, x, p_, q_, expression)
#define UNARY1(name, types, result, depth, p, p_default, terms, text, expression) \
  FUNCTIONS(name, types, x, p, q_, expression)
#define UNARY2(name, types, result, depth, p, p_default, q, q_default, terms, text, expression) \
  FUNCTIONS(name, types, x, p, q, expression)
#define BINARY(name, types, result, properties, depth, terms, text, expression) \
  FUNCTIONS(name, types, a, p_, q_, expression)
#include "op/pointwise.inc"
#undef FUNCTIONS

double value_of(Cell cell, double) { return std::bit_cast<double>(cell); }
Integer value_of(Cell cell, Integer) { return Integer::wrap(cell); }
Natural value_of(Cell cell, Natural) { return cell; }
Cell cell_of(double value) { return std::bit_cast<Cell>(value); }
Cell cell_of(Integer value) { return value.bits().value; }
Cell cell_of(Natural value) { return value.value; }

template <class Row, class V>
void run_cells(const Cell* a, const Cell* b, Cell* y, std::size_t n, const Parameters& parameters) {
  V p = 0, q = 0;
  if constexpr (std::is_same_v<V, double>) p = parameters[0], q = parameters[1];
  for (std::size_t i = 0; i < n; ++i)
    y[i] = cell_of(Row::template apply<V>(value_of(a[i], p), value_of(b[i], p), p, q));
}

template <class Row>
CellFunctions functions_of() {
  CellFunctions functions;
  if constexpr (Row::types.contains(DType::f64)) functions.real = run_cells<Row, double>;
  if constexpr (Row::types.contains(DType::i8)) functions.integer = run_cells<Row, Integer>;
  if constexpr (Row::types.contains(DType::u8)) functions.natural = run_cells<Row, Natural>;
  return functions;
}

CellFunctions functions_of(OpKind kind) {
  switch (kind) {
#define UNARY(name, ...) \
  case OpKind::name:     \
    return functions_of<name##_row>();
#define UNARY1(name, ...) UNARY(name, )
#define UNARY2(name, ...) UNARY(name, )
#define BINARY(name, ...) UNARY(name, )
#include "op/pointwise.inc"
    default: return {};
  }
}

CellFunction function_of(OpKind kind, DType dtype) {
  const CellFunctions functions = functions_of(kind);
  const CellFunction function = dtype == DType::f64       ? functions.real
                                : natural.contains(dtype) ? functions.natural
                                                          : functions.integer;
  CERMET_ASSERT(function);
  return function;
}

/// Calls body(T{}) with the C++ type of a type that is_plain.
template <class Body>
void by_plain_type(DType dtype, Body&& body) {
  switch (dtype) {
    case DType::i8: return body(std::int8_t{});
    case DType::u8: return body(std::uint8_t{});
    case DType::i16: return body(std::int16_t{});
    case DType::u16: return body(std::uint16_t{});
    case DType::u32: return body(std::uint32_t{});
    default: return body(Cell{});
  }
}

/// Elements first, first + 1, ... as cells; step 0 repeats one element.
void read_cells(const BroadcastOperand& operand, std::size_t first, std::size_t n, Cell* to) {
  by_plain_type(operand.dtype, [&](auto zero) {
    const auto* const from = reinterpret_cast<const decltype(zero)*>(operand.data);
    for (std::size_t i = 0; i < n; ++i) to[i] = static_cast<Cell>(from[operand.step != 0 ? first + i : 0]);
  });
}

void write_cells(const Cell* from, bool real, const BroadcastOperand& y, std::size_t first, std::size_t n) {
  if (y.dtype == DType::boolean) {
    for (std::size_t i = 0; i < n; ++i)
      y.data[first + i] = static_cast<std::byte>(real ? std::bit_cast<double>(from[i]) != 0 : from[i] != 0);
    return;
  }
  by_plain_type(y.dtype, [&](auto zero) {
    auto* const to = reinterpret_cast<decltype(zero)*>(y.data) + first;
    for (std::size_t i = 0; i < n; ++i) to[i] = static_cast<decltype(zero)>(from[i]);
  });
}

void apply_to_cells(const LaunchArgs& args, CellFunction function, const Parameters& parameters) {
  constexpr std::size_t piece = 256;
  const bool binary = args.has(1), real = args.inputs[0].dtype == DType::f64;
  const Broadcast broadcast(args.inputs[0], args.inputs[binary ? 1 : 0], args.outputs[0], piece);
  args.pool->parallel_for(broadcast.pieces(), broadcast.grain(), [&](std::int64_t begin, std::int64_t end) {
    Cell left[piece], right[piece], result[piece];
    broadcast.for_pieces(
        begin, end, [&](BroadcastOperand a, BroadcastOperand b, BroadcastOperand y, std::size_t first, std::size_t n) {
          read_cells(a, first, n, left);
          if (binary) read_cells(b, first, n, right);
          function(left, binary ? right : left, result, n, parameters);
          write_cells(result, real, y, first, n);
        });
  });
}

}  // namespace

bool is_plain(DType dtype) {
  return number.contains(dtype) && !dtypes::real.contains(dtype) && !dtypes::index.contains(dtype);
}

Launcher bind_plain(const Problem& p) {
  Parameters parameters{};
  std::ranges::copy(p.numbers(), parameters.begin());
  return [function = function_of(p.op->kind, p.input(0).dtype), parameters](const LaunchArgs& args) {
    apply_to_cells(args, function, parameters);
  };
}

}  // namespace cermet::cpu
