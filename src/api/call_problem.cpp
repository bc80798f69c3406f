#include "api/call_problem.hpp"

#include <algorithm>

#include "api/schema.hpp"
#include "base/text.hpp"
#include "op/schema/operator.hpp"

namespace cermet::api {
namespace {

constexpr std::size_t most_attributes = 64;  // no operator has as many

constexpr std::int64_t largest_maximum = (std::int64_t{1} << 31) - 1;  // kernels count rows in 32 bits

/// A dimension of a descriptor: a number, or -'A' to -'Z' for a symbol. Other negative numbers are rejected by the
/// operator.
Dim dim_of(std::int64_t value, std::span<const Range> ranges, std::string_view op, std::size_t input) {
  if (value < -'Z' || value > -'A') return value;
  const char letter = static_cast<char>(-value);
  const bool known = std::any_of(ranges.begin(), ranges.end(), [&](const Range& r) { return r.letter == letter; });
  require(known, "{}: input {}: expected a range for dimension {}, found none", op, input, letter);
  return Dim::symbol({&letter, 1});
}

/// A descriptor's type; nothing for an operand that is not given.
std::optional<TensorType> type_of(const cermet_descriptor& d, std::span<const Range> ranges, std::string_view op,
                                  std::size_t i) {
  if (!d.dtype) return std::nullopt;
  const auto dtype = dtype_from_name(d.dtype);
  require(dtype.has_value(), "{}: input {}: expected {}, found {}", op, i, dtypes::all.to_string(), quote(d.dtype));
  require(d.ndim >= 0 && d.ndim <= Shape::max_rank, "{}: input {}: expected 0 to {} dimensions, found {}", op, i,
          Shape::max_rank, d.ndim);
  require(d.ndim == 0 || d.shape, "{}: input {}: expected a shape, found NULL", op, i);
  TensorType type{*dtype, {}};
  for (int axis = 0; axis < d.ndim; ++axis) type.dims.push_back(dim_of(d.shape[axis], ranges, op, i));
  require(!d.is_constant || type.is_constant(), "{}: input {}: expected known dimensions of a constant, found {}", op,
          i, type.to_string());
  return type;
}

AttributeValue value_of(const cermet_attribute& a, std::string_view op) {
  switch (a.kind) {
    case CERMET_BOOL: return a.integer != 0;
    case CERMET_INT: return a.integer;
    case CERMET_FLOAT: return a.number;
    case CERMET_STRING:
      require(a.string, "{}: attribute '{}': expected a string, found NULL", op, a.name);
      return std::string(a.string);
    case CERMET_INTS:
      require(a.integers || a.count == 0, "{}: attribute '{}': expected integers, found NULL", op, a.name);
      return Ints(a.integers, a.integers + a.count);
    case CERMET_FLOATS:
      require(a.numbers || a.count == 0, "{}: attribute '{}': expected numbers, found NULL", op, a.name);
      return Floats(a.numbers, a.numbers + a.count);
    case CERMET_STRINGS: {
      Strings list;
      for (std::size_t i = 0; i < a.count; ++i) {
        require(a.strings && a.strings[i], "{}: attribute '{}': expected strings, found NULL", op, a.name);
        list.emplace_back(a.strings[i]);
      }
      return list;
    }
  }
  fail(Status::invalid_argument, "{}: attribute '{}': expected a kind of cermet_attribute_kind, found {}", op, a.name,
       static_cast<int>(a.kind));
}

/// Finds the operand and axis that give each symbol's value in a run.
void find_sources(const Problem& p, std::vector<Range>& ranges) {
  for (Range& range : ranges) {
    bool found = false;
    for (std::size_t i = 0; i < p.inputs.size() && !found; ++i) {
      if (!p.has(i)) continue;
      const Dims& dims = p.input(i).dims;
      const auto at = std::find_if(dims.begin(), dims.end(), [&](const Dim& d) { return d.is(range.symbol); });
      found = at != dims.end();
      if (found) range.input = i, range.axis = static_cast<int>(at - dims.begin());
    }
    require(found, "{}: range {}: expected it among the operands' dimensions, found it in none", p.op->name,
            range.letter);
  }
}

}  // namespace

std::vector<Range> ranges_of(std::span<const cermet_range> ranges, std::string_view op) {
  std::vector<Range> list;
  require(ranges.size() <= 26, "{}: expected at most 26 ranges, found {}", op, ranges.size());
  for (const cermet_range& r : ranges) {
    require(r.symbol >= 'A' && r.symbol <= 'Z', "{}: range {}: expected a symbol from 'A' to 'Z', found {}", op,
            list.size(), quote(std::string_view(&r.symbol, 1)));
    require(r.maximum >= 1 && r.maximum <= largest_maximum, "{}: range {}: expected a maximum of 1 to {}, found {}", op,
            r.symbol, largest_maximum, r.maximum);
    for (const Range& other : list)
      require(other.letter != r.symbol, "{}: range {}: expected it once, found it twice", op, r.symbol);
    list.push_back({r.symbol, Symbol({&r.symbol, 1}), r.maximum});
  }
  return list;
}

Attributes attributes_of(std::span<const cermet_attribute> list, const OpDefinition& definition) {
  const std::string_view op = definition.name;
  require(list.size() <= most_attributes, "{}: expected at most {} attributes, found {}", op, most_attributes,
          list.size());  // before one is read
  Attributes attributes;
  for (const cermet_attribute& a : list) {
    require(a.name, "{}: attributes: expected a name, found NULL", op);
    require(!attributes.find(a.name), "{}: attribute '{}': expected it once, found it twice", op, a.name);
    attributes.set(a.name, value_of(a, op));
  }
  return attributes;
}

Problem problem_of(const OpDefinition& op, std::vector<std::optional<TensorType>> types, const Attributes& attributes,
                   std::uint64_t constant_inputs, std::vector<Range>& ranges) {
  Problem problem = make_problem(op, std::move(types), attributes);
  for (const Range& range : ranges) problem.maximum.set(range.symbol, range.maximum);
  const auto check_size = [&](const TensorType& type, std::string_view what, std::size_t i) {
    try {
      TensorType{type.dtype, to_dims(cermet::bind(type.dims, problem.maximum))}.bytes();
    } catch (const Error&) {
      fail(Status::invalid_argument, "{}: {} {}: expected fewer than 2^63 bytes, found {}", op.name, what, i,
           type.to_string());
    }
  };
  for (std::size_t i = 0; i < problem.inputs.size(); ++i)
    if (problem.has(i)) check_size(problem.input(i), "operand", i);
  for (std::size_t i = 0; i < problem.outputs.size(); ++i) check_size(problem.outputs[i], "result", i);
  problem.constant_inputs = constant_inputs;
  find_sources(problem, ranges);
  return problem;
}

Problem problem_of(std::string_view name, std::span<const cermet_descriptor> inputs, const Attributes& attributes,
                   std::vector<Range>& ranges) {
  const OpDefinition& op = operator_named(name);
  std::vector<std::optional<TensorType>> types;
  std::uint64_t constant_inputs = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    types.push_back(type_of(inputs[i], ranges, op.name, i));
    if (i < 64 && inputs[i].dtype && inputs[i].is_constant) constant_inputs |= std::uint64_t{1} << i;
  }
  return problem_of(op, std::move(types), attributes, constant_inputs, ranges);
}

}  // namespace cermet::api
