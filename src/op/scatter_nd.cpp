#include "op/coordinates.hpp"
#include "op/operands.hpp"
#include "op/scatter_updates.hpp"
#include "op/schema/axes.hpp"
#include "op/schema/infer.hpp"
#include "op/schema/operator.hpp"

namespace cermet::scatter_nd_op {

namespace in = op::scatter_nd;
namespace {

std::vector<TensorType> infer(const Problem& p) {
  expect_min_rank(p, in::x, 1);
  const TensorType& x = p.input(in::x);
  const int n = coordinate_count(p, 1, x.rank());
  const Dims& indices = p.input(in::indices).dims;
  Dims dims(indices.begin(), indices.end() - 1);
  dims.insert(dims.end(), x.dims.begin() + n, x.dims.end());
  expect_dims(p, in::updates, dims, "those of indices but the last, then those of x that are not indexed");
  expect_dtype(p, in::updates, x.dtype, "that of x");
  expect_reducible(p);
  return {x};
}

void reference(const ReferenceCall& call) {
  const TensorView &x = call.inputs[in::x], &indices = call.inputs[in::indices];
  const int n = static_cast<int>(indices.shape.back());
  std::int64_t slice = 1, tuples = 1;
  for (int a = n; a < x.shape.rank(); ++a) slice *= x.shape[a];
  for (int a = 0; a + 1 < indices.shape.rank(); ++a) tuples *= indices.shape[a];
  ScatterUpdates updates(call);
  for (std::int64_t t = 0; t < tuples; ++t) {
    std::int64_t first = 0;
    for (int j = 0; j < n; ++j)
      first = first * x.shape[j] +
              checked_signed_index("scatter_nd", "1 (indices)", load_index(indices, t * n + j), x.shape[j]);
    for (std::int64_t k = 0; k < slice; ++k) updates.add(first * slice + k, t * slice + k);
  }
  updates.finish();
}

std::vector<Case> cases() {
  std::vector<Case> list;
  const auto add = [&](std::string name, DType t, Dims x, Dims indices, std::string reduction = "none",
                       std::int64_t padding = 0) {
    const auto n = static_cast<std::size_t>(indices.back().constant());
    std::int64_t least = 100;  // any coordinate fits every axis
    for (std::size_t a = 0; a < n; ++a) least = std::min(least, x[a].constant());
    Dims updates(indices.begin(), indices.end() - 1);
    updates.insert(updates.end(), x.begin() + static_cast<std::ptrdiff_t>(n), x.end());
    const Fill fill = dtypes::real.contains(t) ? normal() : t == DType::boolean ? integers(0, 1) : integers(0, 20);
    list.push_back({std::move(name),
                    {CaseOperand{{t, std::move(x)}, fill, padding},
                     CaseOperand{{DType::i64, std::move(indices)}, integers(-least, least - 1), padding},
                     CaseOperand{{t, std::move(updates)}, fill, padding}},
                    {{"reduction", std::move(reduction)}}});
  };
  for (DType t :
       {DType::f32, DType::bf16, DType::f16, DType::f64, DType::i8, DType::i64, DType::boolean, DType::f8_e4m3}) {
    add(fmt::format("{}_elements", name_of(t)), t, {5, 9}, {7, 2});
    add(fmt::format("{}_rows", name_of(t)), t, {5, 33}, {7, 1});
  }
  for (DType t : {DType::f32, DType::bf16, DType::f16, DType::i32, DType::i64, DType::u64, DType::u8, DType::i8,
                  DType::u16, DType::f64, DType::boolean})
    for (const char* reduction : {"sum", "max", "prod", "min"}) {
      // Each program costs a compilation for every architecture.
      const bool rare = t == DType::u8 || t == DType::i8 || t == DType::u16 || t == DType::f64 || t == DType::boolean;
      if (rare && (std::string_view(reduction) == "prod" || std::string_view(reduction) == "min")) continue;
      add(fmt::format("{}_{}_elements", name_of(t), reduction), t, {4, 5}, {30, 2}, reduction);
      add(fmt::format("{}_{}_rows", name_of(t), reduction), t, {7, 37}, {12, 1}, reduction);
    }
  add("planes", DType::f32, {4, 6, 8}, {3, 2, 1});
  add("planes_sum", DType::bf16, {4, 6, 8}, {3, 2, 1}, "sum");
  add("everything", DType::f32, {4, 6}, {0}, "none");
  add("everything_sum", DType::f32, {4, 6}, {3, 0}, "sum");
  add("one_tuple", DType::f32, {4, 6, 3}, {2});
  add("vector", DType::f32, {50}, {200, 1});
  add("many", DType::i32, {300, 5}, {2000, 1});
  add("wide_rows", DType::f32, {6, 2100}, {9, 1}, "max");
  add("strided", DType::f32, {5, 9}, {7, 1}, "none", 3);
  add("strided_sum", DType::bf16, {5, 3, 9}, {8, 1}, "sum", 3);
  add("no_updates", DType::f32, {4, 6}, {0, 2});
  add("empty_rows", DType::f32, {4, 0}, {3, 1}, "sum");
  list.push_back(
      {"last_write_wins",
       {CaseOperand{{DType::f32, {3}}, constant(0)}, CaseOperand{{DType::i32, {4, 1}}, values({1, 1, -2, 0})},
        CaseOperand{{DType::f32, {4}}, values({1, 2, 3, NAN})}}});
  list.push_back({"saturates",
                  {CaseOperand{{DType::u8, {2}}, constant(200)}, CaseOperand{{DType::i32, {3, 1}}, values({0, 0, 1})},
                   CaseOperand{{DType::u8, {3}}, values({100, 1, 5})}},
                  {{"reduction", "sum"}}});
  return list;
}

}  // namespace

OpSpec define() {
  return {
      .category = "Data movement",
      .summary = "A tensor with slices replaced or reduced at rows of coordinates",
      .semantics =
          "y = x; then for every row c.. of indices, in row-major order, the slice y[c..] takes the slice of updates "
          "(`none`: the last write wins) or is "
          "combined with "
          "it, element by element. This is ONNX's ScatterND. Reductions are those of scatter. A negative index counts "
          "from the end; one outside the dimension "
          "is an "
          "error that names it.",
      .inputs = {{"x", dtypes::any, "[D.., ..]", "elements to start from", Mapping::barrier},
                 {"indices", dtypes::index, "[i.., n]", "coordinates along the first n dimensions of x",
                  Mapping::barrier},
                 {"updates", dtypes::any, "[i.., ..]", "slices to write", Mapping::barrier}},
      .outputs = {{"y", dtypes::any, "[D.., ..]", "x with the updates"}},
      .attributes = {{"reduction",
                      std::string("none"),
                      "how an update meets what is there",
                      {"none", "sum", "prod", "max", "min"}}},
      .infer = infer,
      .reference = reference,
      .operations =
          [](const Problem& p) {
            return p.attributes.text("reduction") == "none"
                       ? 0.0
                       : static_cast<double>(p.input(in::updates).elements().value(p.maximum));
          },
      .rounding_depth =
          [](const Problem& p) {
            const std::string& reduction = p.attributes.text("reduction");
            if (reduction != "sum" && reduction != "prod") return 0.0;
            const double n = std::max(1.0, static_cast<double>(p.size(1, -1)));
            return 1 + static_cast<double>(p.input(in::indices).elements().value(p.maximum)) / n;
          },
      .cases = cases,
      .in_place = {0},
  };
}

}  // namespace cermet::scatter_nd_op
