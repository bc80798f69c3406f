#include "op/gathering.hpp"
#include "op/scatter_updates.hpp"
#include "op/schema/axes.hpp"

namespace cermet::scatter_op {
namespace {

std::vector<TensorType> infer(const Problem& p) {
  expect_indices_of_elements(p);
  const TensorType& x = p.input(0);
  expect_dims(p, 2, p.input(1).dims, "those of indices");
  expect_dtype(p, 2, x.dtype, "that of x");
  expect_reducible(p);
  return {x};
}

void reference(const ReferenceCall& call) {
  const TensorView &x = call.inputs[0], &indices = call.inputs[1];
  const int axis = wrap_axis(call.attributes.integer("axis"), x.shape.rank());
  ScatterUpdates updates(call);
  for (std::int64_t i = 0; i < indices.elements(); ++i) {
    Shape at = coordinates(indices.shape, i);
    at[axis] = checked_signed_index("scatter", "1 (indices)", load_index(indices, i), x.shape[axis]);
    updates.add(dense_index(x.shape, at), i);
  }
  updates.finish();
}

std::vector<Case> cases() {
  std::vector<Case> list;
  const auto add = [&](std::string name, DType t, Dims x, Dims indices, std::int64_t axis,
                       std::string reduction = "none", std::int64_t padding = 0) {
    const std::int64_t size = x[static_cast<std::size_t>(axis)].constant();
    const Fill fill = dtypes::real.contains(t) ? normal() : t == DType::boolean ? integers(0, 1) : integers(0, 20);
    list.push_back({std::move(name),
                    {CaseOperand{{t, std::move(x)}, fill, padding},
                     CaseOperand{{DType::i32, indices}, integers(-size, size - 1), padding},
                     CaseOperand{{t, indices}, fill, padding}},
                    {{"axis", axis}, {"reduction", std::move(reduction)}}});
  };
  for (DType t : {DType::f32, DType::bf16, DType::f16, DType::i8, DType::i64, DType::boolean, DType::f8_e4m3}) {
    add(fmt::format("{}_last", name_of(t)), t, {5, 33}, {4, 20}, 1);
    add(fmt::format("{}_first", name_of(t)), t, {9, 33}, {12, 33}, 0);
  }
  for (DType t : {DType::f32, DType::bf16, DType::f16, DType::i32, DType::i64, DType::u64, DType::u8, DType::i8,
                  DType::u16, DType::f64, DType::boolean})
    for (const char* reduction : {"sum", "max", "prod", "min"}) {
      // Each program costs a compilation for every architecture.
      const bool rare = t == DType::u8 || t == DType::i8 || t == DType::u16 || t == DType::f64 || t == DType::boolean;
      if (rare && (std::string_view(reduction) == "prod" || std::string_view(reduction) == "min")) continue;
      add(fmt::format("{}_{}_last", name_of(t), reduction), t, {3, 9}, {3, 40}, 1, reduction);
      add(fmt::format("{}_{}_first", name_of(t), reduction), t, {7, 37}, {30, 35}, 0, reduction);
    }
  add("middle", DType::f32, {3, 8, 5}, {2, 6, 4}, 1);
  add("middle_sum", DType::bf16, {3, 8, 5}, {2, 16, 4}, 1, "sum");
  add("vector", DType::f32, {50}, {20}, 0);
  add("strided", DType::f32, {5, 9}, {5, 7}, 1, "none", 3);
  add("strided_sum", DType::bf16, {5, 9}, {8, 9}, 0, "sum", 3);
  add("no_updates", DType::f32, {4, 6}, {0, 6}, 0);
  add("empty", DType::f32, {4, 0}, {3, 0}, 0, "sum");
  list.push_back({"last_write_wins",
                  {CaseOperand{{DType::f32, {3}}, constant(0)}, CaseOperand{{DType::i64, {4}}, values({1, 1, -2, 0})},
                   CaseOperand{{DType::f32, {4}}, values({1, 2, 3, NAN})}}});
  list.push_back({"saturates",
                  {CaseOperand{{DType::i32, {2}}, constant(2e9)}, CaseOperand{{DType::i32, {3}}, values({0, 0, 1})},
                   CaseOperand{{DType::i32, {3}}, values({2e9, -1e9, 5})}},
                  {{"reduction", "sum"}}});
  return list;
}

}  // namespace

OpSpec define() {
  return {
      .category = "Data movement",
      .summary = "A tensor with elements replaced or reduced by index along one axis",
      .semantics =
          "y = x; then for every position p of indices, in row-major order, y at p with its axis coordinate replaced "
          "by indices[p] takes updates[p] (`none`: "
          "the last "
          "write wins) or is combined with it. This is ONNX's ScatterElements. Floating reductions accumulate in "
          "float32 and round once at the end; integers "
          "are "
          "clamped to the type's range after every step; of booleans, sum and max are `or`, prod and min `and`. A "
          "negative index counts from the end; one "
          "outside [-D, D) is an error that names it.",
      .inputs = {{"x", dtypes::any, "[.., D, ..]", "elements to start from", Mapping::barrier},
                 {"indices", dtypes::index, "[.., I, ..]",
                  "position along the axis; other dimensions at most those of x", Mapping::barrier},
                 {"updates", dtypes::any, "[.., I, ..]", "elements to write", Mapping::barrier}},
      .outputs = {{"y", dtypes::any, "[.., D, ..]", "x with the updates"}},
      .attributes = {{"axis", 0, "axis that is indexed; negative counts from the end"},
                     {"reduction",
                      std::string("none"),
                      "how an update meets what is there",
                      {"none", "sum", "prod", "max", "min"}}},
      .infer = infer,
      .reference = reference,
      .operations =
          [](const Problem& p) {
            return p.attributes.text("reduction") == "none"
                       ? 0.0
                       : static_cast<double>(p.input(1).elements().value(p.maximum));
          },
      .rounding_depth =
          [](const Problem& p) {
            const std::string& reduction = p.attributes.text("reduction");
            if (reduction != "sum" && reduction != "prod") return 0.0;
            return 1 + static_cast<double>(p.size(1, wrap_axis(p.attributes.integer("axis"), p.input(0).rank())));
          },
      .cases = cases,
      .in_place = {0},
  };
}

}  // namespace cermet::scatter_op
