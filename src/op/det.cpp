#include <vector>

#include "op/schema/infer.hpp"
#include "op/schema/operator.hpp"
#include "op/schema/reference.hpp"

namespace cermet::det_op {
namespace {

std::vector<TensorType> infer(const Problem& p) {
  expect_min_rank(p, 0, 2);
  expect_dim(p, 0, p.input(0).rank() - 1, dim_of(p, 0, -2), "that of a square matrix");
  const TensorType& x = p.input(0);
  return {{x.dtype, Dims(x.dims.begin(), x.dims.end() - 2)}};
}

/// Gaussian elimination with partial pivoting, in float64.
double determinant(std::vector<double>& a, std::int64_t n) {
  const auto at = [&](std::int64_t i, std::int64_t j) -> double& { return a[static_cast<std::size_t>(i * n + j)]; };
  double product = 1;
  for (std::int64_t k = 0; k < n; ++k) {
    std::int64_t pivot = k;
    for (std::int64_t i = k + 1; i < n; ++i)
      if (std::abs(at(i, k)) > std::abs(at(pivot, k))) pivot = i;
    product *= pivot == k ? at(k, k) : -at(pivot, k);
    if (product == 0) return 0;
    for (std::int64_t j = k; j < n; ++j) std::swap(at(k, j), at(pivot, j));
    for (std::int64_t i = k + 1; i < n; ++i) {
      const double factor = at(i, k) / at(k, k);
      for (std::int64_t j = k + 1; j < n; ++j) at(i, j) = at(i, j) - factor * at(k, j);
    }
  }
  return product;
}

void reference(const ReferenceCall& call) {
  const TensorView& x = call.inputs[0];
  const std::int64_t n = x.shape.back(), size = n * n;
  for (std::int64_t m = 0; m < call.outputs[0].elements(); ++m) {
    std::vector<double> matrix(static_cast<std::size_t>(size));
    for (std::int64_t i = 0; i < size; ++i) matrix[static_cast<std::size_t>(i)] = load(x, m * size + i);
    store(call.outputs[0], m, determinant(matrix, n));
  }
}

std::vector<Case> cases() {
  std::vector<Case> list;
  for (DType t : {DType::f32, DType::bf16, DType::f16, DType::f64})
    for (std::int64_t n : {1, 2, 3, 8, 17})
      list.push_back({fmt::format("{}_{}", name_of(t), n), {CaseOperand{{t, {3, n, n}}, normal(0.5)}}});
  list.push_back({"one_matrix", {CaseOperand{{DType::f32, {40, 40}}, normal(0.3)}}});
  list.push_back({"two_batches", {CaseOperand{{DType::f32, {2, 3, 4, 4}}}}});
  list.push_back({"many", {CaseOperand{{DType::f32, {300, 5, 5}}}}});
  list.push_back({"strided", {CaseOperand{{DType::f32, {3, 5, 5}}, normal(), 3}}});
  list.push_back({"singular", {CaseOperand{{DType::f32, {3, 3}}, values({1, 2, 3, 2, 4, 6, 1, 0, 1})}}});
  list.push_back({"zero_pivot", {CaseOperand{{DType::f32, {3, 3}}, values({0, 2, 0, 0, 0, 3, 4, 0, 0})}}});
  list.push_back({"not_a_number", {CaseOperand{{DType::f32, {2, 2, 2}}, values({1, 2, NAN, 4, 1, 2, 3, 5})}}});
  list.push_back({"no_rows", {CaseOperand{{DType::f32, {2, 0, 0}}}}});
  list.push_back({"no_matrices", {CaseOperand{{DType::f32, {0, 3, 3}}}}});
  return list;
}

}  // namespace

OpSpec define() {
  const DTypeSet types = dtypes::real | DTypeSet{DType::f64};
  return {
      .category = "Linear algebra",
      .summary = "Determinants of square matrices",
      .semantics =
          "y[..] is the determinant of x[.., :, :]: the product of the pivots of Gaussian elimination, where each "
          "pivot is the first of its column whose "
          "absolute value is "
          "largest, with the sign of the exchanges of rows. Computed in float64 and rounded once; that of an empty "
          "matrix is 1.",
      .inputs = {{"x", types, "[.., N, N]", "matrices", Mapping::barrier}},
      .outputs = {{"y", types, "[..]", "determinants"}},
      .infer = infer,
      .reference = reference,
      .operations =
          [](const Problem& p) {
            const double n = static_cast<double>(p.size(0, -1));
            return static_cast<double>(p.outputs[0].elements().value(p.maximum)) * n * n * n * 2 / 3;
          },
      .rounding_depth = [](const Problem&) { return 0.0; },
      .cases = cases,
  };
}

}  // namespace cermet::det_op
