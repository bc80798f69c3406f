#include <algorithm>
#include <numeric>

#include "op/element_order.hpp"
#include "op/schema/infer.hpp"
#include "op/schema/operator.hpp"

namespace cermet::topk_op {
namespace {

std::vector<TensorType> infer(const Problem& p) {
  expect_min_rank(p, 0, 1);
  TensorType y = p.input(0);
  const std::int64_t k = p.attributes.integer("k");
  Dim& last = y.dims.back();
  constexpr std::int64_t highest = std::numeric_limits<std::int32_t>::max();
  const std::int64_t most = last.is_constant() ? std::min(last.constant(), highest) : highest;
  if (k < 0 || k > most) bad_attribute(p, "k", fmt::format("a number in [0, {}]", most));
  if (last.is_constant() && last.constant() > highest && p.attributes.text("index_dtype") == "i32")
    bad_attribute(p, "index_dtype", "i64 for rows this long");
  last = k;
  return {y, {dtype_attribute(p, "index_dtype", DType::i32, dtypes::index), y.dims}};
}

void reference(const ReferenceCall& call) {
  const TensorView &x = call.inputs[0], &values = call.outputs[0], &ids = call.outputs[1];
  const std::int64_t n = x.shape.back(), k = call.attributes.integer("k");
  const bool largest = call.attributes.flag("largest");
  for (std::int64_t r = 0; k > 0 && r < values.elements() / k; ++r) {
    const auto key = [&](std::int64_t i) { return ordinal(x, r * n + i); };
    std::vector<std::int64_t> order(static_cast<std::size_t>(n));
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](std::int64_t a, std::int64_t b) { return largest ? key(a) > key(b) : key(a) < key(b); });
    for (std::int64_t i = 0; i < k; ++i) {
      copy_element(x, r * n + order[static_cast<std::size_t>(i)], values, r * k + i);
      store_integer(ids, r * k + i, order[static_cast<std::size_t>(i)]);
    }
  }
}

std::vector<Case> cases() {
  std::vector<Case> list;
  for (bool largest : {true, false}) {
    const auto add = [&](const std::string& name, CaseOperand x, std::int64_t k, std::string ids = "i32") {
      list.push_back({(largest ? "largest_" : "smallest_") + name,
                      {std::move(x)},
                      {{"k", k}, {"largest", largest}, {"index_dtype", std::move(ids)}}});
    };
    for (DType t : {DType::f32, DType::bf16, DType::f16, DType::i32, DType::i64})
      for (std::int64_t k : {1, 8, 129})
        add(fmt::format("{}_k{}", name_of(t), k), {{t, {5, 129}}, is_integer(t) ? integers(-50, 50) : normal()}, k,
            k == 8 ? "i64" : "i32");
    for (DType t : {DType::f64, DType::i8, DType::u8, DType::i16, DType::u16, DType::u32, DType::u64})
      add(fmt::format("{}_k8", name_of(t)), {{t, {5, 129}}, is_integer(t) ? integers(-50, 50) : normal()}, 8);
    add("ties", {{DType::f32, {4, 60}}, integers(0, 3)}, 20);
    add("all_equal", {{DType::f32, {2, 9}}, constant(2)}, 4);
    add("signed_zeros", {{DType::f32, {1, 6}}, values({-0.0, 0.0, -0.0, 1, 0.0, -1})}, 5);
    add("infinite", {{DType::f32, {1, 6}}, values({-INFINITY, 3, INFINITY, -INFINITY, INFINITY, 0})}, 4);
    add("nan", {{DType::f32, {2, 5}}, values({1, NAN, 2, NAN, 3})}, 3);
    add("wide_integers", {{DType::i64, {1, 4}}, values({-9223372036854775808.0, 9e18, 0, -1})}, 3);
    add("wide_unsigned", {{DType::u64, {1, 9}}, values({1e19, 1.8e19, 0, 9e18, 1, 9.3e18, 9.2e18, 2, 3})}, 8);
    add("bytes", {{DType::u8, {2, 9}}, values({0, 255, 127, 128, 255, 1, 2, 3, 254})}, 8);
    add("double_specials", {{DType::f64, {1, 8}}, values({-INFINITY, 1, NAN, -0.0, 0.0, 1 + 0x1p-50, INFINITY, NAN})},
        8);
    add("strided", {{DType::f32, {4, 20}}, normal(), 3}, 6);
    add("vector", {{DType::f32, {200}}}, 10);
    add("none", {{DType::f32, {3, 7}}}, 0);
    add("no_rows", {{DType::f32, {0, 7}}}, 2);
    add("no_columns", {{DType::f32, {2, 0}}}, 0);
  }
  return list;
}

}  // namespace

OpSpec define() {
  return {
      .category = "Reductions",
      .summary = "The k largest or smallest elements along the last dimension, sorted",
      .semantics =
          "values[.., j] is the j-th largest (or smallest) element of the row, bit for bit, and ids[.., j] its "
          "position. Equal elements, -0 and +0 among them, "
          "come "
          "in rising order of position. NaN counts as larger than everything.",
      .inputs = {{"x", dtypes::real | dtypes::integer | DTypeSet{DType::f64}, "[.., N]", "rows", Mapping::barrier}},
      .outputs = {{"values", dtypes::real | dtypes::integer | DTypeSet{DType::f64}, "[.., k]",
                   "chosen elements, best first"},
                  {"ids", dtypes::index, "[.., k]", "their positions in the row"}},
      .attributes = {{"k", 1, "how many to choose"},
                     {"largest", true, "choose the largest; else the smallest"},
                     {"index_dtype", std::string("i32"), "element type of ids", {"i32", "i64"}}},
      .infer = infer,
      .reference = reference,
      .operations = [](const Problem& p) { return static_cast<double>(p.input(0).elements().value(p.maximum)); },
      .rounding_depth = [](const Problem&) { return 0.0; },
      .cases = cases,
  };
}

}  // namespace cermet::topk_op
