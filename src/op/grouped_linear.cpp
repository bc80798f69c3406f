#include "base/checked.hpp"
#include "op/grouped_work.hpp"
#include "op/operands.hpp"
#include "op/scales.hpp"
#include "op/schema/operator.hpp"

namespace cermet::grouped_linear_op {

namespace in = op::grouped_linear;
namespace {

void check_scales(const Problem& p) {
  const bool quantized = !dtypes::real.contains(p.input(in::x).dtype);
  if (dtypes::real.contains(p.input(in::w).dtype) == quantized)
    bad_operand(p, in::w, quantized ? "a quantized type, because x has one" : "a real type, because x has one",
                name_of(p.input(in::w).dtype));
  for (const std::size_t i : {in::x_scale, in::w_scale})
    if (p.has(i) && !quantized) bad_operand(p, i, "none, because x is not quantized", p.input(i).to_string());
  if (!quantized) return;
  check_quantized_pair(p, in::x, in::w);
  if (p.has(in::x_scale) && !row_scale_grid(p.input(in::x_scale).dims, {dim_of(p, in::x, 0)}, dim_of(p, in::x, 1)))
    bad_operand(p, in::x_scale, "[], [R] or [R, K/128]", p.input(in::x_scale).to_string());
  if (p.has(in::w_scale) && !stacked_scale_grid(p.input(in::w_scale).dims, p.input(in::w).dims))
    bad_operand(p, in::w_scale, "[E], [E, N] or [E, N/128, K/128]", p.input(in::w_scale).to_string());
}

std::vector<TensorType> infer(const Problem& p) {
  expect_rank(p, in::x, 2);
  expect_rank(p, in::w, 3);
  expect_dim(p, in::w, 2, dim_of(p, in::x, 1), "K of x");
  const bool unweighted = has_unweighted_group(p);
  if (!unweighted) expect_dims(p, in::offsets, {dim_of(p, in::w, 0) + Dim(1)}, "E of w and one more");
  const Dim n = dim_of(p, in::w, 1);
  if (p.has(in::bias) && unweighted)
    bad_operand(p, in::bias, "none, because rows of the last group have no expert", p.input(in::bias).to_string());
  if (p.has(in::bias)) expect_dims(p, in::bias, {dim_of(p, in::w, 0), n}, "E and N of w");
  check_scales(p);
  const DType own = dtypes::real.contains(p.input(in::x).dtype) ? p.input(in::x).dtype : DType::f32;
  return {{dtype_attribute(p, "out_dtype", own, dtypes::real), with_last(p.input(in::x).dims, n)}};
}

/// One element: reduction blocks scaled and added in order, as scaled_mm defines it.
struct Element {
  const ReferenceCall& call;
  ScaleGrid left, right;
  std::int64_t expert, row, column;

  double scale(std::int64_t kb) const {
    const std::int64_t columns = call.inputs[in::w].shape[1];
    const double x = call.has(in::x_scale) ? load(call.inputs[in::x_scale], left.index(row, kb)) : 1;
    return call.has(in::w_scale)
               ? x * load(call.inputs[in::w_scale], expert * right.count(columns) + right.index(column, kb))
               : x;
  }
  DotProduct sum() const {
    const TensorView &x = call.inputs[in::x], &w = call.inputs[in::w];
    const std::int64_t length = x.shape[1], block = std::max(left.blocks, right.blocks) > 1
                                                        ? scale_block
                                                        : std::max<std::int64_t>(1, length);
    const auto bytes = byte_size(x.dtype), weight_bytes = byte_size(w.dtype);
    const std::byte *from = Rows(x).row(row), *weight = Rows(w).row(expert * w.shape[1] + column);
    DotProduct sum;
    for (std::int64_t begin = 0; begin < length; begin += block) {
      const DotProduct dot = dot_product(from + begin * bytes, x.dtype, weight + begin * weight_bytes, w.dtype,
                                         std::min(block, length - begin));
      sum.sum += scale(begin / block) * dot.sum;
      sum.magnitude += std::abs(scale(begin / block)) * dot.magnitude;
    }
    return sum;
  }
};

void reference(const ReferenceCall& call) {
  const TensorView &x = call.inputs[in::x], &w = call.inputs[in::w], &offsets = call.inputs[in::offsets];
  const std::int64_t experts = w.shape[0], columns = w.shape[1];
  check_group_offsets("grouped_linear", offsets, x.shape[0]);
  ScaleGrid left, right;
  if (call.has(in::x_scale)) left = *row_scale_grid(to_dims(call.inputs[in::x_scale].shape), {x.shape[0]}, x.shape[1]);
  if (call.has(in::w_scale)) right = *stacked_scale_grid(to_dims(call.inputs[in::w_scale].shape), to_dims(w.shape));
  for (std::int64_t r = load_index(offsets, experts); r < x.shape[0]; ++r)
    for (std::int64_t n = 0; n < columns; ++n) store(call.outputs[0], r * columns + n, 0);
  for (std::int64_t e = 0; e < experts; ++e)
    for (std::int64_t r = load_index(offsets, e); r < load_index(offsets, e + 1); ++r)
      for (std::int64_t n = 0; n < columns; ++n) {
        const DotProduct dot = Element{call, left, right, e, r, n}.sum();
        const double bias = call.has(in::bias) ? load(call.inputs[in::bias], e * columns + n) : 0;
        store(call.outputs[0], r * columns + n, dot.sum + bias);
        note_magnitude(call, 0, r * columns + n, dot.magnitude + std::abs(bias));
      }
}

CaseOperand weight(DType t, std::int64_t e, std::int64_t n, std::int64_t k) {
  return {{t, {e, n, k}}, normal(), 0, true};
}
CaseOperand offsets(std::vector<double> list, DType t = DType::i32) {
  const auto count = static_cast<std::int64_t>(list.size());
  return {{t, {count}}, values(std::move(list))};
}

void add_quantized_cases(std::vector<Case>& list) {
  const auto quantized = [](std::vector<Dim> dims, bool constant = false) {
    return CaseOperand{{DType::i8, std::move(dims)}, integers(-128, 127), 0, constant};
  };
  const auto fp8 = [](DType t, std::vector<Dim> dims) { return CaseOperand{{t, dims}, normal(), 0, dims.size() == 3}; };
  const auto scale = [](std::vector<Dim> dims) {
    return CaseOperand{{DType::f32, std::move(dims)}, uniform(0.001, 0.02)};
  };
  const CaseOperand groups = offsets({0, 1, 1, 19});
  list.push_back({"i8", {quantized({19, 70}), quantized({3, 41, 70}, true), groups, {}, scale({19}), scale({3, 41})}});
  list.push_back({"i8_one_scale_each",
                  {quantized({19, 70}), quantized({3, 41, 70}, true), groups, CaseOperand{{DType::bf16, {3, 41}}},
                   scale({}), scale({3})},
                  {{"out_dtype", "bf16"}}});
  list.push_back({"i8_blocks",
                  {quantized({19, 300}), quantized({3, 140, 300}, true), groups, {}, scale({19, 3}), scale({3, 2, 3})},
                  {{"out_dtype", "f16"}}});
  list.push_back({"i8_columns_of_one",
                  {quantized({19, 30}), quantized({3, 14, 30}, true), groups, {}, scale({19, 1}), scale({3, 14, 1})}});
  list.push_back(
      {"i8_not_constant", {quantized({19, 30}), quantized({3, 14, 30}), groups, {}, scale({19}), scale({3, 14})}});
  list.push_back(
      {"fp8",
       {fp8(DType::f8_e4m3, {19, 70}), fp8(DType::f8_e5m2, {3, 41, 70}), groups, {}, scale({19}), scale({3, 41})}});
  list.push_back({"fp8_blocks",
                  {fp8(DType::f8_e4m3, {19, 300}),
                   fp8(DType::f8_e4m3, {3, 140, 300}),
                   groups,
                   {},
                   scale({19, 3}),
                   scale({3, 2, 3})},
                  {{"out_dtype", "bf16"}}});
  const CaseOperand unweighted = offsets({0, 1, 1, 8, 19});
  list.push_back(
      {"i8_rest", {quantized({19, 70}), quantized({3, 41, 70}, true), unweighted, {}, scale({19}), scale({3, 41})}});
  list.push_back({"i8_rest_alone",
                  {quantized({19, 70}),
                   quantized({3, 41, 70}, true),
                   offsets({0, 0, 0, 0, 19}),
                   {},
                   scale({19}),
                   scale({3, 41})}});
  list.push_back(
      {"i8_blocks_rest",
       {quantized({19, 300}), quantized({3, 140, 300}, true), unweighted, {}, scale({19, 3}), scale({3, 2, 3})}});
  list.push_back(
      {"fp8_rest",
       {fp8(DType::f8_e4m3, {19, 70}), fp8(DType::f8_e4m3, {3, 41, 70}), unweighted, {}, scale({19}), scale({3, 41})}});
  list.push_back({"fp8_rest_alone",
                  {fp8(DType::f8_e4m3, {19, 70}),
                   fp8(DType::f8_e4m3, {3, 41, 70}),
                   offsets({0, 0, 0, 0, 19}),
                   {},
                   scale({19}),
                   scale({3, 41})}});
  list.push_back({"fp8_no_scales", {fp8(DType::f8_e4m3, {19, 30}), fp8(DType::f8_e4m3, {3, 9, 30}), groups}});
}

std::vector<Case> cases() {
  constexpr DType real[] = {DType::f32, DType::bf16, DType::f16};
  std::vector<Case> list;
  for (const DType x : real)
    for (const DType w : real)
      list.push_back({fmt::format("{}_{}", name_of(x), name_of(w)),
                      {CaseOperand{{x, {21, 67}}}, weight(w, 4, 41, 67), offsets({0, 1, 1, 4, 21})}});
  list.push_back({"bias",
                  {CaseOperand{{DType::bf16, {6, 32}}}, weight(DType::bf16, 3, 33, 32),
                   offsets({0, 2, 5, 6}, DType::i64), CaseOperand{{DType::bf16, {3, 33}}}},
                  {{"out_dtype", "f32"}}});
  list.push_back({"not_constant",
                  {CaseOperand{{DType::bf16, {6, 32}}}, CaseOperand{{DType::bf16, {2, 7, 32}}}, offsets({0, 0, 6})}});
  list.push_back(
      {"one_row",
       {CaseOperand{{DType::bf16, {1, 64}}}, weight(DType::bf16, 8, 96, 64), offsets({0, 0, 0, 0, 1, 1, 1, 1, 1})}});
  list.push_back({"a_row_each",
                  {CaseOperand{{DType::f32, {3, 34}}}, weight(DType::bf16, 5, 96, 34), offsets({0, 1, 1, 2, 2, 3})},
                  {{"out_dtype", "f16"}}});
  list.push_back(
      {"all_to_last", {CaseOperand{{DType::bf16, {40, 16}}}, weight(DType::bf16, 3, 32, 16), offsets({0, 0, 0, 40})}});
  list.push_back({"strided",
                  {CaseOperand{{DType::bf16, {17, 33}}, normal(), 5},
                   {{{DType::bf16, {2, 35, 33}}, normal(), 3, true}},
                   offsets({0, 9, 17})}});
  list.push_back({"no_rows", {CaseOperand{{DType::f32, {0, 16}}}, weight(DType::f32, 2, 8, 16), offsets({0, 0, 0})}});
  const auto add_unweighted = [&](const char* name, DType t, std::vector<double> ends) {
    list.push_back(
        {name, {CaseOperand{{t, {23, 34}}}, weight(t, 3, 70, 34), offsets(std::move(ends))}, {{"out_dtype", "f32"}}});
  };
  add_unweighted("rest", DType::bf16, {0, 4, 4, 9, 23});
  add_unweighted("rest_f32", DType::f32, {0, 1, 2, 22, 23});
  add_unweighted("rest_of_none", DType::bf16, {0, 3, 11, 23, 23});
  add_unweighted("rest_alone", DType::f16, {0, 0, 0, 0, 23});
  list.push_back({"rest_not_constant",
                  {CaseOperand{{DType::f32, {6, 32}}}, CaseOperand{{DType::f32, {2, 7, 32}}}, offsets({0, 1, 3, 6})}});
  list.push_back({"no_experts", {CaseOperand{{DType::f32, {0, 16}}}, weight(DType::f32, 0, 8, 16), offsets({0})}});
  list.push_back({"no_columns", {CaseOperand{{DType::f32, {2, 16}}}, weight(DType::f32, 1, 0, 16), offsets({0, 2})}});
  list.push_back({"no_reduction",
                  {CaseOperand{{DType::bf16, {3, 0}}}, weight(DType::bf16, 2, 8, 0), offsets({0, 1, 3}),
                   CaseOperand{{DType::f32, {2, 8}}}}});
  list.push_back({"nan_row",
                  {CaseOperand{{DType::bf16, {2, 4}}, values({1, NAN, 3, 4, 5, 6, 7, 8})}, weight(DType::bf16, 1, 8, 4),
                   offsets({0, 2})}});
  add_quantized_cases(list);
  return list;
}

double bytes_of(const Problem& p, const TensorType& type) {
  double bytes = static_cast<double>(size_of(type.dtype));
  for (const Dim& d : type.dims) bytes *= static_cast<double>(d.value(p.maximum));
  return bytes;
}

/// Every operand but the weights of groups without rows, and the result.
double bytes(const Problem& p) {
  const GroupedWork work = grouped_work(p);
  double total = bytes_of(p, p.outputs[0]);
  for (const auto& input : p.inputs)
    if (input) total += bytes_of(p, *input);
  return total - work.bytes_per_group * static_cast<double>(p.size(in::w, 0) - work.groups);
}

}  // namespace

OpSpec define() {
  constexpr DTypeSet operand_types = dtypes::real | dtypes::fp8 | DTypeSet{DType::i8};
  return {
      .category = "Linear algebra",
      .summary = "Rows sorted by group, each group times its own weight matrix: the experts of a mixture",
      .semantics =
          "y[r, n] = sum over k of x[r, k] * w[e, n, k] + bias[e, n] for offsets[e] <= r < offsets[e + 1]. offsets "
          "starts at 0, never falls and ends at R; "
          "anything else is an error on the CPU. A group may be empty; its weights are then not read. Where offsets "
          "are one more than E + 1, the last group "
          "has no "
          "weight and y is 0 there: rows of experts that others have, after moe_permute. Real element types may be "
          "mixed freely; sums in float32, "
          "one rounding to out_dtype. int8 goes with int8 and fp8 with fp8: the products are then scaled as scaled_mm "
          "scales them, "
          "x_scale[r] * (w_scale[e, n] * sum), blocks of 128 included; int8 sums are exact.",
      .inputs =
          {{"x", operand_types, "[R, K]", "rows sorted by group", Mapping::many_to_many},
           {"w", operand_types, "[E, N, K]", "a weight for each group", Mapping::many_to_many},
           {"offsets", dtypes::index, "[E + 1] or [E + 2]", "first row of each group, and R", Mapping::many_to_many},
           {"bias", dtypes::real, "[E, N]", "added before the rounding", Mapping::one_to_many, true},
           {"x_scale", {DType::f32}, "[], [R] or [R, K/128]", "scale of quantized rows", Mapping::one_to_many, true},
           {"w_scale",
            {DType::f32},
            "[E], [E, N] or [E, N/128, K/128]",
            "scale of quantized weights",
            Mapping::one_to_many,
            true}},
      .outputs = {{"y", dtypes::real, "[R, N]", "the products"}},
      .attributes = {{"out_dtype", std::string(),
                      "element type of y; where empty that of x, or f32 where x is quantized"}},
      .infer = infer,
      .reference = reference,
      .operations =
          [](const Problem& p) {
            return 2.0 * static_cast<double>(p.size(0, 0) * p.size(0, 1)) * static_cast<double>(p.size(1, 1));
          },
      .bytes = bytes,
      .rounding_depth = [](const Problem& p) { return static_cast<double>(p.size(0, 1)) + 4; },
      .cases = cases,
  };
}

}  // namespace cermet::grouped_linear_op

namespace cermet {

GroupedWork grouped_work(const Problem& problem) {
  using namespace grouped_linear_op;
  GroupedWork work{std::min(problem.size(in::w, 0), problem.size(in::x, 0)), 0};
  if (problem.size(in::w, 0) == 0) return work;
  for (const std::size_t i : {in::w, in::bias, in::w_scale})
    if (problem.has(i))
      work.bytes_per_group += bytes_of(problem, problem.input(i)) / static_cast<double>(problem.size(in::w, 0));
  return work;
}

bool has_unweighted_group(const Problem& problem) {
  using namespace grouped_linear_op;
  return problem.input(in::offsets).dims == Dims{problem.input(in::w).dims.at(0) + Dim(2)};
}

std::int64_t used_groups(const TensorView& offsets, std::int64_t groups) {
  std::int64_t used = 0;
  for (std::int64_t e = 0; e < groups; ++e)
    used +=
        format::load_element(offsets.data, offsets.dtype, e) < format::load_element(offsets.data, offsets.dtype, e + 1);
  return used;
}

}  // namespace cermet
