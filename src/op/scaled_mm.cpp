#include "base/checked.hpp"
#include "op/operands.hpp"
#include "op/scales.hpp"
#include "op/schema/operator.hpp"

namespace cermet::scaled_mm_op {

namespace in = op::scaled_mm;
namespace {

/// int32 sums of products of int8 are exact up to this reduction length.
constexpr std::int64_t longest_exact = 131071;

DType result_type(const Problem& p) {
  return dtype_attribute(p, "out_dtype", DType::f32, dtypes::real | DTypeSet{DType::i32, DType::i8});
}

Dims rows_of(const Problem& p) { return {p.input(in::a).dims.begin(), p.input(in::a).dims.end() - 1}; }

/// [K, N] that is not transposed by its strides, which the C interface sees, is an array that others transpose.
void check_layout(const Problem& p) {
  const TensorType &a = p.input(in::a), &b = p.input(in::b);
  if (b.rank() == 2 && b.dims[1] != a.dims.back() && b.dims[0] == a.dims.back())
    bad_operand(p, in::b,
                fmt::format("[N, {0}] (K of a), or the transpose of that: [{0}, N] with strides [1, {0}]",
                            a.dims.back().to_string()),
                b.to_string());
}

void check_scales(const Problem& p, const Dims& rows, const Dim& n, const Dim& k) {
  std::int64_t blocks = 1;
  if (p.has(in::a_scale)) {
    const auto grid = row_scale_grid(p.input(in::a_scale).dims, rows, k);
    const std::string each = to_string(rows);
    if (!grid)
      bad_operand(p, in::a_scale, fmt::format("[], {0}, {1}, 1] or {1}, K/128]", each, each.substr(0, each.size() - 1)),
                  p.input(in::a_scale).to_string());
    blocks = std::max(blocks, grid->blocks);
  }
  if (p.has(in::b_scale)) {
    const auto grid = column_scale_grid(p.input(in::b_scale).dims, n, k);
    if (!grid)
      bad_operand(p, in::b_scale, fmt::format("[], [{0}], [{0}, 1], [1, {0}] or [N/128, K/128]", n.to_string()),
                  p.input(in::b_scale).to_string());
    if (grid->blocks > 1 && blocks == 1 && p.input(in::b_scale).dims == Dims{1, n})
      bad_operand(
          p, in::b_scale,
          fmt::format("[{}], or block scales of a, because these may be a scale for each column or for each block",
                      n.to_string()),
          p.input(in::b_scale).to_string());
    blocks = std::max(blocks, grid->blocks);
  }
  if (blocks > 1 && p.has(in::a_zp))
    bad_operand(p, in::a_zp, "none, because a scale covers blocks of K", p.input(in::a_zp).to_string());
  if (blocks > 1 && p.has(in::bias) && p.input(in::bias).dtype == DType::i32)
    bad_operand(p, in::bias, "a real type, because a scale covers blocks of K", p.input(in::bias).to_string());
}

void check_integer_parts(const Problem& p, const Dims& rows, const Dim& k) {
  const bool integers = p.input(in::a).dtype == DType::i8;
  if (integers && k.is_constant() && k.constant() > longest_exact)
    bad_operand(p, in::a, fmt::format("K of at most {}, so that int32 sums are exact", longest_exact),
                p.input(in::a).to_string());
  if (p.has(in::a_zp)) {
    if (!integers) bad_operand(p, in::a_zp, "none, because a is not i8", p.input(in::a_zp).to_string());
    const Dims& dims = p.input(in::a_zp).dims;
    if (!dims.empty() && dims != Dims{1} && dims != rows)
      bad_operand(p, in::a_zp, fmt::format("[] or {}", to_string(rows)), to_string(dims));
  }
  if (p.has(in::bias) && p.input(in::bias).dtype == DType::i32 && !integers)
    bad_operand(p, in::bias, "a real type, because a is not i8", p.input(in::bias).to_string());
}

void check_result(const Problem& p, DType out) {
  const bool integer_result = out == DType::i32 || out == DType::i8;
  if (integer_result && p.input(in::a).dtype != DType::i8)
    bad_attribute(p, "out_dtype", "a real type, because a is not i8");
  if (out == DType::i32)
    for (const std::size_t i : {in::a_scale, in::b_scale, in::residual})
      if (p.has(i)) bad_operand(p, i, "none, because the result is i32", p.input(i).to_string());
  if (out == DType::i32 && p.has(in::bias) && p.input(in::bias).dtype != DType::i32)
    bad_operand(p, in::bias, "i32, because the result is", p.input(in::bias).to_string());
  if (p.has(in::out_scale) != (out == DType::i8)) {
    if (out == DType::i8)
      fail(Status::invalid_argument,
           "scaled_mm: operand 7 (out_scale): expected one value, because the result is i8; found nothing");
    bad_operand(p, in::out_scale, "none, because the result is not i8", p.input(in::out_scale).to_string());
  }
  if (p.has(in::out_scale) && !p.input(in::out_scale).dims.empty() && p.input(in::out_scale).dims != Dims{1})
    bad_operand(p, in::out_scale, "[] or [1]", p.input(in::out_scale).to_string());
}

std::vector<TensorType> infer(const Problem& p) {
  expect_min_rank(p, in::a, 2);
  check_layout(p);
  const Dim n = check_weight(p, in::a, in::b, in::bias), k = dim_of(p, in::a, -1);
  const Dims rows = rows_of(p);
  check_quantized_pair(p, in::a, in::b);
  check_scales(p, rows, n, k);
  check_integer_parts(p, rows, k);
  const DType out = result_type(p);
  check_result(p, out);
  const TensorType y{out, with_last(p.input(in::a).dims, n)};
  if (p.has(in::residual)) expect_dims(p, in::residual, y.dims, "those of the result");
  return {y};
}

/// Exact sum of products of int8 over [begin, end), modulo 2^32 like the int32 that it stands for.
std::int32_t integer_dot(const std::byte* a, const std::byte* b, std::int64_t begin, std::int64_t end,
                         std::int32_t zero_point) {
  std::uint32_t sum = 0;
  for (std::int64_t k = begin; k < end; ++k) {
    const auto shifted =
        static_cast<std::uint32_t>(static_cast<std::int8_t>(a[k])) - static_cast<std::uint32_t>(zero_point);
    sum += shifted * static_cast<std::uint32_t>(static_cast<std::int8_t>(b[k]));
  }
  return static_cast<std::int32_t>(sum);
}

struct Reference {
  const ReferenceCall& call;
  const TensorView &a = call.inputs[in::a], &b = call.inputs[in::b], &y = call.outputs[0];
  std::int64_t columns = b.shape[0], length = b.shape[1];
  Dims rows = [this] {
    Dims dims = to_dims(a.shape);
    dims.pop_back();
    return dims;
  }();
  ScaleGrid left =
      call.has(in::a_scale) ? *row_scale_grid(to_dims(call.inputs[in::a_scale].shape), rows, length) : ScaleGrid{};
  ScaleGrid right = call.has(in::b_scale) ? *column_scale_grid(to_dims(call.inputs[in::b_scale].shape), columns, length)
                                          : ScaleGrid{};
  bool blocked = std::max(left.blocks, right.blocks) > 1;
  std::int64_t block = blocked ? scale_block : std::max<std::int64_t>(length, 1);

  double left_scale(std::int64_t r, std::int64_t kb) const {
    return call.has(in::a_scale) ? load(call.inputs[in::a_scale], left.index(r, kb)) : 1;
  }
  double right_scale(std::int64_t n, std::int64_t kb) const {
    return call.has(in::b_scale) ? load(call.inputs[in::b_scale], right.index(n, kb)) : 1;
  }
  std::int32_t integer_bias(std::int64_t n) const {
    return call.has(in::bias) && call.inputs[in::bias].dtype == DType::i32
               ? static_cast<std::int32_t>(load_index(call.inputs[in::bias], n))
               : 0;
  }
  std::int32_t zero_point(std::int64_t r) const {
    return call.has(in::a_zp) ? static_cast<std::int32_t>(
                                    load_index(call.inputs[in::a_zp], call.inputs[in::a_zp].elements() == 1 ? 0 : r))
                              : 0;
  }
  std::int32_t biased_sum(std::int64_t r, std::int64_t n, std::int64_t begin, std::int64_t end) const {
    const std::int32_t sum = integer_dot(Rows(a).row(r), Rows(b).row(n), begin, end, zero_point(r));
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(sum) + static_cast<std::uint32_t>(integer_bias(n)));
  }

  /// int8: every step in float32, so that kernels can agree to the bit.
  void integer_element(std::int64_t r, std::int64_t n) const {
    const std::int64_t at = r * columns + n;
    if (y.dtype == DType::i32) return store(y, at, biased_sum(r, n, 0, length));
    float value = 0;
    for (std::int64_t begin = 0, kb = 0; kb == 0 || begin < length; begin += block, ++kb) {
      float term = static_cast<float>(biased_sum(r, n, begin, std::min(length, begin + block)));
      term = static_cast<float>(right_scale(n, kb)) * term;
      term = static_cast<float>(left_scale(r, kb)) * term;
      value = kb == 0 ? term : value + term;
    }
    if (call.has(in::bias) && call.inputs[in::bias].dtype != DType::i32)
      value = value + static_cast<float>(load(call.inputs[in::bias], n));
    if (call.has(in::residual)) value = value + static_cast<float>(load(call.inputs[in::residual], at));
    if (call.has(in::out_scale)) value = value / static_cast<float>(load(call.inputs[in::out_scale], 0));
    store(y, at, value);
  }

  void real_element(std::int64_t r, std::int64_t n) const {
    const std::int64_t at = r * columns + n;
    double value = 0, magnitude = 0;
    for (std::int64_t begin = 0, kb = 0; begin < length; begin += block, ++kb) {
      const DotProduct dot = dot_product(Rows(a).row(r) + begin, a.dtype, Rows(b).row(n) + begin, b.dtype,
                                         std::min(block, length - begin));
      value += left_scale(r, kb) * right_scale(n, kb) * dot.sum;
      magnitude += std::abs(left_scale(r, kb) * right_scale(n, kb)) * dot.magnitude;
    }
    for (const std::size_t i : {in::bias, in::residual}) {
      if (!call.has(i)) continue;
      const double term = load(call.inputs[i], i == in::bias ? n : at);
      value += term;
      magnitude += std::abs(term);
    }
    store(y, at, value);
    note_magnitude(call, 0, at, magnitude);
  }
};

void reference(const ReferenceCall& call) {
  const Reference run{call};
  if (run.y.elements() == 0) return;
  for (std::int64_t r = 0; r < Rows(run.a).count(); ++r)
    for (std::int64_t n = 0; n < run.columns; ++n)
      run.a.dtype == DType::i8 ? run.integer_element(r, n) : run.real_element(r, n);
}

}  // namespace

std::vector<Case> scaled_mm_cases();

OpSpec define() {
  return {
      .category = "Linear algebra",
      .summary = "Product of int8 or fp8 matrices with scales, zero points, bias and residual",
      .semantics =
          "y = a_scale * b_scale * (a b^T - a_zp * colsum(b)) + bias + residual; a scale that is not given is 1. A "
          "scale of a covers everything, a row, or 128 "
          "reduction steps of a row; one of b everything, a column of the result, or 128 columns and 128 reduction "
          "steps; with blocks the scaled sums of the "
          "blocks "
          "are added in order; they may lie by columns. fp8 operands of either kind may be mixed: float32 sums, one "
          "rounding. int8: the sum acc "
          "over a[r, k] - a_zp[r] and an int32 "
          "bias are "
          "exact in int32 (modulo 2^32; K is at most 131071); then, each step rounded to float32, v = float(acc), v = "
          "b_scale * v, v = a_scale * v, blocks "
          "added, "
          "v = v + bias, v = v + residual, and one rounding to out_dtype, so that every kernel gives the same bits. "
          "Result i32: acc itself, without scales. "
          "Result i8: v / out_scale rounded half to even, saturated, NaN gives 0. int8 alone has zero points, int32 "
          "bias and integer results.",
      .inputs = {{"a", dtypes::fp8 | DTypeSet{DType::i8}, "[.., M, K]", "quantized rows", Mapping::many_to_many},
                 {"b", dtypes::fp8 | DTypeSet{DType::i8}, "[N, K]",
                  "quantized weight, a row per output feature; also as [K, N] whose columns are dense (strides 1, K)",
                  Mapping::many_to_many},
                 {"a_scale",
                  {DType::f32},
                  "[], [.., M], [.., M, 1] or [.., M, K/128]",
                  "scale of a",
                  Mapping::one_to_many,
                  true},
                 {"b_scale",
                  {DType::f32},
                  "[], [N], [N, 1], [1, N] or [N/128, K/128]",
                  "scale of b",
                  Mapping::one_to_many,
                  true},
                 {"bias", dtypes::real | DTypeSet{DType::i32}, "[N]",
                  "real: added after the scales; i32: added to the integer sum", Mapping::one_to_one, true},
                 {"a_zp", {DType::i32}, "[] or [.., M]", "zero point of a", Mapping::one_to_many, true},
                 {"residual", dtypes::real, "[.., M, N]", "added last", Mapping::one_to_one, true},
                 {"out_scale", {DType::f32}, "[] or [1]", "scale of an i8 result", Mapping::one_to_many, true}},
      .outputs = {{"y", dtypes::real | DTypeSet{DType::i32, DType::i8}, "[.., M, N]", "the scaled product"}},
      .attributes = {{"out_dtype", std::string(), "element type of y: f32 where empty, bf16, f16, i32, i8"}},
      .infer = infer,
      .reference = reference,
      .operations =
          [](const Problem& p) {
            return 2.0 * static_cast<double>(max_rows(p, in::a) * p.size(in::b, 1)) *
                   static_cast<double>(p.size(in::b, 0));
          },
      .rounding_depth =
          [](const Problem& p) {
            return p.input(in::a).dtype == DType::i8 ? 0.0 : static_cast<double>(p.size(in::b, 1)) + 8;
          },
      .cases = scaled_mm_cases,
  };
}

}  // namespace cermet::scaled_mm_op
