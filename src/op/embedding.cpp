#include "op/schema/infer.hpp"
#include "op/schema/operator.hpp"
#include "op/schema/reference.hpp"

namespace cermet::embedding_op {
namespace {

std::vector<TensorType> infer(const Problem& p) {
  expect_rank(p, 1, 2);
  if (p.input(0).rank() == Shape::max_rank)
    bad_operand(p, 0, fmt::format("at most {} dimensions", Shape::max_rank - 1), p.input(0).to_string());
  Dims dims = p.input(0).dims;
  dims.push_back(dim_of(p, 1, 1));
  return {{dtype_attribute(p, "out_dtype", p.input(1).dtype, dtypes::real), std::move(dims)}};
}

void reference(const ReferenceCall& call) {
  const TensorView &ids = call.inputs[0], &table = call.inputs[1], &y = call.outputs[0];
  const std::int64_t vocabulary = table.shape[0], hidden = table.shape[1];
  for (std::int64_t i = 0; i < ids.elements(); ++i) {
    const std::int64_t id = load_index(ids, i);
    check_index("embedding", "0 (ids)", id, vocabulary);
    for (std::int64_t h = 0; h < hidden; ++h) store(y, i * hidden + h, load(table, id * hidden + h));
  }
}

std::vector<Case> cases() {
  std::vector<Case> list;
  const auto make = [](DType index, Dims ids, DType table, std::int64_t vocabulary, std::int64_t hidden) {
    return std::vector<std::optional<CaseOperand>>{CaseOperand{{index, std::move(ids)}, integers(0, vocabulary - 1)},
                                                   CaseOperand{{table, {vocabulary, hidden}}}};
  };
  for (DType t : {DType::f32, DType::bf16, DType::f16})
    for (DType out : {DType::f32, DType::bf16, DType::f16})
      list.push_back({fmt::format("{}_to_{}", name_of(t), name_of(out)),
                      make(DType::i32, {5}, t, 11, 129),
                      {{"out_dtype", std::string(name_of(out))}}});
  list.push_back({"i64_ids", make(DType::i64, {3, 4}, DType::f32, 50, 7)});
  list.push_back({"many_rows", make(DType::i32, {300}, DType::bf16, 40, 64)});
  list.push_back({"scalar_id", make(DType::i32, {}, DType::f32, 9, 5)});
  list.push_back({"no_ids", make(DType::i32, {0}, DType::f32, 9, 5)});
  list.push_back({"one_element", make(DType::i32, {4}, DType::f16, 3, 1)});
  list.push_back(
      {"strided",
       {CaseOperand{{DType::i32, {4, 3}}, integers(0, 12), 2}, CaseOperand{{DType::bf16, {13, 33}}, normal(), 5}},
       {{"out_dtype", "f32"}}});
  list.push_back({"nan_row",
                  {CaseOperand{{DType::i32, {2}}, values({1, 0})},
                   CaseOperand{{DType::f32, {2, 3}}, values({1, 2, 3, NAN, INFINITY, 6})}}});
  return list;
}

}  // namespace

OpSpec define() {
  return {
      .category = "Data movement",
      .summary = "Rows of a table, looked up by id",
      .semantics =
          "y[i, :] = table[ids[i], :], rounded once where out_dtype is narrower than the table. An id outside [0, V) "
          "is an error that names it.",
      .inputs = {{"ids", dtypes::index, "[..]", "row of the table for each position"},
                 {"table", dtypes::real, "[V, H]", "one row per id", Mapping::one_to_many}},
      .outputs = {{"y", dtypes::real, "[.., H]", "the rows"}},
      .attributes = {{"out_dtype", std::string(), "element type of y; that of the table where empty"}},
      .infer = infer,
      .reference = reference,
      .bytes =
          [](const Problem& p) {
            const double rows = static_cast<double>(p.input(0).elements().value(p.maximum));
            const double row_bytes = static_cast<double>(p.size(1, 1)) *
                                     static_cast<double>(size_of(p.input(1).dtype) + size_of(p.outputs[0].dtype));
            return rows * (static_cast<double>(size_of(p.input(0).dtype)) + row_bytes);
          },
      .cases = cases,
  };
}

}  // namespace cermet::embedding_op
