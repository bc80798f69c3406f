// The rules of whole operators, and after them those of algebra, which are below rules/. A row reads "before -> after";
// its side condition and the new node's attributes follow.
#include <algorithm>

#include "graph/rewrite/replace.hpp"
#include "op/quantization.hpp"

namespace cermet {
namespace {

bool is_f32(const Match& m, const char* name) { return m.type(name).dtype == DType::f32; }
std::string dtype_of(const Match& m, const char* name) { return std::string(name_of(m.type(name).dtype)); }

/// Some attributes of a node of the pattern, under the same names.
void copy_attributes(Attributes& to, const Attributes& from, std::span<const std::string_view> names) {
  for (const std::string_view name : names) to.set(name, *from.find(name));
}

constexpr std::string_view norm_attributes[] = {"eps", "weight_offset"};
constexpr std::string_view added_norm_attributes[] = {"eps", "weight_offset", "round_sum"};
constexpr std::string_view dynamic_attributes[] = {"granularity", "group_size", "asymmetric", "range", "out_dtype"};
constexpr std::string_view static_attributes[] = {"mode", "out_dtype"};
constexpr std::string_view gate_attributes[] = {"gate", "interleaved"};
constexpr std::string_view rope_attributes[] = {"style", "rotary_dim"};
constexpr std::string_view cache_attributes[] = {"layout"};

/// The operators that quantize keep what they compute in float32: so must the value in between have been, and its rows
/// are quantized by themselves, with any scales.
bool quantizes_rows(const Match& m) {
  const Attributes quantize = m.attributes(m.nodes.size() - 1);
  return is_f32(m, "y") && quantize.text("granularity") != "tensor" && !quantize.flag("power_of_two");
}
/// quantize as the operators that do it know it: one scale or one for each column, to formats that they write.
bool quantizes_columns(const Match& m) {
  const Attributes quantize = m.attributes(m.nodes.size() - 1);
  const bool by_column = m.type("scale").rank() <= 1 && (!m.has("offset") || m.type("offset").rank() <= 1);
  return by_column && quantize.flag("saturate") && quantized_types.contains(m.type("q").dtype);
}
bool is_unrounded(const Match& m) { return is_f32(m, "y") && quantizes_columns(m); }

/// Some attributes of the pattern's first node and some of its second.
Attributes of_both(const Match& m, std::span<const std::string_view> first, std::span<const std::string_view> second) {
  Attributes a;
  copy_attributes(a, m.attributes(0), first);
  copy_attributes(a, m.attributes(1), second);
  return a;
}
Attributes normed_dynamic(const Match& m) { return of_both(m, norm_attributes, dynamic_attributes); }
Attributes normed_static(const Match& m) { return of_both(m, norm_attributes, static_attributes); }
Attributes added_dynamic(const Match& m) { return of_both(m, added_norm_attributes, dynamic_attributes); }
Attributes added_static(const Match& m) { return of_both(m, added_norm_attributes, static_attributes); }
Attributes gated_dynamic(const Match& m) { return of_both(m, gate_attributes, dynamic_attributes); }
Attributes gated_static(const Match& m) { return of_both(m, gate_attributes, static_attributes); }

/// Two whole tensors added; the sum is normalized as it was stored.
bool adds_alike(const Match& m) { return m.type("a") == m.type("b") && m.type("sum") == m.type("a"); }
Attributes added_norm(const Match& m) {
  Attributes a;
  copy_attributes(a, m.attributes(1), norm_attributes);
  a.set("round_sum", true);
  a.set("out_dtype", dtype_of(m, "y"));
  if (is_f32(m, "sum")) a.set("round_sum", false);  // storing a float32 sum rounds nothing
  return a;
}

/// A vector of weights, one for each column. A narrower result would have been rounded before it was added.
bool adds_bias(const Match& m) {
  const bool is_weight =
      m.editor->value(m.at("b")).kind == ValueKind::constant && m.type("b").dims == Dims{m.type("w").dims[0]};
  return is_weight && dtypes::real.contains(m.type("b").dtype) && is_f32(m, "y") && is_f32(m, "z");
}
Attributes with_attributes_of_product(const Match& m) { return m.attributes(0); }

/// The reshapes join leading dimensions to rows, and part them again.
bool keeps_rows(const Match& m) {
  const Dims &x = m.type("x").dims, &a = m.type("a").dims, &y = m.type("y").dims, &z = m.type("z").dims;
  if (x.empty() || a.empty() || y.empty() || z.size() != x.size()) return false;
  return x.back() == a.back() && y.back() == z.back() && std::equal(x.begin(), x.end() - 1, z.begin());
}

bool is_dual(const Match& m) {
  return is_f32(m, "gate") && is_f32(m, "up") && is_f32(m, "a") && m.type("w_gate") == m.type("w_up") &&
         m.has("b_gate") == m.has("b_up");
}
Attributes dual(const Match& m) { return {{"activation", "silu"}, {"out_dtype", dtype_of(m, "y")}}; }

bool rotates_alone(const Attributes& rope) {
  return !rope.flag("inverse") && rope.number("q_factor") == 1 && rope.number("k_factor") == 1;
}
/// The rotated keys go to the cache alone and were not rounded before.
bool rotates_forward(const Match& m) {
  return is_f32(m, "k_rotated") && m.type("q").rank() == 3 && rotates_alone(m.attributes(0));
}
Attributes rotated(const Match& m) {
  Attributes a = of_both(m, rope_attributes, cache_attributes);
  a.set("out_dtype", dtype_of(m, "q_rotated"));
  return a;
}

/// The head norms are those that the operator does: of both or of none, with one eps.
bool norms_and_rotates(const Match& m) {
  const Attributes q = m.attributes(0), k = m.attributes(1), rope = m.attributes(2);
  const bool alike = q.number("eps") == k.number("eps") && q.number("weight_offset") == k.number("weight_offset");
  return alike && is_f32(m, "q_normed") && is_f32(m, "k_normed") && is_f32(m, "k_rotated") && m.type("q").rank() == 3 &&
         rotates_alone(rope);
}
Attributes normed_and_rotated(const Match& m) {
  Attributes a;
  copy_attributes(a, m.attributes(0), norm_attributes);
  copy_attributes(a, m.attributes(2), rope_attributes);
  copy_attributes(a, m.attributes(3), cache_attributes);
  a.set("out_dtype", dtype_of(m, "q_rotated"));
  return a;
}

/// Windows of one pixel each. The sum of one element loses the sign of a zero.
bool pools_nothing(const Match& m) {
  const Attributes pool = m.attributes(0);
  const auto all = [&](std::string_view name, std::int64_t value) {
    return std::ranges::all_of(pool.integers(name), [&](std::int64_t e) { return e == value; });
  };
  return !pool.integers("kernel").empty() && all("kernel", 1) && all("strides", 1) && all("pads", 0);
}

/// A float32 result that is rounded to a narrower floating type at once may be stored in that type.
bool narrows(const Match& m) { return is_f32(m, "y") && dtypes::real.contains(m.type("z").dtype); }
Attributes with_type_of_cast(const Match& m) {
  Attributes a = m.attributes(0);
  a.set("out_dtype", dtype_of(m, "z"));
  return a;
}

std::vector<Rule> make_rules() {
  using enum RoundingClass;
  std::vector<Rule> rules{
      text_rule("add-norm", exact, "sum = add(a, b); y = rms_norm(sum, w?) -> y, sum = add_rms_norm(a, b, w?)",
                adds_alike, added_norm),
      text_rule("norm-dynamic-quant", strict,
                "y = rms_norm(x, w?); q, scale, zero? = dynamic_quant(y, smooth?) -> q, scale, zero? = "
                "rms_norm_quant(x, w?, smooth?)",
                quantizes_rows, normed_dynamic),
      text_rule("norm-quantize", strict,
                "y = rms_norm(x, w?); q = quantize(y, scale, offset?) -> q = rms_norm_quant(x, w?, -, scale, offset?)",
                is_unrounded, normed_static),
      text_rule("add-norm-dynamic-quant", strict,
                "y, sum = add_rms_norm(x, r, w?); q, scale, zero? = dynamic_quant(y, smooth?) -> q, sum, scale, zero? "
                "= add_rms_norm_quant(x, r, w?, smooth?)",
                quantizes_rows, added_dynamic),
      text_rule("add-norm-quantize", strict,
                "y, sum = add_rms_norm(x, r, w?); q = quantize(y, scale, offset?) -> q, sum = add_rms_norm_quant(x, r, "
                "w?, -, scale, offset?)",
                is_unrounded, added_static),
      text_rule("gate-dynamic-quant", strict,
                "y = silu_and_mul(x); q, scale, zero? = dynamic_quant(y, smooth?) -> q, scale, zero? = "
                "silu_and_mul_quant(x, smooth?)",
                quantizes_rows, gated_dynamic),
      text_rule("gate-quantize", strict,
                "y = silu_and_mul(x); q = quantize(y, scale, offset?) -> q = silu_and_mul_quant(x, -, scale, offset?)",
                is_unrounded, gated_static),
      text_rule("linear-bias", strict, "y = linear(x, w, -); z = add(y, b) -> z = linear(x, w, b)", adds_bias,
                with_attributes_of_product),
      text_rule("linear-of-rows", exact, "a = reshape(x); y = linear(a, w, b?); z = reshape(y) -> z = linear(x, w, b?)",
                keeps_rows, [](const Match& m) { return m.attributes(1); }),
      text_rule("pool-of-single-pixels", strict, "average_pool(x) -> x", pools_nothing, nullptr),
      text_rule("dual-linear", strict,
                "gate = linear(x, w_gate, b_gate?); a = silu(gate); up = linear(x, w_up, b_up?); y = mul(a, up) -> y = "
                "dual_linear(x, w_gate, w_up, b_gate?, b_up?)",
                is_dual, dual),
      text_rule("dual-linear-cast", exact,
                "y = dual_linear(x, w_gate, w_up, b_gate?, b_up?); z = cast(y) -> z = dual_linear(x, w_gate, w_up, "
                "b_gate?, b_up?)",
                narrows, with_type_of_cast),
      text_rule("norm-rope-and-cache", strict,
                "q_normed = rms_norm(q, q_w); k_normed = rms_norm(k, k_w); q_rotated, k_rotated = rope(q_normed, "
                "k_normed, cos, sin, positions); "
                "k_new, v_new, ks_new?, vs_new? = kv_cache_write(k_rotated, v, k_cache, v_cache, slots, ks?, vs?)"
                " -> q_rotated, k_new, v_new, ks_new?, vs_new? = rope_and_cache(q, k, v, cos, sin, positions, k_cache, "
                "v_cache, slots, q_w, k_w, ks?, vs?)",
                norms_and_rotates, normed_and_rotated),
      text_rule("rope-and-cache-cast", exact,
                "y, k_new, v_new, ks_new?, vs_new? = rope_and_cache(q, k, v, cos, sin, positions, k_cache, v_cache, "
                "slots, q_w?, k_w?, ks?, vs?); z = cast(y)"
                " -> z, k_new, v_new, ks_new?, vs_new? = rope_and_cache(q, k, v, cos, sin, positions, k_cache, "
                "v_cache, slots, q_w?, k_w?, ks?, vs?)",
                narrows, with_type_of_cast),
      text_rule("rope-and-cache", strict,
                "q_rotated, k_rotated = rope(q, k, cos, sin, positions); k_new, v_new, ks_new?, vs_new? = "
                "kv_cache_write(k_rotated, v, k_cache, v_cache, "
                "slots, ks?, vs?)"
                " -> q_rotated, k_new, v_new, ks_new?, vs_new? = rope_and_cache(q, k, v, cos, sin, positions, k_cache, "
                "v_cache, slots, -, -, ks?, vs?)",
                rotates_forward, rotated),
  };
  rules.push_back(
      {.name = "rope",
       .summary =
           "add(mul(x, cos), mul(concat(neg(second half of x), first half of x), sin)) -> rope(x, cos, sin, positions)",
       .rounding = strict,
       .anchor = OpKind::add,
       .stage = 1,
       .apply = raise_rope});
  rules.push_back({.name = "rope-unrounded",
                   .summary = "the same of 16 bits, whose products were rounded before they were added",
                   .rounding = fast,
                   .anchor = OpKind::add,
                   .stage = 1,
                   .apply = raise_rope});
  rules.push_back({.name = "stack-linears",
                   .summary = "linear(x, a), linear(x, b), .. -> split(linear(x, concat(a, b, ..)))",
                   .rounding = exact,
                   .anchor = OpKind::linear,
                   .stage = 2,
                   .apply = stack_linears});
  rules.push_back(
      {.name = "linear-reshape",
       .summary = "y = linear(x, w, b?); z = reshape(y) -> a = reshape(x); z = linear(a, w, b?), where rows stay whole",
       .rounding = exact,
       .anchor = OpKind::reshape,
       .stage = 1,
       .apply = part_rows_before_linear});
  rules.push_back({.name = "quantize-before-movement",
                   .summary = "dequantize(quantize(reshape(x), s), s) -> reshape(dequantize(quantize(x, s), s)), and "
                              "so for transpose, with one scale for all",
                   .rounding = exact,
                   .anchor = OpKind::dequantize,
                   .stage = 1,
                   .apply = quantize_before_movement});
  rules.push_back({.name = "split-gathers",
                   .summary = "gather(transpose(reshape(x)), 0), gather(.., 1), .. -> transpose(reshape(split(x))), .. "
                              "where the indices are of columns of x",
                   .rounding = exact,
                   .anchor = OpKind::gather,
                   .stage = 1,
                   .apply = split_gathers});
  rules.push_back(
      {.name = "split-slices",
       .summary = "slice(x, columns), slice(x, the next), .. -> split(x), where the slices share out all columns of x",
       .rounding = exact,
       .anchor = OpKind::slice,
       .stage = 2,
       .apply = split_slices});
  rules.push_back({.name = "choose-once",
                   .summary = "where(widened c, a, b) -> expand(where(c, a, b)), where a and b are numbers and c was "
                              "widened by expand or by an and with truth",
                   .rounding = exact,
                   .anchor = OpKind::where,
                   .stage = 1,
                   .apply = choose_once});
  rules.push_back({.name = "patches-as-rows",
                   .summary = "conv(x, w, b?) -> transpose(linear(windows of x as rows, w, b?)), where windows lie "
                              "side by side and channels are few",
                   .rounding = strict,
                   .anchor = OpKind::conv,
                   .stage = 1,
                   .apply = multiply_patches});
  rules.push_back({.name = "transposes-around-reshape",
                   .summary = "transpose(reshape(transpose(x))) -> reshape(x), where every element stays where it was",
                   .rounding = exact,
                   .anchor = OpKind::transpose,
                   .stage = 1,
                   .apply = cancel_transposes});
  rules.push_back({.name = "transposed-columns",
                   .summary = "linear(reshape(transpose(x)), w, b?) -> linear(reshape(x), w', b?), where w' has the "
                              "columns of w in the order of x",
                   .rounding = strict,
                   .anchor = OpKind::linear,
                   .stage = 1,
                   .apply = transpose_weight});
  rules.push_back({.name = "rows-before-linear",
                   .summary = "add(moved(linear(x, w, b?)), r) -> add(linear(moved(x), w, b?), r), where transposes, "
                              "slices and joints move whole rows",
                   .rounding = exact,
                   .anchor = OpKind::linear,
                   .stage = 2,
                   .apply = move_rows_before_linear});
  rules.push_back({.name = "rows-before-norm",
                   .summary = "linear(moved(layer_norm(x, ..)), w) -> linear(layer_norm(moved(x), ..), w), where "
                              "transposes, slices and joints move whole rows",
                   .rounding = exact,
                   .anchor = OpKind::layer_norm,
                   .stage = 2,
                   .apply = move_rows_before_norm});
  rules.push_back({.name = "attention",
                   .summary = "matmul(softmax(scores), v) -> flash_attention(q, k, v, bias, mask), where scores are a "
                              "number times q k' plus terms that broadcast",
                   .rounding = strict,
                   .anchor = OpKind::matmul,
                   .stage = 1,
                   .apply = derive_attention});
  rules.push_back({.name = "attention-unrounded",
                   .summary = "the same, where scores or weights were rounded to 16 bits",
                   .rounding = fast,
                   .anchor = OpKind::matmul,
                   .stage = 1,
                   .apply = derive_attention});
  rules.push_back({.name = "attention-layouts",
                   .summary = "transpose(flash_attention(transpose(q), expand(k), expand(v))) -> flash_attention(q, k, "
                              "v) with layouts and groups of heads",
                   .rounding = strict,
                   .anchor = OpKind::flash_attention,
                   .stage = 2,
                   .apply = read_attention_in_place});
  rules.push_back({.name = "attention-bias-as-mask",
                   .summary = "flash_attention(q, k, v, where(m, 0, -inf)) -> flash_attention(q, k, v, m as mask), or "
                              "a number up to -1e30 in place of -inf",
                   .rounding = fast,
                   .anchor = OpKind::flash_attention,
                   .stage = 2,
                   .apply = mask_in_place_of_bias});
  rules.push_back({.name = "attention-keys",
                   .summary = "flash_attention(q, k, v, key <= position as mask) -> flash_attention(q, k, v), causal, "
                              "with a window, or with lengths of the sequences",
                   .rounding = strict,
                   .anchor = OpKind::flash_attention,
                   .stage = 2,
                   .apply = find_attention_keys});
  rules.push_back({.name = "attention-keys-unrounded",
                   .summary = "the same, where a masked key has a finite score up to -1e30",
                   .rounding = fast,
                   .anchor = OpKind::flash_attention,
                   .stage = 2,
                   .apply = find_attention_keys});
  using enum RuleClass;
  const auto add = [&](std::span<const AlgebraRow> rows, RuleClass rule_class) {
    for (const AlgebraRow& row : rows) rules.push_back(algebra_rule(row, rule_class));
  };
  add(associative_rules(), associative);
  add(commutative_rules(), commutative);
  add(distributive_rules(), distributive);
  add(identity_rules(), identities);
  add(lattice_rules(), lattice);
  add(power_rules(), powers);
  add(reduction_rules(), reductions);
  add(movement_rules(), movement);
  add(product_rules(), products);
  add(activation_rules(), raising);
  add(norm_rules(), raising);
  add(group_norm_rules(), raising);
  return rules;
}

}  // namespace

std::span<const Rule> rewrite_rules() {
  static const std::vector<Rule> rules = make_rules();
  return rules;
}

}  // namespace cermet
