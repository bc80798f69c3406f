// Operators on a handful of integers that depend on sizes: what exporters leave between Shape and Reshape.
#include <algorithm>
#include <functional>

#include "onnx/importer.hpp"
#include "op/operator.hpp"
#include "op/reference.hpp"

namespace cermet::onnx {
namespace {

using Value = std::pair<TensorType, Dims>;

bool is_zero(const Dim& d) { return d.is_constant() && d.constant() == 0; }

/// 1 or 0 where sizes in their ranges decide, nothing where they do not.
std::optional<bool> equals(const Dim& a, const Dim& b, const SymbolRanges& ranges) {
  const Dim difference = a - b;
  if (difference.is_constant()) return difference.constant() == 0;
  const DimRange range = difference.bounds(ranges);
  if (range.least > 0 || range.greatest < 0) return false;
  return {};
}

std::optional<bool> is_less(const Dim& a, const Dim& b, const SymbolRanges& ranges) {
  const DimRange range = (b - a).bounds(ranges);
  if (range.least > 0) return true;
  if (range.greatest <= 0) return false;
  return {};
}

std::optional<Dim> binary(OpKind kind, const Dim& a, const Dim& b, const SymbolRanges& ranges) {
  switch (kind) {
    case OpKind::add: return a + b;
    case OpKind::sub: return a - b;
    case OpKind::mul: return a * b;
    case OpKind::max: return dim_max(a, b);
    case OpKind::min: return dim_min(a, b);
    case OpKind::div:
      if (!b.is_constant() || b.constant() <= 0 || a.bounds(ranges).least < 0) return exact_quotient(a, b);
      return floor_div(a, b);
    case OpKind::equal:
      if (const auto known = equals(a, b, ranges)) return Dim(*known ? 1 : 0);
      return {};
    case OpKind::less:
      if (const auto known = is_less(a, b, ranges)) return Dim(*known ? 1 : 0);
      return {};
    case OpKind::greater:
      if (const auto known = is_less(b, a, ranges)) return Dim(*known ? 1 : 0);
      return {};
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

std::optional<Dims> elementwise(OpKind kind, const std::vector<Value>& operands, const TensorType& result, const SymbolRanges& ranges) {
  Dims elements;
  const std::int64_t count = result.elements().constant();
  for (std::int64_t i = 0; i < count; ++i) {
    const auto at = [&](std::size_t o) { return operands[o].second[broadcast_index(operands[o].first, result, i)]; };
    std::optional<Dim> value;
    if (kind == OpKind::where) {
      const Dim condition = at(0);
      if (condition.is_constant()) value = is_zero(condition) ? at(2) : at(1);
    } else {
      value = binary(kind, at(0), at(1), ranges);
    }
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
  for (std::size_t o = 0; o < operands.size(); ++o) from.emplace_back(positions[o].data(), DType::i64, cermet::bind(operands[o].first.dims, {}));
  result[0].resize(static_cast<std::size_t>(problem.outputs[0].elements().constant()));
  const TensorView to(result[0].data(), DType::i64, cermet::bind(problem.outputs[0].dims, {}));
  op.reference(ReferenceCall{from, std::span(&to, 1), problem.attributes});
  Dims elements;
  for (const std::int64_t at : result[0]) elements.push_back(all[static_cast<std::size_t>(at)]);
  return elements;
}

}  // namespace

std::optional<std::vector<std::pair<TensorType, Dims>>> shape_arithmetic(OpKind kind, const std::vector<std::pair<TensorType, Dims>>& operands,
                                                                         const Attributes& attributes, const SymbolRanges& ranges) {
  const OpDefinition& op = definition(kind);
  const auto one = [](TensorType type, Dims elements) { return std::optional(std::vector<Value>{{std::move(type), std::move(elements)}}); };
  std::vector<std::optional<TensorType>> types;
  for (const auto& [type, elements] : operands) types.emplace_back(TensorType{type.dtype, type.dims});
  switch (kind) {
    case OpKind::cast: {
      const Problem problem = make_problem(op, types, attributes);
      const DType to = problem.outputs[0].dtype;
      if (!is_integer(to)) return {};
      for (const Dim& d : operands[0].second)
        if (!holds(to, d.bounds(ranges))) return {};  // it would lose its high bits
      return one(problem.outputs[0], operands[0].second);
    }
    case OpKind::add:
    case OpKind::sub:
    case OpKind::mul:
    case OpKind::div:
    case OpKind::max:
    case OpKind::min:
    case OpKind::equal:
    case OpKind::less:
    case OpKind::greater:
    case OpKind::where: {
      if (kind == OpKind::div) types = {types[0], types[1]};
      const Problem problem = make_problem(definition(kind == OpKind::div ? OpKind::sub : kind), types, attributes);
      const auto elements = elementwise(kind, operands, problem.outputs[0], ranges);
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
      const auto elements = moved(op, problem, operands);
      if (!elements) return {};
      return one(problem.outputs[0], *elements);
    }
    case OpKind::reduce_prod: {
      const Problem problem = make_problem(op, types, attributes);
      if (problem.outputs[0].elements() != Dim(1)) return {};
      Dim result = 1;
      for (const Dim& d : operands[0].second) result = result * d;
      return one(problem.outputs[0], {result});
    }
    default: return {};
  }
}

}  // namespace cermet::onnx
