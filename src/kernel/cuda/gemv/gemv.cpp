#include "kernel/cuda/gemv/gemv.hpp"

#include "base/checked.hpp"
#include "kernel/cuda/gemv/compact.hpp"
#include "kernel/cuda/gemv/front.hpp"
#include "kernel/cuda/mixture/gating.hpp"
#include "kernel/roofline.hpp"
#include "op/products.hpp"

namespace cermet::cuda {
namespace {

/// Rows of one GEMM, and rows of a mixture's grouped GEMM, up to which weights are streamed once for each.
constexpr std::int64_t most_rows = 1, most_grouped_rows = 32;

bool streams(const Problem& p, std::int64_t row_bytes) {
  return p.target->compute_capability >= 90 && row_bytes > 0 && row_bytes % 16 == 0;
}

bool constant_shape(const Problem& p, std::size_t operand) {
  const Dims& dims = p.input(operand).dims;
  return std::all_of(dims.begin(), dims.end(), [](const Dim& d) { return d.is_constant(); });
}

ProductLoops loops_of(const Region& region) {
  const bool grouped = region.problem().op->kind == OpKind::grouped_linear;
  return {.gated = grouped || max_rows(region.problem(), 0) <= most_rows, .row_scale = true, .results = 2};
}

Decline declines_sizes(const Problem& p) {
  const std::int64_t limit = p.op->kind == OpKind::grouped_linear ? most_grouped_rows : most_rows;
  if (const std::int64_t rows = max_rows(p, 0); rows > limit)
    return fmt::format("up to {} rows: a weight is read once for each of them", rows);
  if (!constant_shape(p, 1)) return "the weight's shape is not known beforehand";
  const std::int64_t k = p.size(1, -1), n = p.size(1, -2),
                     bytes = k * static_cast<std::int64_t>(size_of(p.input(1).dtype));
  if (k > gemv::longest_row || bytes > gemv::widest_row)
    return fmt::format("rows of {} elements do not fit in registers", k);
  if (n > std::int64_t{1} << 30) return fmt::format("{} columns are more than 32-bit numbers count", n);
  return std::nullopt;
}

/// Of what follows the product.
Decline declines_behind(const Region& region) {
  if (RotatedHeads::end(region)) return RotatedHeads::declines(region);
  if (Decline reason = Product::declines_after(region, loops_of(region))) return reason;
  const Product product(region, loops_of(region));
  if (product.blocked && Front(region).quantize != nullptr) return "the weight's scales cover blocks of the reduction";
  return std::nullopt;
}

}  // namespace

Decline FewRows::declines_compact(const Region& region) {
  const Problem& p = region.problem();
  if (!p.target->compact_weights) return "weights are held once, as they are: compact_weights is off";
  const std::size_t weights = p.op->kind == OpKind::dual_linear ? 2 : 1;
  for (std::size_t i = 1; i <= weights; ++i) {
    if (p.input(i).dtype != DType::bf16)
      return fmt::format("a weight of {}: 12 bits are enough for bf16", name_of(p.input(i).dtype));
    const std::optional<std::size_t> operand = region.operand_of(i);
    if (!operand || !region.is_constant(*operand)) return "a weight is not constant, so it cannot be prepacked";
  }
  if (p.target->compute_capability < 90) return "weights do not stream through shared memory before sm_90";
  if (!constant_shape(p, 1)) return "the weight's shape is not known beforehand";
  if (const std::int64_t k = p.size(1, -1); k == 0 || k % gemv::compact_piece_elements != 0)
    return fmt::format("rows of {} elements are no multiple of {}", k, gemv::compact_piece_elements);
  return std::nullopt;
}

Decline FewRows::declines(const Region& region) {
  if (Decline reason = declines_sizes(region.problem())) return reason;
  if (region.anchor != 0) return "computes nothing before the product";
  return declines_behind(region);
}

Decline FewRows::declines_front(const Region& region) {
  if (region.anchor == 0) return "expects something before the product";
  if (Decline reason = Front::declines(region)) return reason;
  if (Decline reason = declines_sizes(region.problem())) return reason;
  return declines_behind(region);
}

FewRows::FewRows(const Region& region, const Config& config, bool compact)
    : compact_(compact),
      heads_(RotatedHeads::end(region) ? std::optional<RotatedHeads>(region) : std::nullopt),
      product_(heads_ ? RotatedHeads::product_of(region) : region, loops_of(region)),
      row_bytes_(compact ? compact_row_bytes(region.problem().size(1, -1))
                         : region.problem().size(1, -1) *
                               static_cast<std::int64_t>(size_of(region.problem().input(1).dtype))),
      constant_(region.is_constant(static_cast<std::size_t>(product_.at.w)) &&
                (product_.at.w_up < 0 || region.is_constant(static_cast<std::size_t>(product_.at.w_up)))),
      stream_(config.empty() ? streams(region.problem(), row_bytes_) : config.at("stream") != 0),
      ring_bytes_(static_cast<int>(config.find("ring_kib").value_or(gemv::usual_ring_bytes >> 10) << 10)),
      warps_(static_cast<int>(config.find("warps").value_or(0))),
      in_flight_(static_cast<int>(config.find("in_flight").value_or(usual_in_flight(region)))) {
  const Problem& p = region.problem();
  const Front front(region);
  if (!front.is_empty()) product_.at.x = static_cast<int>(front.x(region));
  if (front.norm) {
    const Problem& norm = *front.norm;
    norm_weight_ = static_cast<int>(*region.operand_of(0, front.norm_weight()));
    if (front.adds()) {
      delta_ = static_cast<int>(*region.operand_of(0, 0));
      sum_ = result_of(region, front.norm_node, 1);
    }
    if (!front.quantize) normed_ = result_of(region, front.norm_node, 0);
    epsilon_ = static_cast<float>(norm.attributes.number("eps"));
    norm_offset_ = static_cast<float>(norm.attributes.number("weight_offset"));
  }
  if (front.gating) chosen_.emplace(region, front.gating_node);
  if (front.permute) {
    if (!front.gating) ids_ = static_cast<int>(*region.operand_of(front.permute_node, 1));
    sorted_offsets_ = result_of(region, front.permute_node, 1);
    row_of_ = result_of(region, front.permute_node, 2);
  }
  if (product_.at.offsets >= 0) offsets_ = region.operand_type(static_cast<std::size_t>(product_.at.offsets)).dtype;
  const gemv::RowShape shape = this->shape(region);
  aligned_ = front.quantize != nullptr && p.op->kind == OpKind::scaled_mm && p.size(1, -1) % 16 == 0;
  programs_.push_back({.header = "kernel/cuda/device/gemv/row.cuh",
                       .task = row_task(region, aligned_),
                       .prelude = product_.epilogue().source,
                       .threads = shape.threads(),
                       .shared_bytes = std::max<std::int64_t>(
                           shape.shared_bytes(), compact_ ? gemv::usual_ring_bytes : 0),  // two blocks an SM, not three
                       .min_blocks = is_short(region) ? 3 : min_blocks(shape.threads(), held(region)),
                       .alternates = stream_});
  if (stream_)
    programs_.back().walk =
        Walk{.stage_bytes = shape.stage_bytes(), .ring_bytes = shape.ring_bytes() + 16 * shape.stages};
  if (!aligned_) return;
  Program any = programs_.front();
  any.task = row_task(region, false);
  any.fallback = true;
  programs_.push_back(std::move(any));
}

gemv::RowShape FewRows::shape(const Region& region) const {
  const DType w = region.problem().input(1).dtype;
  const int sums = (product_.has_two_weights() ? 2 : 1) + (product_.column_sums ? 1 : 0);
  return gemv::row_shape(static_cast<int>(region.problem().size(1, -1)), static_cast<int>(size_of(w)), stream_,
                         w == DType::i8 && product_.blocked, sums, ring_bytes_, warps_, compact_);
}

int FewRows::held(const Region& region) const {
  const DType w = region.problem().input(1).dtype;
  return shape(region).held * (w == DType::i8 ? 4 : 16 / static_cast<int>(size_of(w)));
}

/// Rows of 2048 or somewhat less, of which a lane of every warp holds one piece: 72 registers are enough, so that
/// attention's blocks find room beside a product's (docs/notes/decode-step.md).
bool FewRows::is_short(const Region& region) const {
  return stream_ && !product_.blocked && size_of(region.problem().input(1).dtype) == 2 && shape(region).held == 1 &&
         shape(region).side == 1;
}

int FewRows::min_blocks(int threads, int held) const {
  if (threads > (heads_ ? 288 : 512)) return 1;
  const int most_held = heads_ ? 48 : 56;
  if (held > (normed_ >= 0 ? 24 : most_held)) return 1;
  return !stream_ && !heads_ && held <= 8 ? 3 : 2;
}

/// Memory is the limit; a launch whose weights do not stream starts to read them when the one before it has ended. Each
/// row of a group after its first takes 0.6 of the time again (bench/results/h200/tune/few-rows.jsonl).
double FewRows::seconds(const Region& region, const DeviceLimits& limits) const {
  const Problem& p = region.problem();
  const double start = 3500 / limits.clock_hz + (stream_ ? 0 : limits.launch_seconds);
  const double plain =
      roofline_seconds(heads_ ? RotatedHeads::product_of(region) : region, limits.f32_operations_per_second, limits);
  const double reading = compact_ ? 0.75 * plain : plain;
  if (p.op->kind != OpKind::grouped_linear || !p.input(1).dims[0].is_constant()) return start + reading;
  const double rows =
      static_cast<double>(max_rows(p, 0)) / static_cast<double>(std::max<std::int64_t>(1, p.size(1, 0)));
  return start + reading * (1 + 0.6 * std::max(0.0, rows - 1));
}

std::string FewRows::row_task(const Region& region, bool aligned) const {
  const Problem& p = region.problem();
  const Front front(region);
  std::string ids = device_name(front.permute ? front.permute->input(1).dtype : DType::i32);
  if (front.gating) ids += fmt::format(", .chooses = true, .gating = {}", gating_config(*front.gating, 32));
  std::string sizes = ring_bytes_ == gemv::usual_ring_bytes ? "" : fmt::format(", .ring_bytes = {}", ring_bytes_);
  if (warps_ > 0) sizes += fmt::format(", .warps = {}", warps_);
  if (stream_ && in_flight_ > 0) sizes += fmt::format(", .in_flight = {}", in_flight_);
  if (front.lets_next_wait(region)) sizes += ", .late = true";
  if (front.lets_next_start(region)) sizes += ", .early = true";
  if (is_short(region) && p.op->kind != OpKind::grouped_linear) sizes += ", .rehearses = true";
  if (compact_) sizes += ", .compact = true";
  const std::string rotation = heads_ ? fmt::format(", .rotation = {{{}}}", heads_->config(region)) : "";
  return fmt::format(
      "cermet::gemv::Row<cermet::gemv::Config{{.k = {}, .x = {}, .w = {}, .offsets = {}, .blocked = {}, .dual = {}, "
      ".grouped = {}, .routed = {}, .ids = {}, "
      ".stream = {}{}, .prologue = {{{}}}{}}}, {}>",
      p.size(1, -1), device_name(front.is_empty() ? p.input(0).dtype : front.x_type()), device_name(p.input(1).dtype),
      device_name(offsets_), device_name(product_.blocked), device_name(product_.has_two_weights()),
      device_name(p.op->kind == OpKind::grouped_linear), device_name(front.permute != nullptr), ids,
      device_name(stream_), sizes, prologue(region, aligned), rotation, product_.epilogue().name);
}

std::string FewRows::prologue(const Region& region, bool aligned) const {
  const Front front(region);
  std::string text;
  if (front.norm) {
    text = fmt::format(".norm = true, .delta = {}, .weight = {}, .sum = {}", device_name(front.norm->input(0).dtype),
                       device_name(front.norm->input(front.norm_weight()).dtype),
                       device_name(front.adds() ? front.norm->outputs[1].dtype : DType::f32));
    if (front.adds() && !front.quantize && front.norm->attributes.flag("round_sum")) text += ", .round_sum = true";
    if (front.rounded(region) != DType::f32) text += fmt::format(", .rounded = {}", device_name(front.rounded(region)));
    text += fmt::format(", .normed = {}", device_name(normed_ >= 0));
    if (normed_ >= 0 && front.norm->outputs[0].dtype != DType::f32)
      text += fmt::format(", .normed_type = {}", device_name(front.norm->outputs[0].dtype));
    if (front.quantize) text += ", ";
  }
  text += front.quantization();
  return aligned ? text + ", .aligned = true" : text;
}

}  // namespace cermet::cuda
