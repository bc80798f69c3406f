#include "format/fp8.hpp"
#include "op/attention.hpp"
#include "op/kv_cache.hpp"
#include "op/operands.hpp"
#include "op/schema/infer.hpp"
#include "op/schema/operator.hpp"
#include "op/schema/reference.hpp"

namespace cermet::rope_and_cache_op {
namespace {

using enum op::rope_and_cache::Operand;
constexpr std::string_view name = "rope_and_cache";

std::vector<TensorType> infer(const Problem& p) {
  const KvCacheAxes axes(p.attributes.text("layout"));
  for (const std::size_t operand : {q, k, v}) expect_rank(p, operand, 3);
  for (const std::size_t operand : {k, v}) {
    expect_dtype(p, operand, p.input(q).dtype, "that of q");
    expect_dim(p, operand, 0, dim_of(p, q, 0), "tokens of q");
  }
  expect_dim(p, k, 2, dim_of(p, q, 2), "head size of q");
  expect_dim(p, v, 1, dim_of(p, k, 1), "heads of k");
  check_kv_cache(p, k_cache, k_scale);
  expect_dim(p, k_cache, axes.heads, dim_of(p, k, 1), "heads of k");
  expect_dim(p, k_cache, 3, dim_of(p, k, 2), "head size of k");
  expect_dim(p, v_cache, 3, dim_of(p, v, 2), "head size of v");
  for (const std::size_t list : {positions, slots}) expect_dims(p, list, {dim_of(p, q, 0)}, "tokens of q");
  for (const std::size_t weight : {q_weight, k_weight})
    if (p.has(weight)) expect_dims(p, weight, {dim_of(p, q, 2)}, "head size of q");
  const Dim head_size = dim_of(p, q, 2);
  if (!head_size.is_constant()) bad_operand(p, q, "a constant head size", p.input(q).to_string());
  const std::int64_t asked = p.attributes.integer("rotary_dim"), rotary = asked == 0 ? head_size.constant() : asked;
  if (rotary < 0 || rotary > head_size.constant() || rotary % 2 != 0)
    bad_attribute(
        p, "rotary_dim",
        fmt::format("an even number of at most {} (the head size; 0 means all of it, which must then be even)",
                    head_size.constant()));
  for (const std::size_t table : {cos, sin}) {
    expect_rank(p, table, 2);
    expect_dim(p, table, 1, rotary / 2, "half of rotary_dim");
    if (p.input(table).dtype != DType::f32) expect_dtype(p, table, p.input(q).dtype, "that of q, or f32");
  }
  expect_dim(p, sin, 0, dim_of(p, cos, 0), "that of cos");
  expect_dtype(p, sin, p.input(cos).dtype, "that of cos");
  if (!(p.attributes.number("eps") >= 0)) bad_attribute(p, "eps", "a non-negative number");
  std::vector<TensorType> outputs{
      {dtype_attribute(p, "out_dtype", p.input(q).dtype, attention_query_dtypes), p.input(q).dims},
      p.input(k_cache),
      p.input(v_cache)};
  if (has_token_scales(p, k_scale)) outputs.insert(outputs.end(), {p.input(k_scale), p.input(v_scale)});
  return outputs;
}

/// A head in progress, with the sum of the absolute terms behind each element.
struct Head {
  std::vector<double> value, magnitude;
};

/// The head of operand `which` whose first element has dense index `begin`, normalized where there is a weight.
Head load_head(const ReferenceCall& call, std::size_t which, std::int64_t begin) {
  const auto size = static_cast<std::size_t>(call.inputs[which].shape[2]);
  Head head{std::vector<double>(size), std::vector<double>(size)};
  for (std::size_t i = 0; i < size; ++i) head.value[i] = load(call.inputs[which], begin + static_cast<std::int64_t>(i));
  const std::size_t weight = which - q + q_weight;
  if (which != v && call.has(weight)) {
    double squares = 0;
    for (const double x : head.value) squares += x * x;
    const double scale = 1 / std::sqrt(squares / static_cast<double>(size) + call.attributes.number("eps"));
    for (std::size_t i = 0; i < size; ++i)
      head.value[i] *=
          scale * (load(call.inputs[weight], static_cast<std::int64_t>(i)) + call.attributes.number("weight_offset"));
  }
  for (std::size_t i = 0; i < size; ++i) head.magnitude[i] = std::abs(head.value[i]);
  return head;
}

void rotate(const ReferenceCall& call, std::int64_t token, Head& head) {
  const TensorView& table = call.inputs[cos];
  const std::int64_t half = table.shape[1], position = load_index(call.inputs[positions], token);
  check_index(name, "positions", position, table.shape[0]);
  const bool neox = call.attributes.text("style") == "neox";
  for (std::int64_t i = 0; i < half; ++i) {
    const auto first = static_cast<std::size_t>(neox ? i : 2 * i),
               second = static_cast<std::size_t>(neox ? half + i : 2 * i + 1);
    const double a = head.value[first], b = head.value[second], c = load(table, position * half + i),
                 s = load(call.inputs[sin], position * half + i);
    head.value[first] = a * c - b * s;
    head.value[second] = b * c + a * s;
    head.magnitude[first] = std::abs(a * c) + std::abs(b * s);
    head.magnitude[second] = std::abs(b * c) + std::abs(a * s);
  }
}

/// Stores a head of k (`which` 0) or v (1) in its slot, as kv_cache_write does.
void store_in_cache(const ReferenceCall& call, std::size_t which, std::int64_t slot, std::int64_t head_index,
                    const Head& head) {
  const KvCacheAxes axes(call.attributes.text("layout"));
  const TensorView& cache = call.outputs[1 + which];
  const TensorView& keys = call.outputs[1];
  const std::int64_t block = keys.shape[axes.block];
  const CacheRow row = cache_row(cache, axes, slot / block, slot % block, head_index);
  const bool scaled = call.has(k_scale), per_token = call.outputs.size() > 3;
  float scale = 1;
  if (per_token) {
    const float top = cache.dtype == DType::i8        ? 127.0f
                      : cache.dtype == DType::f8_e4m3 ? format::e4m3_max
                                                      : format::e5m2_max;
    float largest = 0;
    for (const double x : head.value)
      largest = std::isnan(x) || std::isnan(largest) ? NAN : std::max(largest, std::abs(static_cast<float>(x)));
    scale = largest / top;
    const CacheRow of_key = cache_row(keys, axes, slot / block, slot % block, head_index);
    store(call.outputs[3 + which], of_key.first / keys.shape[3], scale);
  } else if (scaled) {
    scale = static_cast<float>(
        load(call.inputs[k_scale + which], head_index * head_scale_step(call.inputs[k_scale + which])));
  }
  for (std::size_t d = 0; d < head.value.size(); ++d) {
    const std::int64_t at = row.first + static_cast<std::int64_t>(d) * row.step;
    const auto x = static_cast<float>(head.value[d]);
    store(cache, at, !scaled ? head.value[d] : scale == 0 ? 0.0f : x / scale);
    note_magnitude(call, 1 + which, at, head.magnitude[d]);
  }
}

void reference(const ReferenceCall& call) {
  const TensorView &queries = call.inputs[q], &keys = call.inputs[k], &cache = call.outputs[1];
  const KvCacheAxes axes(call.attributes.text("layout"));
  for (std::int64_t t = 0; t < queries.shape[0]; ++t) {
    for (std::int64_t h = 0; h < queries.shape[1]; ++h) {
      const std::int64_t begin = (t * queries.shape[1] + h) * queries.shape[2];
      Head head = load_head(call, q, begin);
      rotate(call, t, head);
      for (std::size_t d = 0; d < head.value.size(); ++d) {
        store(call.outputs[0], begin + static_cast<std::int64_t>(d), head.value[d]);
        note_magnitude(call, 0, begin + static_cast<std::int64_t>(d), head.magnitude[d]);
      }
    }
    const std::int64_t slot = load_index(call.inputs[slots], t);
    if (slot < 0) continue;
    check_index(name, "slots", slot, cache.shape[0] * cache.shape[axes.block]);
    for (std::int64_t h = 0; h < keys.shape[1]; ++h) {
      Head key = load_head(call, k, (t * keys.shape[1] + h) * keys.shape[2]);
      rotate(call, t, key);
      store_in_cache(call, 0, slot, h, key);
      store_in_cache(call, 1, slot, h, load_head(call, v, (t * keys.shape[1] + h) * call.inputs[v].shape[2]));
    }
  }
}

struct Sizes {
  std::int64_t heads = 4, kv_heads = 2, d = 32, dv = 32, block = 8, rotary = 0;
  DType from = DType::f32, to = DType::f32;
  bool norm = false;
  int scales = 0;  ///< 1 per head, 2 per token
};

/// q, k and v as slices of rows that hold all of them.
Case make_case(std::string case_name, const Sizes& s, std::vector<double> slot_list, Attributes attributes = {}) {
  const auto tokens = static_cast<std::int64_t>(slot_list.size());
  const AttributeValue* layout = attributes.find("layout");
  const bool hnd = !layout || std::get<std::string>(*layout) == "hnd";
  const auto cache = [&](std::int64_t last) {
    return hnd ? Dims{3, s.kv_heads, s.block, last} : Dims{3, s.block, s.kv_heads, last};
  };
  const std::int64_t rotary = s.rotary == 0 ? s.d : s.rotary;
  const DType table = s.norm ? DType::f32 : s.from, index = tokens % 2 ? DType::i64 : DType::i32;
  if (s.rotary != 0) attributes.set("rotary_dim", s.rotary);
  Case c{std::move(case_name),
         {CaseOperand{{s.from, {tokens, s.heads, s.d}}, normal(), 8},
          CaseOperand{{s.from, {tokens, s.kv_heads, s.d}}, normal(2), 8},
          CaseOperand{{s.from, {tokens, s.kv_heads, s.dv}}}, CaseOperand{{table, {40, rotary / 2}}, uniform(-1, 1)},
          CaseOperand{{table, {40, rotary / 2}}, uniform(-1, 1)}, CaseOperand{{index, {tokens}}, integers(0, 39)},
          CaseOperand{{s.to, cache(s.d)}}, CaseOperand{{s.to, cache(s.dv)}},
          CaseOperand{{index, {tokens}}, values(std::move(slot_list))}},
         std::move(attributes)};
  c.inputs.resize(v_scale + 1);
  if (s.norm)
    c.inputs[q_weight] = CaseOperand{{DType::f32, {s.d}}, normal(0.2, 1)},
    c.inputs[k_weight] = CaseOperand{{DType::f32, {s.d}}, normal(0.2, 1)};
  if (s.scales == 0) return c;
  Dims scale_dims{s.kv_heads};
  if (s.scales == 2) scale_dims = cache(0), scale_dims.pop_back();
  for (const std::size_t scale : {k_scale, v_scale})
    c.inputs[scale] = CaseOperand{{DType::f32, scale_dims}, uniform(0.02, 0.03)};
  return c;
}

std::vector<Case> cases() {
  std::vector<Case> list;
  using enum DType;
  const std::vector<double> order{17, 3, -1, 0, 23, 8, 9};
  for (DType from : {f32, bf16, f16})
    for (DType to : {f32, bf16, f16}) {
      list.push_back(make_case(fmt::format("{}_to_{}", name_of(from), name_of(to)), {.from = from, .to = to}, order));
      list.push_back(make_case(fmt::format("{}_to_{}_norm", name_of(from), name_of(to)),
                               {.d = 128, .dv = 64, .from = from, .to = to, .norm = true}, order));
    }
  for (const std::string style : {"neox", "gptj"})
    list.push_back(make_case(style + "_partial",
                             {.d = 80, .dv = 17, .rotary = 38, .from = bf16, .to = f16, .norm = style == "gptj"}, order,
                             {{"style", style}}));
  for (DType to : {i8, f8_e4m3, f8_e5m2})
    for (const int scales : {1, 2}) {
      const std::string layout = scales == 2 ? "nhd" : "hnd";
      list.push_back(make_case(fmt::format("{}_{}_scales", name_of(to), scales == 2 ? "token" : "head"),
                               {.d = 40, .dv = 24, .from = bf16, .to = to, .norm = scales == 2, .scales = scales},
                               order, {{"layout", layout}}));
    }
  for (DType to : {i8, f8_e4m3, f8_e5m2}) {
    const int scales = to == f8_e4m3 ? 2 : 1;
    Case c = make_case(fmt::format("{}_columns", name_of(to)),
                       {.d = 64, .dv = to == i8 ? 17 : 64, .block = 32, .from = bf16, .to = to, .scales = scales},
                       {17, 3, -1, 0, 93, 40, 41});
    c.inputs[v_cache]->type.dims = {3, 2, 2, to == i8 ? 17 : 64, 16};
    list.push_back(std::move(c));
  }
  list.push_back(make_case("e4m3_queries", {.d = 64, .from = bf16, .to = f8_e4m3, .norm = true, .scales = 2}, order,
                           {{"out_dtype", "f8_e4m3"}}));
  list.push_back(make_case("one_scale", {.from = bf16, .to = f8_e4m3, .scales = 1}, order));
  list.back().inputs[k_scale]->type.dims = {};
  list.back().inputs[v_scale]->type.dims = {1};
  list.push_back(make_case("fp8_no_scales", {.d = 34, .dv = 33, .to = f8_e4m3}, order));
  list.push_back(make_case("out_dtype", {.to = bf16, .norm = true}, order,
                           {{"out_dtype", "bf16"}, {"weight_offset", 1.0}, {"eps", 1e-5}}));
  list.push_back(make_case(
      "one_token", {.heads = 32, .kv_heads = 8, .d = 64, .dv = 64, .block = 16, .from = bf16, .to = bf16}, {21}));
  list.push_back(make_case("repeated_slot", {.heads = 1, .kv_heads = 1, .d = 8, .dv = 8}, {2, 2, 5, 2}));
  std::vector<double> many(1503);  // two of them twice: next to each other, and far apart
  for (std::size_t i = 0; i < many.size(); ++i) many[i] = static_cast<double>(i * 7 % 1536);
  many[9] = many[13], many[5] = many[1500];
  list.push_back(make_case("many_tokens",
                           {.heads = 3, .kv_heads = 1, .d = 8, .dv = 8, .block = 512, .from = bf16, .to = bf16}, many));
  list.push_back(make_case("no_tokens", {}, {}));
  list.push_back(make_case("q_norm_only", {.norm = true}, order));
  list.back().inputs[k_weight].reset();
  list.push_back(make_case("nan_head", {.heads = 2, .kv_heads = 2, .d = 4, .dv = 4, .norm = true}, {3, 4}));
  list.back().inputs[k]->fill = values({1, 2, NAN, 4, 5, 6, 7, 8, 0, 0, 0, 0});
  return list;
}

}  // namespace

OpSpec define() {
  return {
      .category = "Attention and cache",
      .summary = "Rotates queries and keys of new tokens and stores keys and values in a paged cache",
      .semantics =
          "rope and kv_cache_write in one: heads of q and k are normalized (as rms_norm does with the weight, where "
          "one is given), rotated (as in rope), and "
          "q is rounded once to the result while k is rounded once, or quantized, into its slot of the cache beside v "
          "(as in kv_cache_write). Everything "
          "before these roundings is float32. A negative slot skips the token's k and v but not its q. q, k and v may "
          "be slices of one matrix whose rows hold "
          "all three. The caches are updated in place.",
      .inputs = {{"q", dtypes::real, "[T, Hq, D]", "queries", Mapping::many_to_many},
                 {"k", dtypes::real, "[T, heads, D]", "new keys, of the type of q", Mapping::many_to_many},
                 {"v", dtypes::real, "[T, heads, Dv]", "new values, of the type of q", Mapping::one_to_one},
                 {"cos", dtypes::real, "[P, rotary_dim/2]", "cosines, f32 or the type of q", Mapping::one_to_many},
                 {"sin", dtypes::real, "[P, rotary_dim/2]", "sines, of the type of cos", Mapping::one_to_many},
                 {"positions", dtypes::index, "[T]", "position of each token", Mapping::one_to_many},
                 {"k_cache", kv_cache_dtypes, "[blocks, heads, block, D]", "paged keys; updated", Mapping::barrier},
                 {"v_cache", kv_cache_dtypes, "[blocks, heads, block, Dv]", "paged values, or in columns; updated",
                  Mapping::barrier},
                 {"slots", dtypes::index, "[T]", "where each token goes", Mapping::barrier},
                 {"q_weight", dtypes::real, "[D]", "scale per element of normalized queries", Mapping::one_to_many,
                  true},
                 {"k_weight", dtypes::real, "[D]", "scale per element of normalized keys", Mapping::one_to_many, true},
                 {"k_scale",
                  {DType::f32},
                  "[], [heads] or [blocks, heads, block]",
                  "scales of the keys: given, one or per head, or filled per token",
                  Mapping::barrier,
                  true},
                 {"v_scale",
                  {DType::f32},
                  "[], [heads] or [blocks, heads, block]",
                  "scales of the values",
                  Mapping::barrier,
                  true}},
      .outputs =
          {{"q_rotated", attention_query_dtypes, "[T, Hq, D]", "rotated queries"},
           {"k_cache", kv_cache_dtypes, "[blocks, heads, block, D]", "the updated operand"},
           {"v_cache", kv_cache_dtypes, "[blocks, heads, block, Dv]", "the updated operand"},
           {"k_scale", {DType::f32}, "[blocks, heads, block]", "the updated operand, where scales are per token"},
           {"v_scale", {DType::f32}, "[blocks, heads, block]", "the updated operand, where scales are per token"}},
      .attributes = {{"style", std::string("neox"), "which elements form a pair", {"neox", "gptj"}},
                     {"rotary_dim", std::int64_t{0}, "elements of a head that are rotated; 0 means all"},
                     {"eps", 1e-6, "added to the mean square of a head that is normalized"},
                     {"weight_offset", 0.0, "added to the weights"},
                     {"out_dtype", std::string(), "element type of q_rotated, f8_e4m3 too; that of q where empty"},
                     kv_cache_layout_attribute()},
      .infer = infer,
      .reference = reference,
      .operations =
          [](const Problem& p) {
            double elements = 0;
            for (const std::size_t operand : {q, k, v})
              elements += static_cast<double>(p.input(operand).elements().value(p.maximum));
            return 5 * elements;
          },
      .bytes =
          [](const Problem& p) {
            const auto moved = [&](std::size_t from, DType to) {
              return static_cast<double>(p.input(from).elements().value(p.maximum)) *
                     static_cast<double>(size_of(p.input(from).dtype) + size_of(to));
            };
            const double tables = 2.0 * static_cast<double>(p.size(q, 0) * p.size(cos, 1)) *
                                  static_cast<double>(size_of(p.input(cos).dtype));
            return moved(q, p.outputs[0].dtype) + moved(k, p.input(k_cache).dtype) + moved(v, p.input(v_cache).dtype) +
                   tables;
          },
      .rounding_depth = [](const Problem& p) { return static_cast<double>(p.size(q, 2)) / 2 + 16; },
      .integer_slack = 1,
      .cases = cases,
      .aliases = {-1, 6, 7, 11, 12},
      .in_place = {0},
  };
}

}  // namespace cermet::rope_and_cache_op
