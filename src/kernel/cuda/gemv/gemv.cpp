#include "kernel/cuda/gemv/gemv.hpp"

#include "base/checked.hpp"
#include "kernel/cuda/config_text.hpp"
#include "kernel/cuda/gemm/unweighted_rows.hpp"
#include "kernel/cuda/gemv/compact.hpp"
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
  const std::int64_t k = p.size(1, -1), n = p.size(1, -2), bytes = k * byte_size(p.input(1).dtype);
  if (k > gemv::longest_row || bytes > gemv::widest_row)
    return fmt::format("rows of {} elements do not fit in registers", k);
  if (n > std::int64_t{1} << 30) return fmt::format("{} columns are more than 32-bit numbers count", n);
  return std::nullopt;
}

Decline declines_epilogue(const Region& region) {
  if (RotatedHeads::end(region)) return RotatedHeads::declines(region);
  if (Decline reason = Product::declines_after(region, loops_of(region))) return reason;
  const Product product(region, loops_of(region));
  if (product.blocked && GemvPrologue(region).quantize != nullptr)
    return "the weight's scales cover blocks of the reduction";
  return std::nullopt;
}

}  // namespace

Decline Gemv::declines_compact(const Region& region) {
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

Decline Gemv::declines(const Region& region) {
  if (Decline reason = declines_sizes(region.problem())) return reason;
  if (region.anchor != 0) return "computes nothing before the product";
  return declines_epilogue(region);
}

Decline Gemv::declines_prologue(const Region& region) {
  if (region.anchor == 0) return "expects something before the product";
  if (Decline reason = GemvPrologue::declines(region)) return reason;
  if (Decline reason = declines_sizes(region.problem())) return reason;
  return declines_epilogue(region);
}

Gemv::Gemv(const Region& region, const Config& config, bool compact)
    : heads_(RotatedHeads::end(region) ? std::optional<RotatedHeads>(region) : std::nullopt),
      product_(heads_ ? RotatedHeads::product_of(region) : region, loops_of(region)),
      row_bytes_(compact ? compact_row_bytes(region.problem().size(1, -1))
                         : region.problem().size(1, -1) * byte_size(region.problem().input(1).dtype)),
      constant_(region.is_constant(static_cast<std::size_t>(product_.at.w)) &&
                (product_.at.w_up < 0 || region.is_constant(static_cast<std::size_t>(product_.at.w_up)))) {
  const Problem& p = region.problem();
  const GemvPrologue prologue(region);
  if (!prologue.is_empty()) product_.at.x = static_cast<int>(prologue.x(region));
  if (prologue.norm) {
    const Problem& norm = *prologue.norm;
    norm_weight_ = static_cast<int>(*region.operand_of(0, prologue.norm_weight()));
    if (prologue.adds()) {
      delta_ = static_cast<int>(*region.operand_of(0, 0));
      sum_ = result_of(region, prologue.norm_node, 1);
    }
    if (!prologue.quantize) normed_ = result_of(region, prologue.norm_node, 0);
    epsilon_ = static_cast<float>(norm.attributes.number("eps"));
    norm_offset_ = static_cast<float>(norm.attributes.number("weight_offset"));
  }
  if (prologue.gating) gating_.emplace(region, prologue.gating_node);
  if (prologue.permute) {
    if (!prologue.gating) ids_ = static_cast<int>(*region.operand_of(prologue.permute_node, 1));
    sorted_offsets_ = result_of(region, prologue.permute_node, 1);
    row_of_ = result_of(region, prologue.permute_node, 2);
  }
  const bool stream = config.empty() ? streams(p, row_bytes_) : config.at("stream") != 0;
  config_ = {.k = static_cast<int>(p.size(1, -1)),
             .x = prologue.is_empty() ? p.input(0).dtype : prologue.x_type(),
             .w = p.input(1).dtype,
             .blocked = product_.blocked,
             .dual = product_.has_two_weights(),
             .compact = compact,
             .stream = stream,
             .ring_bytes = static_cast<int>(config.find("ring_kib").value_or(gemv::usual_ring_bytes >> 10) << 10),
             .warps = static_cast<int>(config.find("warps").value_or(0)),
             .in_flight = stream ? static_cast<int>(config.find("in_flight").value_or(usual_in_flight(region))) : 0,
             .delays_next = prologue.delays_next(region)};
  config_.dry_run = is_short() && p.op->kind != OpKind::grouped_linear;
  aligned_ = prologue.quantize != nullptr && p.op->kind == OpKind::scaled_mm && p.size(1, -1) % 16 == 0;
  programs_.push_back(program(region, aligned_));
  if (!aligned_) return;
  programs_.push_back(program(region, false));
  programs_.back().fallback = true;
}

/// The header has the variant of the kernel.
Program Gemv::program(const Region& region, bool aligned) const {
  const GemvPrologue prologue(region);
  const gemv::Shape shape = this->shape();
  gemv::Config config = config_;
  config.prologue = prologue.config(region, normed_ >= 0, aligned);
  std::string header = prologue.is_empty() ? "gemv" : "prologue", variant;
  if (heads_) {
    header = "rope";
    variant = fmt::format(", cermet::gemv::Rope<cermet::rotation::Config{}>", config_text(heads_->config(region)));
  } else if (prologue.permute) {
    header = "routed";
    variant = fmt::format(", cermet::gemv::Routed<cermet::gemv::Routing{}>", config_text(prologue.routing()));
  } else if (product_.at.offsets >= 0) {
    header = "grouped";
    const DType offsets = region.operand_type(static_cast<std::size_t>(product_.at.offsets)).dtype;
    variant = fmt::format(", cermet::gemv::Grouped<{}>", device_name(offsets));
  }
  std::optional<Walk> walk;
  if (config.stream)
    walk = Walk{.stage_bytes = shape.stage_bytes(), .ring_bytes = shape.ring_bytes() + 16 * shape.stages};
  const GeneratedType epilogue = product_.epilogue();
  return {.header = fmt::format("kernel/cuda/device/gemv/{}.cuh", header),
          .task = fmt::format("cermet::gemv::Gemv<cermet::gemv::Config{}, {}{}>", config_text(config), epilogue.name,
                              variant),
          .prelude = epilogue.source,
          .threads = shape.threads(),
          .shared_bytes = std::max<std::int64_t>(
              shape.shared_bytes(), config.compact ? gemv::usual_ring_bytes : 0),  // two blocks an SM, not three
          .min_blocks = is_short() ? 3 : min_blocks(),
          .alternates = config.stream,
          .walk = walk};
}

gemv::Shape Gemv::shape() const {
  const int sums = (product_.has_two_weights() ? 2 : 1) + (product_.column_sums ? 1 : 0);
  return gemv::shape_of(config_, static_cast<int>(size_of(config_.w)), config_.w == DType::i8 && product_.blocked,
                        sums);
}

int Gemv::row_registers() const {
  return shape().warp_pieces * (config_.w == DType::i8 ? 4 : 16 / static_cast<int>(size_of(config_.w)));
}

/// Rows of 2048 or somewhat less, of which a lane of every warp has one piece: 72 registers are enough, so that
/// attention's blocks find room beside a product's (docs/notes/decode-step.md).
bool Gemv::is_short() const {
  return config_.stream && !product_.blocked && size_of(config_.w) == 2 && shape().warp_pieces == 1 &&
         shape().sets == 1;
}

int Gemv::min_blocks() const {
  const int threads = shape().threads(), registers = row_registers();
  if (threads > (heads_ ? 288 : 512)) return 1;
  const int most_registers = heads_ ? 48 : 56;
  if (registers > (normed_ >= 0 ? 24 : most_registers)) return 1;
  return !config_.stream && !heads_ && registers <= 8 ? 3 : 2;
}

/// Memory is the limit; a launch whose weights do not stream starts to read them when the one before it has ended. Each
/// row of a group after its first takes 0.6 of the time again (bench/results/h200/tune/few-rows.jsonl).
double Gemv::seconds(const Region& region, const DeviceLimits& limits) const {
  const Problem& p = region.problem();
  const double start = 3500 / limits.clock_hz + (config_.stream ? 0 : limits.launch_seconds);
  const double plain =
      roofline_seconds(heads_ ? RotatedHeads::product_of(region) : region, limits.f32_operations_per_second, limits);
  const double reading = config_.compact ? 0.75 * plain : plain;
  if (p.op->kind != OpKind::grouped_linear || !p.input(1).dims[0].is_constant()) return start + reading;
  const double rows =
      static_cast<double>(max_rows(p, 0)) / static_cast<double>(std::max<std::int64_t>(1, p.size(1, 0)));
  return start + reading * (1 + 0.6 * std::max(0.0, rows - 1));
}

/// Two of three stages: what is on its way beyond that only makes other accesses of the SM wait longer. All for types
/// that were not measured.
int Gemv::usual_in_flight(const Region& region) { return size_of(region.problem().input(1).dtype) <= 2 ? 2 : 0; }

std::vector<Config> Gemv::configs(const Region& region, bool compact) {
  if (compact) return {{}, {{"stream", 1}}, {{"stream", 1}, {"ring_kib", 48}}};
  std::vector<Config> list{{}, {{"stream", 0}}};
  if (Gemv(region).config_.stream) list.push_back({{"stream", 1}});
  // Smaller stages, for a kernel that shares them among tasks: last, so that no other launch has it by default.
  if (Gemv(region).config_.stream) list.push_back({{"stream", 1}, {"ring_kib", 48}});
  return list;
}

/// A rotation after the product pairs the rows of a stage: beside the usual sizes it has those of a kernel that shares
/// stages among tasks.
ConfigSpace Gemv::space(const Region& region, bool compact) {
  static constexpr int usual_ring = gemv::usual_ring_bytes >> 10, most_registers = 128;
  const Gemv own(region, {}, compact);
  const int in_flight = usual_in_flight(region);
  ConfigSpace space;
  space.add(ConfigField::set("stream", compact              ? std::vector<std::int64_t>{1}
                                       : own.config_.stream ? std::vector<std::int64_t>{0, 1}
                                                            : std::vector<std::int64_t>{0}));
  space.add(ConfigField::set("in_flight", {0, 1, 2}).with_usual(in_flight));
  space.constrain("weights that do not stream have no stages",
                  [in_flight](const Config& c) { return c.at("stream") == 1 || c.at("in_flight") == in_flight; });
  const auto add_ring = [&](std::vector<std::int64_t> kib) {
    space.add(ConfigField::set("ring_kib", std::move(kib)).with_usual(usual_ring));
    space.constrain("weights that do not stream have no ring",
                    [](const Config& c) { return c.at("stream") == 1 || c.at("ring_kib") == usual_ring; });
  };
  if (own.heads_) {
    add_ring({48});
    return space;
  }
  const int usual = gemv::usual_warps(static_cast<int>(region.problem().size(1, -1)));
  space.add(ConfigField::powers("warps", 4, 16).with_usual(usual));
  add_ring({48, 64, 128, 192});
  space.constrain(
      fmt::format("a thread's part of a row takes at most {} registers", most_registers),
      [region, compact](const Config& c) { return Gemv(region, c, compact).row_registers() <= most_registers; });
  space.constrain("the stages fit shared memory", [region, compact](const Config& c) {
    return Gemv(region, c, compact).shape().shared_bytes() <= region.target()->shared_bytes;
  });
  return space;
}

}  // namespace cermet::cuda

namespace cermet::cuda::gemv_gemv_file {
namespace {

Kernel kernel(const char* name, OpKind op, bool compact, Decline (*declines)(const Region&), std::string summary) {
  return {
      .name = name,
      .op = op,
      .summary = std::move(summary),
      .fuses = true,
      .declines = [compact, declines](const Region& region) -> Decline {
        const OpKind anchor = region.problem().op->kind;
        if (compact)
          if (Decline reason = Gemv::declines_compact(region)) return reason;
        if (Decline reason = declines(region)) return reason;
        if (!compact && (anchor == OpKind::linear || anchor == OpKind::dual_linear) && !Gemv::declines_compact(region))
          return "its weights are held in 12 bits";
        return std::nullopt;
      },
      .bind = [compact](const Region& region, const Config& config) -> Launcher {
        return [product = Gemv(region, config, compact)](const LaunchArgs& args) { product.launch(args); };
      },
      .programs = [compact](const Region& region,
                            const Config& config) { return Gemv(region, config, compact).programs(); },
      .configs = [compact](const Region& region) { return Gemv::configs(region, compact); },
      .space = [compact](const Region& region) { return Gemv::space(region, compact); },
      .cost = [compact](const Region& region, const Config& config,
                        const DeviceLimits& limits) { return Gemv(region, config, compact).seconds(region, limits); }};
}
Kernel plain(const char* name, OpKind op, ModelError error = {}) {
  Kernel own = kernel(name, op, false, Gemv::declines,
                      "one row at a time: weights stream through shared memory, rows stay in registers");
  own.model_error = error;
  return own;
}
Kernel with_prologue(const char* name, OpKind op) {
  return kernel(name, op, false, Gemv::declines_prologue,
                "the same, with what makes the row before it: every block normalizes, quantizes or finds the row on "
                "its way into registers");
}
/// The same with weights of 12 bits.
Kernel compact(const char* name, OpKind op, Decline (*declines)(const Region&)) {
  Kernel own = kernel(
      name, op, true, declines,
      "weights stream as rows of 12 bits an element, three quarters of bf16's bytes, beside which they are held");
  own.weight_layout = [](const Region& region, std::size_t operand) -> const WeightLayout* {
    const bool is_second = region.problem().op->kind == OpKind::dual_linear && region.operand_of(2) == operand;
    return region.operand_of(1) == operand || is_second ? &compact_rows : nullptr;
  };
  return own;
}

}  // namespace

extern const Kernel gemv_compact_linear, gemv_compact_dual_linear, gemv_compact_norm_linear,
    gemv_compact_norm_dual_linear;
const Kernel gemv_compact_linear = compact("gemv.compact_linear", OpKind::linear, Gemv::declines);
const Kernel gemv_compact_dual_linear = compact("gemv.compact_dual_linear", OpKind::dual_linear, Gemv::declines);
const Kernel gemv_compact_norm_linear = compact("gemv.compact_norm_linear", OpKind::linear, Gemv::declines_prologue);
const Kernel gemv_compact_norm_dual_linear =
    compact("gemv.compact_norm_dual_linear", OpKind::dual_linear, Gemv::declines_prologue);
extern const Kernel gemv_linear, gemv_dual_linear, gemv_scaled_mm, gemv_grouped_linear, gemv_norm_linear,
    gemv_norm_dual_linear, gemv_front_scaled_mm, gemv_front_grouped_linear;
const Kernel gemv_norm_linear = with_prologue("gemv.norm_linear", OpKind::linear);
const Kernel gemv_norm_dual_linear = with_prologue("gemv.norm_dual_linear", OpKind::dual_linear);
const Kernel gemv_front_scaled_mm = with_prologue("gemv.front_scaled_mm", OpKind::scaled_mm);
const Kernel gemv_front_grouped_linear =
    with_unweighted_rows(with_prologue("gemv.front_grouped_linear", OpKind::grouped_linear));
const Kernel gemv_linear = plain("gemv.linear", OpKind::linear, {.recorded = 0.15});
const Kernel gemv_dual_linear = plain("gemv.dual_linear", OpKind::dual_linear);
const Kernel gemv_scaled_mm = plain("gemv.scaled_mm", OpKind::scaled_mm, {.recorded = 0.2});
const Kernel gemv_grouped_linear = with_unweighted_rows(
    plain("gemv.grouped_linear", OpKind::grouped_linear, {.assumes = ModelError::Assumes::group_lengths}));

}  // namespace cermet::cuda::gemv_gemv_file
