#include "kernel/cuda/gemv/prologue.hpp"

#include <algorithm>

#include "base/checked.hpp"
#include "kernel/cuda/mixture/gating.hpp"
#include "op/operands.hpp"
#include "op/products.hpp"
#include "op/quantization.hpp"

namespace cermet::cuda {
namespace {

bool is_norm(OpKind op) { return op == OpKind::rms_norm || op == OpKind::add_rms_norm; }
bool is_norm_quant(OpKind op) { return op == OpKind::rms_norm_quant || op == OpKind::add_rms_norm_quant; }
bool adds(OpKind op) { return op == OpKind::add_rms_norm || op == OpKind::add_rms_norm_quant; }

/// Result of an operator that quantizes which holds the scales.
std::size_t scale_output(OpKind op) { return op == OpKind::add_rms_norm_quant ? 2 : 1; }

/// Readers inside the region of a node's result.
std::int64_t readers(const Region& region, std::size_t node, std::size_t output) {
  std::int64_t count = 0;
  for (const RegionNode& each : region.nodes)
    count += std::ranges::count_if(each.inputs, [&](const RegionInput& i) {
      return i.is_inside() && i.index == static_cast<std::int32_t>(node) &&
             i.output == static_cast<std::int32_t>(output);
    });
  return count;
}

/// Whether operand `input` of a node is that result of the node before it, which nothing else reads.
bool reads_alone(const Region& region, std::size_t node, std::size_t input, std::size_t maker, std::size_t output,
                 bool may_leave = false) {
  const RegionInput& from = region.nodes[node].inputs[input];
  return from == RegionInput::inside(maker, output, from.rounding) && readers(region, maker, output) == 1 &&
         (may_leave || result_of(region, maker, output) < 0);
}

Decline declines_norm(const Region& region, std::size_t n) {
  const Problem& p = region.nodes[n].problem;
  const std::size_t weight = adds(p.op->kind) ? 2 : 1;
  if (region.problem().op->kind == OpKind::grouped_linear)
    return "a normalization before experts' rows is not computed";
  if (!p.has(weight) || p.input(weight).rank() != 1) return "the normalization has no weight of a row";
  if (adds(p.op->kind) && result_of(region, n, 1) < 0) return "the sum stays inside";
  return std::nullopt;
}

/// Whether every block should make a quantized row of one token for itself: of the sizes that were measured
/// (docs/notes/gemv.md), rows of 2048 elements, but not with a norm before 3 to 6 times as many columns, and those of
/// up to 8192 that are at least twice as long as the result, in fp8 up to 14336 and as long.
bool is_faster_inside(const Problem& product, bool norms) {
  const std::int64_t k = product.size(1, -1), n = product.size(1, -2);
  if (!norms && product.input(1).dtype != DType::i8) return k <= 2048 || (k <= 14336 && k >= n);
  if (norms) return k <= 2048 && (n < 3 * k || n >= 6 * k);
  return k <= 2048 || (k <= 8192 && k >= 2 * n);
}

/// A weight at whose end the next launch should have started: its blocks read while the last ones of this launch do.
bool is_long(const Problem& product) { return product.size(1, -1) * product.size(1, -2) >= std::int64_t{64} << 20; }

Decline declines_quantize(const Region& region, std::size_t n) {
  const Problem &p = region.nodes[n].problem, &product = region.problem();
  if (product.op->kind == OpKind::scaled_mm && !is_faster_inside(product, is_norm_quant(p.op->kind)))
    return "a kernel of its own was faster at such sizes";
  if (product.op->kind != OpKind::scaled_mm && product.op->kind != OpKind::grouped_linear)
    return "its scales are not the product's";
  const std::size_t scale = product.op->kind == OpKind::scaled_mm ? 2 : 4,
                    first = is_norm_quant(p.op->kind) ? (adds(p.op->kind) ? 3 : 2) : 1;
  const QuantizedFormat format = quantized_format(p.attributes);
  if (format.asymmetric || p.attributes.text("granularity") != "token")
    return "rows are not quantized with a scale each";
  if (format.power_of_two) return "scales are powers of two";
  for (std::size_t i = first; i < p.inputs.size(); ++i)
    if (p.has(i)) return fmt::format("operand {} of {} is given", i, p.op->name);
  if (size_of(product.input(1).dtype) != 1 || (product.input(1).dtype == DType::i8) != (format.dtype == DType::i8))
    return "the weight is not quantized as rows are";
  if (!product.has(scale) ||
      !reads_alone(region, static_cast<std::size_t>(region.anchor), scale, n, scale_output(p.op->kind)))
    return "the row's scale is not the product's";
  if (product.op->kind == OpKind::scaled_mm && product.has(op::scaled_mm::a_zp)) return "the product has a zero point";
  return std::nullopt;
}

Decline declines_permute(const Region& region, std::size_t n) {
  if (region.problem().op->kind != OpKind::grouped_linear ||
      !reads_alone(region, static_cast<std::size_t>(region.anchor), 2, n, 1, true))
    return "the product does not read the sorted rows' offsets";
  if (region.nodes[n].problem.has(op::moe_permute::scales)) return "rows are quantized before they are sorted";
  if (region.nodes[n].problem.attributes.flag("rest")) return "others have some of the experts";
  if (region.nodes[n].problem.attributes.integer("experts") != region.problem().size(1, 0))
    return "the product has other experts";
  return std::nullopt;
}

/// Experts that a warp keeps in its registers for the gating, beside all else that the product keeps there.
constexpr std::int64_t most_gated_experts = 256;

Decline declines_gating(const Region& region) {
  const Problem& p = region.nodes[0].problem;
  if (region.nodes.size() < 2 || region.nodes[1].problem.op->kind != OpKind::moe_permute ||
      !reads_alone(region, 1, 1, 0, 1, true))
    return "rows are not sorted by the experts that are chosen";
  if (max_rows(p, 0) != 1) return "chooses the experts of one token";
  if (p.size(0, 1) > most_gated_experts) return fmt::format("chooses from up to {} experts", most_gated_experts);
  if (p.attributes.integer("groups") > 1) return "experts are chosen by groups";
  if (p.size(0, 1) != region.nodes[1].problem.attributes.integer("experts"))
    return "chooses from experts that are not those of the product";
  if (result_of(region, 0, 0) < 0) return "the weights of the chosen experts are not read";
  for (std::size_t i = 0; i < p.inputs.size(); ++i)
    if (p.has(i) && !region.operand_of(0, i)) return fmt::format("operand {} of topk_gating is computed inside", i);
  return std::nullopt;
}

}  // namespace

int result_of(const Region& region, std::size_t node, std::size_t output) {
  const auto found = std::ranges::find(region.results,
                                       RegionPlace{static_cast<std::int32_t>(node), static_cast<std::int32_t>(output)});
  return found == region.results.end() ? -1 : static_cast<int>(found - region.results.begin());
}

GemvPrologue::GemvPrologue(const Region& region) {
  for (std::size_t n = 0; n < static_cast<std::size_t>(region.anchor); ++n) {
    const Problem& p = region.nodes[n].problem;
    const OpKind op = p.op->kind;
    if (is_norm(op) || is_norm_quant(op)) norm = &p, norm_node = n;
    if (is_norm_quant(op) || op == OpKind::dynamic_quant) quantize = &p, quantize_node = n;
    if (op == OpKind::moe_permute) permute = &p, permute_node = n;
    if (op == OpKind::topk_gating) gating = &p, gating_node = n;
  }
}

Decline GemvPrologue::declines(const Region& region) {
  const auto anchor = static_cast<std::size_t>(region.anchor);
  const std::size_t first = region.nodes[0].problem.op->kind == OpKind::topk_gating ? 1 : 0;
  if (first == 1)
    if (Decline reason = declines_gating(region)) return reason;
  for (std::size_t n = first; n < anchor; ++n) {
    const OpKind op = region.nodes[n].problem.op->kind;
    const bool permutes = op == OpKind::moe_permute, quantizes = op == OpKind::dynamic_quant || is_norm_quant(op);
    if (!permutes && !quantizes && !is_norm(op))
      return fmt::format("{} before the product is not computed", region.nodes[n].problem.op->name);
    const bool in_order =
        anchor == first + 1 || (anchor == first + 2 && (n == first ? permutes : op == OpKind::dynamic_quant));
    if (!in_order) return "more is before the product than is computed";
    // The row that a normalization gives may be stored as well.
    const bool may_leave = is_norm(op) && max_rows(region.problem(), 0) == 1;
    if (!reads_alone(region, n + 1, 0, n, 0, may_leave))
      return fmt::format("{}'s rows are read elsewhere", region.nodes[n].problem.op->name);
    if (is_norm(op) || is_norm_quant(op))
      if (Decline reason = declines_norm(region, n)) return reason;
    if (quantizes)
      if (Decline reason = declines_quantize(region, n)) return reason;
    if (permutes)
      if (Decline reason = declines_permute(region, n)) return reason;
  }
  return std::nullopt;
}

std::size_t GemvPrologue::x(const Region& region) const { return *region.operand_of(permute_node, adds() ? 1 : 0); }
DType GemvPrologue::x_type() const {
  return permute ? permute->input(0).dtype : norm ? norm->input(adds() ? 1 : 0).dtype : quantize->input(0).dtype;
}
DType GemvPrologue::rounded(const Region& region) const {
  if (norm == nullptr || quantize != nullptr) return DType::f32;
  const RegionInput& edge = region.nodes[static_cast<std::size_t>(region.anchor)].inputs[0];
  return edge.rounding == Rounding::fast ? DType::f32 : norm->outputs[0].dtype;
}
bool GemvPrologue::delays_next(const Region& region) const {
  const Problem& p = region.problem();
  const bool is_int8 = p.input(1).dtype == DType::i8;
  if (p.op->kind == OpKind::grouped_linear) return true;
  if (p.op->kind == OpKind::scaled_mm && (!is_int8 || quantize == nullptr)) return !is_long(p);
  if (quantize == nullptr) return is_int8;
  const std::int64_t k = p.size(1, -1), n = p.size(1, -2);
  return norm ? n > 2 * k && n < 3 * k : k > 2048 && k == 2 * n;
}

gemv::Prologue GemvPrologue::quantization() const {
  if (quantize == nullptr) return {};
  const QuantizedFormat format = quantized_format(quantize->attributes);
  return {.quantize = true, .quantized = format.dtype, .wide = format.limit == 127.5f};
}

gemv::Prologue GemvPrologue::config(const Region& region, bool stores_normed, bool aligned) const {
  gemv::Prologue config = quantization();
  config.aligned = aligned;
  if (norm == nullptr) return config;
  config.norm = true;
  config.delta = norm->input(0).dtype;
  config.weight = norm->input(norm_weight()).dtype;
  config.sum = adds() ? norm->outputs[1].dtype : DType::f32;
  config.round_sum = adds() && norm->attributes.flag("round_sum");
  config.rounded = rounded(region);
  config.stores_normed = stores_normed;
  if (stores_normed) config.normed = norm->outputs[0].dtype;
  return config;
}

gemv::Routing GemvPrologue::routing() const {
  gemv::Routing config{.ids = permute->input(1).dtype, .gates = gating != nullptr};
  if (gating != nullptr) config.gating = gating_config(*gating, 32);
  return config;
}

GatingOperands::GatingOperands(const Region& region, std::size_t node)
    : weights_(result_of(region, node, 0)), ids_(result_of(region, node, 1)) {
  const Problem& p = region.nodes[node].problem;
  logits_ = static_cast<int>(*region.operand_of(node, 0));
  bias_ = p.has(1) ? static_cast<int>(*region.operand_of(node, 1)) : -1;
  choices_ = p.attributes.integer("k");
  scale_ = static_cast<float>(p.attributes.number("scale"));
}

gating::Params GatingOperands::params(const LaunchArgs& args) const {
  const auto view = [](std::span<const TensorView> views, int place) {
    return place < 0 ? nullptr : &views[static_cast<std::size_t>(place)];
  };
  return gating_params(*view(args.inputs, logits_), view(args.inputs, bias_), *view(args.outputs, weights_),
                       view(args.outputs, ids_), scale_);
}

}  // namespace cermet::cuda
