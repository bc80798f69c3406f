// Operators on a handful of integers that depend on sizes: what exporters leave between Shape and Reshape.
#include <algorithm>
#include <functional>

#include "onnx/importer.hpp"
#include "op/schema/operator.hpp"
#include "op/schema/reference.hpp"

namespace cermet::onnx {
namespace {

using Value = std::pair<TensorType, Dims>;

constexpr std::int64_t most_elements = 1024;  ///< of a result; more are no shape

bool is_zero(const Dim& d) { return d.is_constant() && d.constant() == 0; }

std::optional<Dim> truth(std::optional<bool> known) {
  return known ? std::optional(Dim(*known ? 1 : 0)) : std::nullopt;
}
std::optional<bool> opposite(std::optional<bool> known) { return known ? std::optional(!*known) : std::nullopt; }

/// Of integers, and of whole numbers in a floating type.
std::optional<Dim> unary(OpKind kind, const Dim& x, const SymbolRanges& ranges) {
  switch (kind) {
    case OpKind::neg: return x * -1;
    case OpKind::abs: return greatest_of(x, x * -1, ranges);
    case OpKind::relu: return greatest_of(x, 0, ranges);
    case OpKind::square: return x * x;
    case OpKind::logical_not: return 1 - x;
    case OpKind::floor:
    case OpKind::ceil:
    case OpKind::round: return x;
    default: return {};
  }
}

std::optional<Dim> binary(OpKind kind, DType dtype, const Dim& a, const Dim& b, const SymbolRanges& ranges) {
  switch (kind) {
    case OpKind::add: return a + b;
    case OpKind::sub: return a - b;
    case OpKind::mul: return a * b;
    case OpKind::max: return greatest_of(a, b, ranges);
    case OpKind::min: return least_of(a, b, ranges);
    case OpKind::div:
      if (is_floating(dtype) || !b.is_constant() || b.constant() <= 0 || a.bounds(ranges).least < 0)
        return exact_quotient(a, b);
      return floor_div(a, b);
    case OpKind::mod:
      if (!b.is_constant() || b.constant() <= 0) return {};
      return a - floor_div(a, b) * b;
    case OpKind::equal: return truth(equals(a, b, ranges));
    case OpKind::not_equal: return truth(opposite(equals(a, b, ranges)));
    case OpKind::less: return truth(is_less(a, b, ranges));
    case OpKind::greater: return truth(is_less(b, a, ranges));
    case OpKind::less_equal: return truth(opposite(is_less(b, a, ranges)));
    case OpKind::greater_equal: return truth(opposite(is_less(a, b, ranges)));
    case OpKind::logical_and: return least_of(a, b, ranges);  // of 0 and 1
    case OpKind::logical_or: return greatest_of(a, b, ranges);
    default: return {};
  }
}

/// Row-major index into an operand that broadcasts to the result.
std::size_t broadcast_index(const TensorType& type, const TensorType& result, std::int64_t index) {
  std::int64_t at = 0, step = 1;
  for (int a = result.rank() - 1, o = type.rank() - 1; a >= 0; --a, --o) {
    const std::int64_t size = result.dims[static_cast<std::size_t>(a)].constant();
    if (o >= 0) {
      const std::int64_t own = type.dims[static_cast<std::size_t>(o)].constant();
      at += (own == 1 ? 0 : index % size) * step;
      step *= own;
    }
    index /= size;
  }
  return static_cast<std::size_t>(at);
}

/// Whether an integer type has all numbers of a range; i64 has those of every size.
bool holds(DType dtype, const DimRange& range) {
  const int bits = static_cast<int>(size_of(dtype)) * 8;
  if (bits == 64) return dtype == DType::i64 || range.least >= 0;
  const bool is_natural = dtype == DType::u8 || dtype == DType::u16 || dtype == DType::u32;
  const std::int64_t most = std::int64_t{1} << (is_natural ? bits : bits - 1);
  return range.least >= (is_natural ? 0 : -most) && range.greatest < most;
}

bool compares(OpKind kind) {
  return kind == OpKind::equal || kind == OpKind::not_equal || kind == OpKind::less || kind == OpKind::less_equal ||
         kind == OpKind::greater || kind == OpKind::greater_equal;
}

std::optional<Dims> elementwise(OpKind kind, const std::vector<Value>& operands, const TensorType& result,
                                const SymbolRanges& ranges, std::optional<Dim>& undecided) {
  Dims elements;
  const std::int64_t count = result.elements().constant();
  for (std::int64_t i = 0; i < count; ++i) {
    const auto at = [&](std::size_t o) { return operands[o].second[broadcast_index(operands[o].first, result, i)]; };
    std::optional<Dim> value;
    if (kind == OpKind::where) {
      const Dim condition = at(0);
      if (condition.is_constant()) value = is_zero(condition) ? at(2) : at(1);
    } else {
      value = operands.size() == 1 ? unary(kind, at(0), ranges)
                                   : binary(kind, operands[0].first.dtype, at(0), at(1), ranges);
    }
    if (!value && compares(kind)) undecided = at(0) - at(1);
    if (!value) return {};
    elements.push_back(*value);
  }
  return elements;
}

/// Operators that move elements: the definition is run on their positions.
std::optional<Dims> moved(const OpDefinition& op, const Problem& problem, const std::vector<Value>& operands) {
  std::vector<std::vector<std::int64_t>> positions, result(1);
  std::vector<TensorView> from;
  Dims all;
  for (std::size_t o = 0; o < operands.size(); ++o) {
    std::vector<std::int64_t>& list = positions.emplace_back();
    for (const Dim& d : operands[o].second) {
      if (op.kind == OpKind::gather && o == 1) {
        if (!d.is_constant()) return {};
        list.push_back(d.constant());
      } else {
        list.push_back(static_cast<std::int64_t>(all.size()));
        all.push_back(d);
      }
    }
  }
  for (std::size_t o = 0; o < operands.size(); ++o)
    from.emplace_back(positions[o].data(), DType::i64, cermet::bind(operands[o].first.dims, {}));
  result[0].resize(static_cast<std::size_t>(problem.outputs[0].elements().constant()));
  const TensorView to(result[0].data(), DType::i64, cermet::bind(problem.outputs[0].dims, {}));
  op.reference(ReferenceCall{from, std::span(&to, 1), problem.attributes});
  Dims elements;
  for (const std::int64_t at : result[0]) elements.push_back(all[static_cast<std::size_t>(at)]);
  return elements;
}

}  // namespace

std::optional<std::vector<std::pair<TensorType, Dims>>> shape_arithmetic(
    OpKind kind, const std::vector<std::pair<TensorType, Dims>>& operands, const Attributes& attributes,
    const SymbolRanges& ranges, std::optional<Dim>& undecided) {
  const OpDefinition& op = definition(kind);
  const auto one = [](TensorType type, Dims elements) {
    return std::optional(std::vector<Value>{{std::move(type), std::move(elements)}});
  };
  std::vector<std::optional<TensorType>> types;
  for (const auto& [type, elements] : operands) types.emplace_back(TensorType{type.dtype, type.dims});
  switch (kind) {
    case OpKind::cast: {
      const Problem problem = make_problem(op, types, attributes);
      const DType to = problem.outputs[0].dtype;
      if (!is_integer(to) && to != DType::f32 && to != DType::f64) return {};
      for (const Dim& d : operands[0].second)
        if (is_integer(to) && !holds(to, d.bounds(ranges))) return {};  // it would lose its high bits
      return one(problem.outputs[0], operands[0].second);
    }
    case OpKind::neg:
    case OpKind::abs:
    case OpKind::relu:
    case OpKind::square:
    case OpKind::floor:
    case OpKind::ceil:
    case OpKind::round:
    case OpKind::logical_not:
    case OpKind::add:
    case OpKind::sub:
    case OpKind::mul:
    case OpKind::div:
    case OpKind::max:
    case OpKind::min:
    case OpKind::mod:
    case OpKind::equal:
    case OpKind::not_equal:
    case OpKind::less:
    case OpKind::less_equal:
    case OpKind::greater:
    case OpKind::greater_equal:
    case OpKind::logical_and:
    case OpKind::logical_or:
    case OpKind::where: {
      const Problem problem = make_problem(op, types, attributes);
      const auto elements = elementwise(kind, operands, problem.outputs[0], ranges, undecided);
      if (!elements) return {};
      return one(problem.outputs[0], *elements);
    }
    case OpKind::concat:
    case OpKind::slice:
    case OpKind::gather:
    case OpKind::reshape:
    case OpKind::transpose:
    case OpKind::expand: {
      const Problem problem = make_problem(op, types, attributes);
      if (const Dim count = problem.outputs[0].elements(); !count.is_constant() || count.constant() > most_elements)
        return {};
      const auto elements = moved(op, problem, operands);
      if (!elements) return {};
      return one(problem.outputs[0], *elements);
    }
    case OpKind::reduce_sum:
    case OpKind::reduce_max:
    case OpKind::reduce_min:
    case OpKind::reduce_prod: {
      const Problem problem = make_problem(op, types, attributes);
      if (problem.outputs[0].elements() != Dim(1) || operands[0].second.empty()) return {};
      Dim result = operands[0].second[0];
      for (std::size_t i = 1; i < operands[0].second.size(); ++i) {
        const Dim& d = operands[0].second[i];
        if (kind == OpKind::reduce_sum) result = result + d;
        else if (kind == OpKind::reduce_prod) result = result * d;
        else result = kind == OpKind::reduce_max ? greatest_of(result, d, ranges) : least_of(result, d, ranges);
      }
      return one(problem.outputs[0], {result});
    }
    default: return {};
  }
}

}  // namespace cermet::onnx
