// Functions of float32 that have no exact rounding, against long double, over inputs of every sign and exponent and on
// every instruction set. The bounds are what was measured, with a margin of a fifth; those of pointwise.inc, which
// promise 4 for exp and 8 for the others, hold on every machine.
#include <gtest/gtest.h>

#include <bit>
#include <cfenv>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "kernel/cpu/isa.hpp"
#include "kernel/cpu/pointwise/tile_functions.hpp"
#include "op/schema/operator.hpp"

namespace cermet {
namespace {

using Exact = long double;

Exact sigmoid(Exact x) { return x >= 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x)); }
Exact tanh_argument(Exact x) { return std::sqrt(2 / std::numbers::pi_v<Exact>) * (x + 0.044715L * x * x * x); }

struct Function {
  OpKind kind;
  Exact (*value)(Exact x);
  Exact (*argument)(Exact x);  ///< whose rounding the bound scales with; as terms of pointwise.inc
  double units;                ///< of 2^-24
};

const Function functions[] = {
    {OpKind::exp, [](Exact x) { return std::exp(x); }, [](Exact) { return Exact(0); }, 2},
    {OpKind::sigmoid, sigmoid, [](Exact) { return Exact(0); }, 3.5},
    {OpKind::silu, [](Exact x) { return x * sigmoid(x); }, [](Exact) { return Exact(0); }, 4.5},
    {OpKind::gelu, [](Exact x) { return x * std::erfc(-x / std::numbers::sqrt2_v<Exact>) / 2; },
     [](Exact x) { return x * x / 2; }, 6.5},
    {OpKind::gelu_tanh, [](Exact x) { return x * sigmoid(2 * tanh_argument(x)); }, tanh_argument, 6.5},
    {OpKind::gelu_quick, [](Exact x) { return x * sigmoid(1.702L * x); }, [](Exact x) { return x; }, 6.5},
    {OpKind::erf, [](Exact x) { return std::erf(x); }, [](Exact) { return Exact(0); }, 4},
    {OpKind::tanh, [](Exact x) { return std::tanh(x); }, [](Exact) { return Exact(0); }, 5},
};

/// What is off by more than the bound, or loses a NaN.
std::string mistake(const Function& f, float x, float y) {
  const Exact exact = f.value(x);
  if (std::isnan(exact))
    return std::isnan(y) ? "" : fmt::format("{} of {} is {}, not NaN", definition(f.kind).name, x, y);
  // e^x keeps subnormal results; where they are factors, they may be 0. Beyond the largest number the error is that of
  // the exponent.
  const Exact smallest = f.kind == OpKind::exp ? 128 * std::numeric_limits<float>::denorm_min()
                                               : 0x1p-125L * std::max(Exact(1), std::abs(Exact(x))),
              largest = std::numeric_limits<float>::max();
  if (std::abs(exact) > largest)
    return std::isinf(y) || std::abs(y) > 0.999999f * largest
               ? ""
               : fmt::format("{} of {} is {}", definition(f.kind).name, x, y);
  const Exact bound = f.units * 0x1p-24L * std::abs(exact) * (1 + std::abs(f.argument(x))) + smallest;
  if (std::abs(y - exact) <= bound) return "";
  return fmt::format("{} of {} is {}, expected {} within {}", definition(f.kind).name, x, y, static_cast<double>(exact),
                     static_cast<double>(bound));
}

TEST(PointwiseAccuracy, OverAllExponents) {
  constexpr std::size_t count = 509;  // of a tile; no multiple of any vector
  constexpr std::uint64_t step = 49157;
  for (const cpu::Isa isa : cpu::supported_isas()) {
    cpu::force_isa(isa);
    for (const Function& f : functions) {
      const cpu::TileFunction function = cpu::pointwise_functions(f.kind).real;
      std::array<float, count> x, y;
      for (std::uint64_t bits = 0; bits < std::uint64_t{1} << 32; bits += count * step) {
        for (std::size_t i = 0; i < count; ++i)
          x[i] = std::bit_cast<float>(static_cast<std::uint32_t>(bits + i * step));
        const cpu::TileOperand operand{x.data(), 0, 1};
        const float parameters[2] = {};
        function(&operand, {y.data(), 0, 1, count}, parameters);
        for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(mistake(f, x[i], y[i]), "") << cpu::name_of(isa);
      }
    }
  }
  cpu::force_isa(cpu::supported_isas().back());
}

/// Operands from whose results, and all numbers on the way, the exact values are too far to be subnormal, but for e^x
/// between.
std::vector<float> far_operands(OpKind kind) {
  std::vector<float> list;
  for (float x = 5; x < 3e38f; x += std::max(0.0625f, x / 64)) {
    list.push_back(x);
    if (kind != OpKind::exp || x < 87 || x > 104.1f) list.push_back(-x);
  }
  return list;
}

// A subnormal number on the way costs a processor a hundred cycles: rows of large values once took 11 to 16 times as
// long.
TEST(PointwiseAccuracy, NothingUnderflowsFarFromZero) {
  constexpr std::size_t count = 512;
  for (const cpu::Isa isa : cpu::supported_isas()) {
    cpu::force_isa(isa);
    for (const OpKind kind : {OpKind::exp, OpKind::sigmoid, OpKind::silu, OpKind::gelu, OpKind::gelu_tanh,
                              OpKind::gelu_quick, OpKind::erf, OpKind::tanh, OpKind::softplus}) {
      const cpu::TileFunction function = cpu::pointwise_functions(kind).real;
      const std::vector<float> operands = far_operands(kind);
      for (std::size_t first = 0; first < operands.size(); first += count) {
        std::array<float, count> x, y;
        for (std::size_t i = 0; i < count; ++i) x[i] = operands[(first + i) % operands.size()];
        const cpu::TileOperand operand{x.data(), 0, 1};
        const float parameters[2] = {};
        std::feclearexcept(FE_ALL_EXCEPT);
        function(&operand, {y.data(), 0, 1, count}, parameters);
        EXPECT_FALSE(std::fetestexcept(FE_UNDERFLOW))
            << definition(kind).name << " between " << x.front() << " and " << x.back() << ", " << cpu::name_of(isa);
      }
    }
  }
  cpu::force_isa(cpu::supported_isas().back());
}

}  // namespace
}  // namespace cermet
