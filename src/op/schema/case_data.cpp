#include "op/schema/case_data.hpp"

#include <cmath>
#include <cstring>
#include <random>

#include "op/schema/operator.hpp"
#include "op/schema/reference.hpp"

namespace cermet {
namespace {

std::uint64_t seed_of(std::string_view op, const std::string& name) {
  std::uint64_t hash = 1469598103934665603ull;  // FNV-1a: the same on every machine
  for (const char c : std::string(op) + "/" + name) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  return hash;
}

/// Standard normal by Box-Muller on raw generator output: std::normal_distribution differs between libraries.
double standard_normal(std::mt19937_64& random) {
  const double u = (static_cast<double>(random() >> 11) + 0.5) * 0x1p-53,
               v = static_cast<double>(random() >> 11) * 0x1p-53;
  return std::sqrt(-2 * std::log(u)) * std::cos(6.283185307179586 * v);
}

OwnedTensor make_operand(const CaseOperand& operand, std::mt19937_64& random) {
  const Shape shape = bind(operand.type.dims, {});
  Shape padded = shape;
  if (shape.rank() > 0) padded[shape.rank() - 1] += operand.row_padding;
  OwnedTensor tensor(operand.type.dtype, padded);
  if (tensor.memory.size() > 0)
    std::memset(tensor.memory.data(), 0xff, static_cast<std::size_t>(tensor.memory.size()));  // NaN in the padding
  tensor.view = TensorView(tensor.memory.data(), operand.type.dtype, shape, dense_strides(padded));
  for (std::int64_t i = 0; i < shape.elements(); ++i) store(tensor.view, i, draw(operand.fill, i, random));
  return tensor;
}

bool is_rounded(DType dtype) { return dtypes::real.contains(dtype); }

/// Of float32, in which kernels compute, or of double: what one of their roundings is off by, relative.
double unit_of_rounding(DType dtype) { return dtype == DType::f64 ? 0x1p-52 : 0x1p-24; }

/// Distance between adjacent values of a type around `value`.
double unit_in_last_place(DType dtype, double value) {
  const int mantissa = dtype == DType::f64 ? 52 : dtype == DType::f32 ? 23 : dtype == DType::f16 ? 10 : 7;
  const int smallest = dtype == DType::f64 ? -1022 : dtype == DType::f16 ? -14 : -126;
  if (value == 0) return std::ldexp(1.0, smallest - mantissa);
  return std::ldexp(1.0, std::max(std::ilogb(value), smallest) - mantissa);
}

double largest(DType dtype) {
  switch (dtype) {
    case DType::f16: return 65504.0;
    case DType::bf16: return 0x1.fep127;
    case DType::f64: return 0x1.fffffffffffffp1023;
    default: return 0x1.fffffep127;
  }
}

bool real_agrees(DType dtype, double expected, double found, double bound) {
  if (std::isnan(expected) || std::isnan(found)) return std::isnan(expected) && std::isnan(found);
  if (std::isinf(expected) || std::isinf(found)) {
    if (expected == found) return true;
    return std::abs(std::isinf(found) ? expected : found) >= largest(dtype) * (1 - 0x1p-7) &&
           std::signbit(expected) == std::signbit(found);
  }
  return std::abs(expected - found) <= bound;
}

/// Position of an integer or fp8 value among the values of its type: integers are themselves; fp8 counts representable
/// values from zero.
double code_rank(DType dtype, const TensorView& view, std::int64_t i) {
  if (!dtypes::fp8.contains(dtype)) return load(view, i);
  const auto bits = view.as<const std::uint8_t>()[element_offset(view, i)];
  return bits & 0x80 ? -static_cast<double>(bits & 0x7f) : static_cast<double>(bits & 0x7f);
}

/// Integer and fp8 results are equal, bit for bit or as numbers (NaN, signed zero), or at most `slack` apart.
bool codes_agree(const TensorView& expected, const TensorView& found, std::int64_t i, double slack) {
  const std::size_t bytes = size_of(found.dtype);
  const auto* want = expected.as<const char>() + element_offset(expected, i) * static_cast<std::int64_t>(bytes);
  const auto* got = found.as<const char>() + element_offset(found, i) * static_cast<std::int64_t>(bytes);
  if (std::memcmp(want, got, bytes) == 0) return true;
  if (is_floating(found.dtype) &&
      (load(expected, i) == load(found, i) || (std::isnan(load(expected, i)) && std::isnan(load(found, i)))))
    return true;
  return slack > 0 && std::abs(code_rank(found.dtype, expected, i) - code_rank(found.dtype, found, i)) <= slack;
}

}  // namespace

double draw(const Fill& fill, std::int64_t index, std::mt19937_64& random) {
  const double unit = static_cast<double>(random() >> 11) * 0x1p-53;
  switch (fill.kind) {
    case Fill::Kind::normal: return fill.a + fill.b * standard_normal(random);
    case Fill::Kind::uniform: return fill.a + (fill.b - fill.a) * unit;
    case Fill::Kind::integers: return fill.a + std::floor(unit * (fill.b - fill.a + 1));
    case Fill::Kind::values: return fill.values[static_cast<std::size_t>(index) % fill.values.size()];
  }
  return 0;
}

CaseData make_case_data(const OpDefinition& op, const Case& test_case) {
  CaseData data;
  std::vector<std::optional<TensorType>> types;
  std::mt19937_64 random(seed_of(op.name, test_case.name));
  std::uint64_t constants = 0;
  for (std::size_t i = 0; i < test_case.inputs.size(); ++i) {
    const auto& operand = test_case.inputs[i];
    types.push_back(operand ? std::optional(operand->type) : std::nullopt);
    data.owned_inputs.push_back(operand ? make_operand(*operand, random) : OwnedTensor());
    data.inputs.push_back(data.owned_inputs.back().view);
    if (operand && operand->constant) constants |= 1ull << i;
  }
  data.problem = make_problem(op, std::move(types), test_case.attributes);
  data.problem.constant_inputs = constants;
  data.inputs.resize(data.problem.inputs.size());
  return data;
}

Expected run_reference(const CaseData& data) {
  Expected expected;
  std::vector<TensorView> views;
  for (std::size_t i = 0; i < data.problem.outputs.size(); ++i) {
    const TensorType& type = data.problem.outputs[i];
    expected.outputs.emplace_back(is_rounded(type.dtype) ? DType::f64 : type.dtype, bind(type.dims, {}));
    views.push_back(expected.outputs.back().view);
    expected.magnitude.emplace_back(static_cast<std::size_t>(views.back().elements()), 0.0);
    const auto& aliases = definition(data.problem).aliases;
    if (i < aliases.size() && aliases[i] >= 0)
      for (std::int64_t e = 0; e < views[i].elements(); ++e)
        store(views[i], e, load(data.inputs[static_cast<std::size_t>(aliases[i])], e));
  }
  definition(data.problem).reference({data.inputs, views, data.problem.attributes, &expected.magnitude});
  return expected;
}

std::string compare(const Problem& problem, const Expected& expected, const std::vector<TensorView>& outputs) {
  const OpDefinition& op = definition(problem);
  const double depth = op.rounding_depth ? op.rounding_depth(problem) : op.operations ? 8 : 0;
  for (std::size_t o = 0; o < outputs.size(); ++o) {
    const TensorView& found = outputs[o];
    for (std::int64_t i = 0; i < found.elements(); ++i) {
      const double want = load(expected.outputs[o].view, i), got = load(found, i);
      double bound = op.integer_slack;
      bool agrees = true;
      if (is_rounded(found.dtype) || (found.dtype == DType::f64 && op.rounding_depth)) {
        const double recorded = expected.magnitude[o][static_cast<std::size_t>(i)];
        const double magnitude = recorded != 0 ? recorded : std::abs(want);
        bound = 0.5 * unit_in_last_place(found.dtype, want) * (1 + 0x1p-10) +
                depth * unit_of_rounding(found.dtype) * magnitude + unit_in_last_place(found.dtype, 0);
        agrees = real_agrees(found.dtype, want, got, bound);
      } else {
        agrees = codes_agree(expected.outputs[o].view, found, i, bound);
      }
      if (!agrees)
        return fmt::format("output {} ({}), element {}: expected {}, found {}, bound {}", o,
                           op.outputs[std::min(o, op.outputs.size() - 1)].name, i, want, got, bound);
    }
  }
  return "";
}

}  // namespace cermet
