#include "op/schema/infer.hpp"

namespace cermet {

void bad_operand(const Problem& problem, std::size_t operand, std::string_view expected, std::string_view found) {
  fail(Status::invalid_argument, "{}: operand {} ({}): expected {}, found {}", problem.op->name, operand,
       problem.input_name(operand), expected, found);
}

void bad_attribute(const Problem& problem, std::string_view name, std::string_view expected) {
  fail(Status::invalid_argument, "{}: attribute '{}': expected {}, found {}", problem.op->name, name, expected,
       to_string(*problem.attributes.find(name)));
}

void expect_rank(const Problem& problem, std::size_t operand, int rank) {
  const TensorType& type = problem.input(operand);
  if (type.rank() != rank) bad_operand(problem, operand, fmt::format("{} dimensions", rank), type.to_string());
}

void expect_min_rank(const Problem& problem, std::size_t operand, int rank) {
  const TensorType& type = problem.input(operand);
  if (type.rank() < rank) bad_operand(problem, operand, fmt::format("at least {} dimensions", rank), type.to_string());
}

Dim dim_of(const Problem& problem, std::size_t operand, int axis) {
  const TensorType& type = problem.input(operand);
  if (axis < 0) axis += type.rank();
  CERMET_ASSERT(axis >= 0 && axis < type.rank());
  return type.dims[static_cast<std::size_t>(axis)];
}

void expect_dim(const Problem& problem, std::size_t operand, int axis, const Dim& dim, std::string_view meaning) {
  if (dim_of(problem, operand, axis) == dim) return;
  bad_operand(problem, operand, fmt::format("dimension {} to be {} ({})", axis, dim.to_string(), meaning),
              problem.input(operand).to_string());
}

void expect_dims(const Problem& problem, std::size_t operand, const Dims& dims, std::string_view meaning) {
  if (problem.input(operand).dims == dims) return;
  bad_operand(problem, operand, fmt::format("dimensions {} ({})", to_string(dims), meaning),
              problem.input(operand).to_string());
}

void expect_dtype(const Problem& problem, std::size_t operand, DType dtype, std::string_view meaning) {
  if (problem.input(operand).dtype == dtype) return;
  bad_operand(problem, operand, fmt::format("{} ({})", name_of(dtype), meaning), name_of(problem.input(operand).dtype));
}

DType dtype_attribute(const Problem& problem, std::string_view name, DType fallback, DTypeSet allowed) {
  const std::string& text = problem.attributes.text(name);
  if (text.empty()) return fallback;
  const auto dtype = dtype_from_name(text);
  if (!dtype || !allowed.contains(*dtype)) bad_attribute(problem, name, allowed.to_string());
  return *dtype;
}

Dims broadcast_dims(const Problem& problem, std::size_t first, std::size_t second) {
  return broadcast_dims(problem, problem.input(first).dims, second);
}

Dims broadcast_dims(const Problem& problem, const Dims& dims, std::size_t operand) {
  const Dims& b = problem.input(operand).dims;
  Dims out = dims.size() >= b.size() ? dims : b;
  const Dims& shorter = dims.size() >= b.size() ? b : dims;
  for (std::size_t i = 0; i < shorter.size(); ++i) {
    Dim& d = out[out.size() - shorter.size() + i];
    if (d == Dim(1)) d = shorter[i];
    else if (shorter[i] != Dim(1) && shorter[i] != d)
      bad_operand(problem, operand, fmt::format("dimensions that broadcast with {}", to_string(dims)), to_string(b));
  }
  return out;
}

}  // namespace cermet
