#include <cstring>

#include "op/products.hpp"
#include "op/schema/operator.hpp"

namespace cermet::matmul_op {
namespace {

/// Types whose products are of one type: integers wrap, f64 is summed in double.
constexpr DTypeSet unmixed{DType::f64, DType::i32, DType::u32, DType::i64, DType::u64};

/// Rows, columns and reduction of both operands, transposition undone.
struct MatmulDims {
  Dim m, n, k;
};

MatmulDims matmul_dims(const Problem& p) {
  const bool ta = p.attributes.flag("transpose_a"), tb = p.attributes.flag("transpose_b");
  MatmulDims dims{dim_of(p, 0, ta ? -1 : -2), dim_of(p, 1, tb ? -2 : -1), dim_of(p, 0, ta ? -2 : -1)};
  expect_dim(p, 1, tb ? -1 : -2, dims.k, "K of a");
  return dims;
}

std::vector<TensorType> infer(const Problem& p) {
  expect_min_rank(p, 0, 2);
  expect_min_rank(p, 1, 2);
  const MatmulDims dims = matmul_dims(p);
  Problem leading = p;
  for (std::size_t i : {0, 1}) leading.inputs[i]->dims.resize(leading.inputs[i]->dims.size() - 2);
  Dims y = broadcast_dims(leading, 0, 1);
  y.push_back(dims.m);
  y.push_back(dims.n);
  const DType a = p.input(0).dtype, b = p.input(1).dtype;
  if (unmixed.contains(a) || unmixed.contains(b)) {
    expect_dtype(p, 1, a, "that of a");
    if (!p.attributes.text("out_dtype").empty())
      bad_attribute(p, "out_dtype", fmt::format("nothing for operands of type {}", name_of(a)));
  }
  return {{dtype_attribute(p, "out_dtype", a, dtypes::real), y}};
}

/// Sum of products of integers, of which the low bits are stored.
std::uint64_t whole_product(const std::byte* a, const std::byte* b, std::size_t bytes, std::int64_t length,
                            std::int64_t a_step, std::int64_t b_step) {
  const auto bits = [bytes](const std::byte* data, std::int64_t index) {
    std::uint64_t value = 0;
    std::memcpy(&value, data + index * static_cast<std::int64_t>(bytes), bytes);
    return value;
  };
  std::uint64_t sum = 0;
  for (std::int64_t k = 0; k < length; ++k) sum += bits(a, k * a_step) * bits(b, k * b_step);
  return sum;
}

void reference(const ReferenceCall& call) {
  const TensorView &a = call.inputs[0], &b = call.inputs[1], &y = call.outputs[0];
  if (y.elements() == 0) return;
  const MatrixBatch left(a, call.attributes.flag("transpose_a"), y), right(b, !call.attributes.flag("transpose_b"), y);
  const std::int64_t rows = y.shape[y.shape.rank() - 2], columns = y.shape.back();
  for (std::int64_t batch = 0; batch < left.count(); ++batch)
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t n = 0; n < columns; ++n) {
        const std::byte *x = left.at(batch, r), *w = right.at(batch, n);
        if (is_integer(y.dtype)) {
          const std::uint64_t sum =
              whole_product(x, w, size_of(y.dtype), left.length, left.length_step, right.length_step);
          const auto bytes = byte_size(y.dtype);
          std::memcpy(y.as<std::byte>() + element_offset(y, (batch * rows + r) * columns + n) * bytes, &sum,
                      static_cast<std::size_t>(bytes));
          continue;
        }
        const DotProduct dot = dot_product(x, a.dtype, w, b.dtype, left.length, left.length_step, right.length_step);
        store(y, (batch * rows + r) * columns + n, dot.sum);
        note_magnitude(call, 0, (batch * rows + r) * columns + n, dot.magnitude);
      }
}

std::vector<Case> cases() {
  constexpr DType real[] = {DType::f32, DType::bf16, DType::f16};
  std::vector<Case> list;
  for (const DType a : real)
    for (const DType b : real)
      list.push_back(
          {fmt::format("{}_{}", name_of(a), name_of(b)), {CaseOperand{{a, {17, 65}}}, CaseOperand{{b, {65, 35}}}}});
  for (const bool ta : {false, true})
    for (const bool tb : {false, true})
      for (const std::int64_t m : {1, 20}) {
        const Dims a = ta ? Dims{2, 33, m} : Dims{2, m, 33}, b = tb ? Dims{2, 41, 33} : Dims{2, 33, 41};
        list.push_back({fmt::format("transpose_{}{}_m{}", ta ? "a" : "", tb ? "b" : "", m),
                        {CaseOperand{{DType::f32, a}, normal(), 3}, CaseOperand{{DType::bf16, b}, normal(), 5}},
                        {{"transpose_a", ta}, {"transpose_b", tb}, {"out_dtype", "f32"}}});
      }
  for (const bool ta : {false, true})
    for (const bool tb : {false, true})
      list.push_back({fmt::format("bf16_transpose_{}{}", ta ? "a" : "", tb ? "b" : ""),
                      {CaseOperand{{DType::bf16, ta ? Dims{2, 67, 50} : Dims{2, 50, 67}}, normal(), 3},
                       CaseOperand{{DType::bf16, tb ? Dims{2, 41, 67} : Dims{2, 67, 41}}, normal(), 5}},
                      {{"transpose_a", ta}, {"transpose_b", tb}, {"out_dtype", "f32"}}});
  for (const DType t : {DType::f64, DType::i32, DType::u32, DType::i64, DType::u64}) {
    const Fill fill = t == DType::f64                      ? normal()
                      : t == DType::u64 || t == DType::u32 ? integers(0, 4000000000)
                                                           : integers(-2000000000, 2000000000);
    const auto add = [&](std::string name, Dims a, Dims b, Attributes attributes = {}, std::int64_t padding = 0) {
      list.push_back({fmt::format("{}_{}", name_of(t), name),
                      {CaseOperand{{t, a}, fill, padding}, CaseOperand{{t, b}, fill, padding}},
                      std::move(attributes)});
    };
    add("both", {17, 65}, {65, 300});
    add("transposed", {2, 33, 5}, {2, 41, 33}, {{"transpose_a", true}, {"transpose_b", true}}, 3);
    add("broadcast", {4, 1, 5, 8}, {3, 8, 6});
    add("no_reduction", {3, 0}, {0, 4});
  }
  list.push_back({"broadcast_b", {CaseOperand{{DType::f32, {2, 3, 5, 8}}}, CaseOperand{{DType::f32, {8, 6}}}}});
  list.push_back({"broadcast_a", {CaseOperand{{DType::f32, {5, 8}}}, CaseOperand{{DType::f32, {3, 8, 6}}}}});
  list.push_back({"broadcast_both", {CaseOperand{{DType::f32, {4, 1, 5, 8}}}, CaseOperand{{DType::f32, {3, 8, 6}}}}});
  list.push_back(
      {"broadcast_ones", {CaseOperand{{DType::f32, {2, 1, 5, 8}}}, CaseOperand{{DType::f32, {1, 1, 8, 6}}}}});
  list.push_back({"many_batches",
                  {CaseOperand{{DType::bf16, {9, 3, 16}}}, CaseOperand{{DType::bf16, {9, 16, 33}}}},
                  {{"out_dtype", "f16"}}});
  list.push_back({"constant_b", {CaseOperand{{DType::f32, {3, 40}}}, {{{DType::f32, {40, 33}}, normal(), 0, true}}}});
  list.push_back({"long", {CaseOperand{{DType::f32, {2, 3001}}}, CaseOperand{{DType::f32, {3001, 3}}}}});
  list.push_back({"tiles",
                  {CaseOperand{{DType::bf16, {2, 70, 192}}}, CaseOperand{{DType::bf16, {2, 136, 192}}}},
                  {{"transpose_b", true}}});
  list.push_back({"no_rows", {CaseOperand{{DType::f32, {0, 16}}}, CaseOperand{{DType::f32, {16, 3}}}}});
  list.push_back({"no_columns", {CaseOperand{{DType::f32, {3, 16}}}, CaseOperand{{DType::f32, {16, 0}}}}});
  list.push_back({"no_reduction", {CaseOperand{{DType::f32, {3, 0}}}, CaseOperand{{DType::f32, {0, 4}}}}});
  list.push_back({"no_batches", {CaseOperand{{DType::f32, {0, 3, 4}}}, CaseOperand{{DType::f32, {4, 4}}}}});
  list.push_back(
      {"nan", {CaseOperand{{DType::f32, {2, 2}}, values({1, NAN, 3, 4})}, CaseOperand{{DType::f32, {2, 3}}}}});
  return list;
}

}  // namespace

OpSpec define() {
  return {
      .category = "Linear algebra",
      .summary = "Product of two matrices, or of stacks of them",
      .semantics =
          "y[.., m, n] = sum over k of a[.., m, k] * b[.., k, n]. transpose_a and transpose_b say that the last two "
          "dimensions are stored the other way round. "
          "Leading dimensions broadcast as in NumPy; operands of one dimension are not accepted. Element types may be "
          "mixed freely: values are widened "
          "exactly, products are summed in float32, and the result is rounded once to out_dtype. f64, summed in "
          "double, and integers, which wrap, are not "
          "mixed with "
          "others. K = 0 gives zeros.",
      .inputs = {{"a", dtypes::real | unmixed, "[.., M, K]", "left matrices; [.., K, M] with transpose_a",
                  Mapping::many_to_many},
                 {"b", dtypes::real | unmixed, "[.., K, N]", "right matrices; [.., N, K] with transpose_b",
                  Mapping::many_to_many}},
      .outputs = {{"y", dtypes::real | unmixed, "[.., M, N]", "the products"}},
      .attributes = {{"transpose_a", false, "a is stored as [.., K, M]"},
                     {"transpose_b", false, "b is stored as [.., N, K]"},
                     {"out_dtype", std::string(), "element type of y; that of a where empty"}},
      .infer = infer,
      .reference = reference,
      .operations =
          [](const Problem& p) {
            double elements = 2.0 * static_cast<double>(p.size(0, p.attributes.flag("transpose_a") ? -2 : -1));
            for (const Dim& d : p.outputs[0].dims) elements *= static_cast<double>(d.value(p.maximum));
            return elements;
          },
      .rounding_depth =
          [](const Problem& p) {
            return static_cast<double>(p.size(0, p.attributes.flag("transpose_a") ? -2 : -1)) + 4;
          },
      .cases = cases,
      .associative = true,
      .distributive = true,
  };
}

}  // namespace cermet::matmul_op
