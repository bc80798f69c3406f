#include "op/coordinates.hpp"
#include "op/gathering.hpp"
#include "op/schema/axes.hpp"
#include "op/schema/reference.hpp"

namespace cermet::gather_nd_op {
namespace {

std::vector<TensorType> infer(const Problem& p) {
  expect_min_rank(p, 1, 1);
  const Dims &x = p.input(0).dims, &indices = p.input(1).dims;
  const std::int64_t batch = p.attributes.integer("batch_dims");
  const std::int64_t most = std::min<std::int64_t>(p.input(0).rank(), p.input(1).rank() - 1);
  if (batch < 0 || batch > most) bad_attribute(p, "batch_dims", fmt::format("a number in [0, {}]", most));
  for (int a = 0; a < batch; ++a) expect_dim(p, 1, a, dim_of(p, 0, a), "that of x");
  const int n = coordinate_count(p, 1, p.input(0).rank() - static_cast<int>(batch));
  Dims dims(indices.begin(), indices.end() - 1);
  dims.insert(dims.end(), x.begin() + batch + n, x.end());
  if (dims.size() > Shape::max_rank)
    bad_operand(p, 1, fmt::format("at most {} dimensions in the result", Shape::max_rank), p.input(1).to_string());
  return {{p.input(0).dtype, std::move(dims)}};
}

void reference(const ReferenceCall& call) {
  const TensorView &x = call.inputs[0], &indices = call.inputs[1], &y = call.outputs[0];
  const int batch = static_cast<int>(call.attributes.integer("batch_dims")), n = static_cast<int>(indices.shape.back());
  std::int64_t slice = 1, tuples = 1;
  for (int a = batch + n; a < x.shape.rank(); ++a) slice *= x.shape[a];
  for (int a = 0; a + 1 < indices.shape.rank(); ++a) tuples *= indices.shape[a];
  Shape lead;
  for (int a = 0; a + 1 < indices.shape.rank(); ++a) lead.push_back(indices.shape[a]);
  for (std::int64_t t = 0; t < tuples; ++t) {
    const Shape at = coordinates(lead, t);
    std::int64_t first = 0;
    for (int a = 0; a < batch; ++a) first = first * x.shape[a] + at[a];
    for (int j = 0; j < n; ++j)
      first = first * x.shape[batch + j] +
              checked_signed_index("gather_nd", "1 (indices)", load_index(indices, t * n + j), x.shape[batch + j]);
    for (std::int64_t k = 0; k < slice; ++k) copy_element(x, first * slice + k, y, t * slice + k);
  }
}

std::vector<Case> cases() {
  std::vector<Case> list;
  const auto add = [&](std::string name, DType t, Dims x, Dims indices, std::int64_t batch = 0,
                       std::int64_t padding = 0) {
    std::int64_t least = 100;  // any coordinate fits every axis
    for (std::size_t a = static_cast<std::size_t>(batch); a < x.size(); ++a) least = std::min(least, x[a].constant());
    list.push_back(
        {std::move(name),
         {CaseOperand{{t, std::move(x)}, t == DType::boolean ? integers(0, 1) : integers(0, 100), padding},
          CaseOperand{{batch > 0 ? DType::i32 : DType::i64, std::move(indices)}, integers(-least, least - 1), padding}},
         {{"batch_dims", batch}}});
  };
  for (DType t :
       {DType::f32, DType::bf16, DType::f16, DType::f64, DType::i8, DType::i64, DType::boolean, DType::f8_e5m2}) {
    add(fmt::format("{}_elements", name_of(t)), t, {5, 9}, {7, 2});
    add(fmt::format("{}_rows", name_of(t)), t, {5, 33}, {7, 1});
  }
  add("planes", DType::f32, {4, 6, 8}, {3, 2, 1});
  add("rows_of_three_axes", DType::f32, {4, 6, 8}, {5, 3, 2});
  add("everything", DType::f32, {4, 6}, {3, 0});
  add("one_tuple", DType::f32, {4, 6, 3}, {2});
  add("one_element", DType::f32, {4, 6}, {2});
  add("batch", DType::f32, {2, 5, 7}, {2, 3, 1}, 1);
  add("batch_elements", DType::bf16, {2, 5, 7}, {2, 3, 2}, 1);
  add("batch_scalar", DType::f32, {2, 5}, {2, 1}, 1);
  add("two_batches", DType::f32, {2, 3, 5, 4}, {2, 3, 6, 1}, 2);
  add("all_batches", DType::f32, {2, 3}, {2, 3, 4, 0}, 2);
  add("wide_rows", DType::f32, {6, 4096}, {9, 1});
  add("strided", DType::f32, {5, 9}, {7, 1}, 0, 3);
  add("strided_batch", DType::f32, {2, 5, 7}, {2, 3, 2}, 1, 3);
  add("no_tuples", DType::f32, {4, 6}, {0, 2});
  add("empty_rows", DType::f32, {4, 0}, {3, 0});
  list.push_back({"nan_values",
                  {CaseOperand{{DType::f32, {3}}, values({NAN, INFINITY, -0.0})},
                   CaseOperand{{DType::i32, {3, 1}}, values({2, 0, -2})}}});
  return list;
}

}  // namespace

OpSpec define() {
  return define_gathering({
      .summary = "Slices picked by rows of coordinates",
      .semantics = "The first batch_dims dimensions b.. are common to x and indices. y[b.., i..] = x[b.., c..] where "
                   "c.. = indices[b.., i.., :] indexes the next n "
                   "dimensions of "
                   "x and the rest of x is copied, bit for bit. This is ONNX's GatherND. A negative index counts from "
                   "the end; one outside the dimension is an error "
                   "that names "
                   "it.",
      .x = {"x", dtypes::any, "[b.., ..]", "slices", Mapping::one_to_many},
      .indices = {"indices", dtypes::index, "[b.., i.., n]", "coordinates along the n dimensions behind the batch",
                  Mapping::one_to_many},
      .y = {"y", dtypes::any, "[b.., i.., ..]", "the chosen slices"},
      .attribute = {"batch_dims", 0, "leading dimensions that x and indices share"},
      .infer = infer,
      .reference = reference,
      .cases = cases,
  });
}

}  // namespace cermet::gather_nd_op
