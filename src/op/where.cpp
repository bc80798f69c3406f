#include "op/operands.hpp"
#include "op/schema/axes.hpp"
#include "op/schema/infer.hpp"
#include "op/schema/operator.hpp"
#include "op/schema/reference.hpp"

namespace cermet::where_op {

namespace in = op::where;
namespace {

std::vector<TensorType> infer(const Problem& p) {
  expect_dtype(p, in::other, p.input(in::x).dtype, "that of x");
  const Dims values = broadcast_dims(p, 1, 2);
  return {{p.input(in::x).dtype, broadcast_dims(p, values, 0)}};
}

/// Index into an operand that broadcasts to coordinates `at`.
std::int64_t broadcast_index(const Shape& shape, const Shape& at) {
  Shape own = shape;
  for (int a = 0; a < shape.rank(); ++a) own[a] = shape[a] == 1 ? 0 : at[at.rank() - shape.rank() + a];
  return dense_index(shape, own);
}

void reference(const ReferenceCall& call) {
  const TensorView &condition = call.inputs[in::condition], &y = call.outputs[0];
  for (std::int64_t i = 0; i < y.elements(); ++i) {
    const Shape at = coordinates(y.shape, i);
    const TensorView& from =
        load(condition, broadcast_index(condition.shape, at)) != 0 ? call.inputs[in::x] : call.inputs[in::other];
    copy_element(from, broadcast_index(from.shape, at), y, i);
  }
}

std::vector<Case> cases() {
  std::vector<Case> list;
  const auto add = [&](std::string name, DType t, Dims condition, Dims x, Dims other, std::int64_t padding = 0) {
    list.push_back({std::move(name),
                    {CaseOperand{{DType::boolean, std::move(condition)}, integers(0, 1), padding},
                     CaseOperand{{t, std::move(x)}, integers(0, 1), padding},
                     CaseOperand{{t, std::move(other)}, integers(0, 1), padding}}});
  };
  for (DType t : {DType::f32, DType::bf16, DType::f16, DType::i8, DType::i64, DType::boolean, DType::f8_e4m3})
    add(std::string(name_of(t)), t, {5, 67}, {5, 67}, {5, 67});
  add("row_condition", DType::f32, {67}, {5, 67}, {5, 67});
  add("column_condition", DType::f32, {5, 1}, {5, 67}, {5, 67});
  add("scalar_values", DType::f32, {5, 67}, {}, {});
  add("scalar_condition", DType::f32, {}, {5, 7}, {7});
  add("all_scalars", DType::f32, {}, {}, {});
  add("outer", DType::f32, {4, 1, 6}, {3, 1}, {1, 1, 6});
  add("condition_decides", DType::f32, {4, 6}, {1, 1}, {6});
  add("strided", DType::f32, {4, 9}, {4, 9}, {1, 9}, 3);
  add("empty", DType::f32, {0, 9}, {0, 9}, {1, 9});
  list.push_back({"other_bytes_are_true",
                  {CaseOperand{{DType::u8, {4}}, values({0, 1, 2, 255})}, CaseOperand{{DType::f32, {4}}},
                   CaseOperand{{DType::f32, {4}}, values({NAN, NAN, INFINITY, NAN})}}});
  return list;
}

}  // namespace

OpSpec define() {
  return {
      .category = "Data movement",
      .summary = "One of two operands, chosen for each element",
      .semantics =
          "y = condition ? x : other, bit for bit. The three broadcast against each other as in NumPy. A condition of "
          "type u8 is true where it is not 0.",
      .inputs = {{"condition", DTypeSet{DType::boolean, DType::u8}, "[..]", "which of the two", Mapping::one_to_one},
                 {"x", dtypes::any, "[..]", "taken where the condition holds", Mapping::one_to_one},
                 {"other", dtypes::any, "[..]", "taken elsewhere", Mapping::one_to_one}},
      .outputs = {{"y", dtypes::any, "[..]", "the chosen elements"}},
      .infer = infer,
      .reference = reference,
      .cases = cases,
  };
}

}  // namespace cermet::where_op
