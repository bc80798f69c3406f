#include "op/operands.hpp"
#include "op/schema/infer.hpp"
#include "op/schema/operator.hpp"
#include "op/schema/reference.hpp"

namespace cermet::rope_op {

namespace in = op::rope;
namespace {

std::vector<TensorType> infer(const Problem& p) {
  expect_min_rank(p, in::q, 2);
  const TensorType& q = p.input(in::q);
  const Dim head_size = q.dims.back();
  const Dims tokens(q.dims.begin(), q.dims.end() - 2);
  if (p.has(in::k)) {
    expect_rank(p, in::k, q.rank());
    for (int axis = 0; axis < q.rank(); ++axis)
      if (axis != q.rank() - 2) expect_dim(p, in::k, axis, q.dims[static_cast<std::size_t>(axis)], "that of q");
    expect_dtype(p, in::k, q.dtype, "that of q");
  }
  expect_dims(p, in::positions, tokens, "the leading ones of q");
  if (!head_size.is_constant()) bad_operand(p, in::q, "a constant head size", q.to_string());
  const std::int64_t asked = p.attributes.integer("rotary_dim"), rotary = asked == 0 ? head_size.constant() : asked;
  if (rotary < 0 || rotary > head_size.constant() || rotary % 2 != 0)
    bad_attribute(
        p, "rotary_dim",
        fmt::format("an even number of at most {} (the head size; 0 means all of it, which must then be even)",
                    head_size.constant()));
  for (std::size_t table : {in::cos, in::sin}) {
    expect_rank(p, table, 2);
    expect_dim(p, table, 1, rotary / 2, "half of rotary_dim");
    if (p.input(table).dtype != DType::f32) expect_dtype(p, table, q.dtype, "that of q, or f32");
  }
  expect_dim(p, in::sin, 0, dim_of(p, in::cos, 0), "that of cos");
  expect_dtype(p, in::sin, p.input(in::cos).dtype, "that of cos");
  for (const char* factor : {"q_factor", "k_factor"})
    if (!std::isfinite(p.attributes.number(factor))) bad_attribute(p, factor, "a finite number");
  const DType out = dtype_attribute(p, "out_dtype", q.dtype, dtypes::real | dtypes::fp8);
  std::vector<TensorType> outputs{{out, q.dims}};
  if (p.has(in::k)) outputs.push_back({out, p.input(in::k).dims});
  return outputs;
}

/// Rotates every head of q or k.
void rotate(const ReferenceCall& call, std::size_t operand) {
  const TensorView &x = call.inputs[operand], &y = call.outputs[operand], &cos = call.inputs[in::cos],
                   &sin = call.inputs[in::sin];
  const std::int64_t head_size = x.shape.back(), half = cos.shape.back(), heads = x.shape[x.shape.rank() - 2];
  const bool neox = call.attributes.text("style") == "neox";
  const double direction = call.attributes.flag("inverse") ? -1 : 1,
               factor = static_cast<float>(call.attributes.number(operand == in::q ? "q_factor" : "k_factor"));
  for (std::int64_t head = 0; head_size > 0 && head < x.elements() / head_size; ++head) {
    const std::int64_t position = load_index(call.inputs[in::positions], head / heads), begin = head * head_size;
    check_index("rope", "positions", position, cos.shape[0]);
    for (std::int64_t i = 0; i < half; ++i) {
      const std::int64_t first = begin + (neox ? i : 2 * i), second = begin + (neox ? half + i : 2 * i + 1);
      const double a = load(x, first), b = load(x, second), c = load(cos, position * half + i),
                   s = direction * load(sin, position * half + i);
      store(y, first, (a * c - b * s) * factor);
      store(y, second, (b * c + a * s) * factor);
      note_magnitude(call, operand, first, (std::abs(a * c) + std::abs(b * s)) * std::abs(factor));
      note_magnitude(call, operand, second, (std::abs(b * c) + std::abs(a * s)) * std::abs(factor));
    }
    for (std::int64_t i = 2 * half; i < head_size; ++i) store(y, begin + i, load(x, begin + i) * factor);
  }
}

void reference(const ReferenceCall& call) {
  rotate(call, in::q);
  if (call.has(in::k)) rotate(call, in::k);
}

std::vector<Case> cases() {
  std::vector<Case> list;
  using enum DType;
  const auto table = [](DType t, std::int64_t half) { return CaseOperand{{t, {50, half}}, uniform(-1, 1)}; };
  const auto add = [&](std::string name, DType t, DType table_type, Dims q, std::int64_t k_heads, std::int64_t rotary,
                       Attributes attributes = {}) {
    Dims k = q;
    k[k.size() - 2] = k_heads;
    const Dims tokens(q.begin(), q.end() - 2);
    list.push_back(
        {std::move(name),
         {CaseOperand{{t, q}}, CaseOperand{{t, k}}, table(table_type, rotary / 2), table(table_type, rotary / 2),
          CaseOperand{{list.size() % 2 ? i32 : i64, tokens}, integers(0, 49)}},
         std::move(attributes)});
  };
  for (std::string style : {"neox", "gptj"})
    for (DType t : {f32, bf16, f16}) {
      for (std::int64_t d : {2, 24, 64, 128})
        add(fmt::format("{}_{}_d{}", style, name_of(t), d), t, f32, {5, 4, d}, 2, d, {{"style", style}});
      add(fmt::format("{}_{}_partial", style, name_of(t)), t, t, {3, 2, 80}, 1, 38,
          {{"style", style}, {"rotary_dim", 38}});
      add(fmt::format("{}_{}_inverse", style, name_of(t)), t, t, {3, 2, 32}, 2, 32,
          {{"style", style}, {"inverse", true}});
      add(fmt::format("{}_{}_long_head", style, name_of(t)), t, f32, {1, 1, 2100}, 1, 2090,
          {{"style", style}, {"rotary_dim", 2090}});
    }
  add("batched", f32, f32, {2, 3, 4, 16}, 2, 16);
  add("one_token", f32, f32, {3, 16}, 1, 16);
  add("f32_to_bf16", f32, f32, {3, 2, 16}, 1, 16, {{"out_dtype", "bf16"}});
  for (std::string out : {"f8_e4m3", "f8_e5m2"})
    for (DType t : {f32, bf16, f16})
      add(fmt::format("{}_to_{}", name_of(t), out), t, f32, {5, 4, 64}, 2, t == f16 ? 64 : 32,
          {{"out_dtype", out},
           {"style", t == bf16 ? "gptj" : "neox"},
           {"rotary_dim", t == f16 ? 64 : 32},
           {"q_factor", 40.0},
           {"k_factor", t == f32 ? 1.0 : 700.0}});
  add("quantized_long_head", bf16, f32, {1, 1, 2100}, 1, 2090, {{"out_dtype", "f8_e4m3"}, {"rotary_dim", 2090}});
  add("quantized_odd_head", f32, f32, {3, 2, 35}, 1, 14,
      {{"out_dtype", "f8_e5m2"}, {"rotary_dim", 14}, {"style", "gptj"}});
  add("factors", bf16, f32, {3, 2, 40}, 1, 32, {{"rotary_dim", 32}, {"q_factor", 0.25}, {"k_factor", -3.0}});
  add("no_tokens", f32, f32, {0, 2, 16}, 1, 16);
  list.push_back({"no_k",
                  {CaseOperand{{bf16, {4, 3, 32}}}, std::nullopt, table(f32, 16), table(f32, 16),
                   CaseOperand{{i64, {4}}, integers(0, 49)}}});
  list.push_back({"strided",
                  {CaseOperand{{bf16, {4, 3, 33}}, normal(), 7}, CaseOperand{{bf16, {4, 2, 33}}, normal(), 9},
                   CaseOperand{{f32, {50, 8}}, uniform(-1, 1), 3}, CaseOperand{{f32, {50, 8}}, uniform(-1, 1), 5},
                   CaseOperand{{i32, {4}}, integers(0, 49)}},
                  {{"rotary_dim", 16}}});
  return list;
}

}  // namespace

OpSpec define() {
  return {
      .category = "Position",
      .summary = "Rotary position embedding of queries and keys",
      .semantics =
          "Each head's first rotary_dim elements (0: all) are rotated pairwise by the angle whose cosine and sine are "
          "at row positions[t] of the tables: "
          "(a, b) -> (a cos - b sin, b cos + a sin); inverse = true rotates back. Pairs are (i, i + rotary_dim / 2) in "
          "style neox (half-split) and (2 i, 2 i + "
          "1) in "
          "style gptj (interleaved). Other elements are copied. Frequency scaling (llama3, yarn, linear, dynamic) is "
          "in the tables. A position outside the "
          "tables is "
          "an error. Results are multiplied with q_factor and k_factor and rounded once; those in fp8 saturate, and "
          "may "
          "differ by one step. In place works; without k there is one result.",
      .inputs = {{"q", dtypes::real, "[.., Hq, D]", "queries"},
                 {"k", dtypes::real, "[.., Hk, D]", "keys, of the type of q", Mapping::one_to_one, true},
                 {"cos", dtypes::real, "[P, rotary_dim/2]", "cosines, f32 or the type of q", Mapping::one_to_many},
                 {"sin", dtypes::real, "[P, rotary_dim/2]", "sines, of the type of cos", Mapping::one_to_many},
                 {"positions", dtypes::index, "[..]", "position of each token", Mapping::one_to_many}},
      .outputs = {{"q_rotated", dtypes::real | dtypes::fp8, "[.., Hq, D]", "rotated queries"},
                  {"k_rotated", dtypes::real | dtypes::fp8, "[.., Hk, D]", "rotated keys, where k is given"}},
      .attributes = {{"style", std::string("neox"), "which elements form a pair", {"neox", "gptj"}},
                     {"rotary_dim", std::int64_t{0}, "elements of a head that are rotated; 0 means all"},
                     {"inverse", false, "rotate by the negative angle"},
                     {"q_factor", 1.0, "multiplies all elements of q_rotated before they are rounded"},
                     {"k_factor", 1.0, "multiplies all elements of k_rotated before they are rounded"},
                     {"out_dtype", std::string(), "element type of the results, fp8 too; that of q where empty"}},
      .infer = infer,
      .reference = reference,
      .operations =
          [](const Problem& p) {
            double elements = 0;
            for (const TensorType& output : p.outputs)
              elements += static_cast<double>(output.elements().value(p.maximum));
            return 3 * elements;
          },
      .bytes =
          [](const Problem& p) {  // of the tables only the rows that positions name
            double bytes = static_cast<double>(p.input(in::positions).bytes().value(p.maximum));
            for (std::size_t i : {in::q, in::k})
              if (p.has(i))
                bytes += static_cast<double>(p.input(i).bytes().value(p.maximum)) +
                         static_cast<double>(p.outputs[i].bytes().value(p.maximum));
            const double row =
                2.0 * static_cast<double>(p.size(in::cos, 1)) * static_cast<double>(size_of(p.input(in::cos).dtype));
            return bytes + row * static_cast<double>(p.input(in::positions).elements().value(p.maximum));
          },
      .rounding_depth = [](const Problem&) { return 3.0; },
      .integer_slack = 1,
      .cases = cases,
      .in_place = {0, 1},
  };
}

}  // namespace cermet::rope_op
