// The kernels of gemv.hpp.
#include "kernel/cuda/gemm/rest.hpp"
#include "kernel/cuda/gemv/compact.hpp"
#include "kernel/cuda/gemv/gemv.hpp"

namespace cermet::cuda::gemv_kernels_file {
namespace {

/// Plain weights, where they are not held in 12 bits.
Decline declines_plain(const Region& region, Decline (*declines)(const Region&)) {
  if (Decline reason = declines(region)) return reason;
  const OpKind op = region.problem().op->kind;
  if ((op == OpKind::linear || op == OpKind::dual_linear) && !FewRows::declines_compact(region))
    return "its weights are held in 12 bits";
  return std::nullopt;
}

std::vector<Program> programs(const Region& region, const Config& config) { return FewRows(region, config).programs(); }
double cost(const Region& region, const Config& config, const DeviceLimits& limits) {
  return FewRows(region, config).seconds(region, limits);
}
Launcher bind(const Region& region, const Config& config) {
  return [product = FewRows(region, config)](const LaunchArgs& args) { product.launch(args); };
}

Kernel plain(const char* name, OpKind op, ModelError error = {}) {
  return {.name = name,
          .op = op,
          .summary = "one row at a time: weights stream through shared memory, rows stay in registers",
          .fuses = true,
          .declines = [](const Region& region) { return declines_plain(region, FewRows::declines); },
          .bind = bind,
          .programs = programs,
          .configs = [](const Region& region) { return FewRows::configs(region); },
          .space = [](const Region& region) { return FewRows::space(region); },
          .cost = cost,
          .model_error = error};
}
Kernel with_front(const char* name, OpKind op) {
  Kernel kernel = plain(name, op);
  kernel.summary =
      "the same, with what makes the row before it: every block normalizes, quantizes or finds the row on its way into "
      "registers";
  kernel.declines = [](const Region& region) { return declines_plain(region, FewRows::declines_front); };
  return kernel;
}

/// The same with weights of 12 bits.
Kernel compact(const char* name, OpKind op, Decline (*declines)(const Region&)) {
  return {
      .name = name,
      .op = op,
      .summary =
          "weights stream as rows of 12 bits an element, three quarters of bf16's bytes, beside which they are held",
      .fuses = true,
      .declines = [declines](const Region& region) -> Decline {
        if (Decline reason = FewRows::declines_compact(region)) return reason;
        return declines(region);
      },
      .bind = [](const Region& region, const Config& config) -> Launcher {
        return [product = FewRows(region, config, true)](const LaunchArgs& args) { product.launch(args); };
      },
      .weight_layout = [](const Region& region, std::size_t operand) -> const WeightLayout* {
        const bool is_second = region.problem().op->kind == OpKind::dual_linear && region.operand_of(2) == operand;
        return region.operand_of(1) == operand || is_second ? &compact_rows : nullptr;
      },
      .programs = [](const Region& region, const Config& config) { return FewRows(region, config, true).programs(); },
      .configs = [](const Region& region) { return FewRows::configs(region, true); },
      .space = [](const Region& region) { return FewRows::space(region, true); },
      .cost = [](const Region& region, const Config& config,
                 const DeviceLimits& limits) { return FewRows(region, config, true).seconds(region, limits); }};
}

}  // namespace

extern const Kernel gemv_compact_linear, gemv_compact_dual_linear, gemv_compact_norm_linear,
    gemv_compact_norm_dual_linear;
const Kernel gemv_compact_linear = compact("gemv.compact_linear", OpKind::linear, FewRows::declines);
const Kernel gemv_compact_dual_linear = compact("gemv.compact_dual_linear", OpKind::dual_linear, FewRows::declines);
const Kernel gemv_compact_norm_linear = compact("gemv.compact_norm_linear", OpKind::linear, FewRows::declines_front);
const Kernel gemv_compact_norm_dual_linear =
    compact("gemv.compact_norm_dual_linear", OpKind::dual_linear, FewRows::declines_front);
extern const Kernel gemv_linear, gemv_dual_linear, gemv_scaled_mm, gemv_grouped_linear, gemv_norm_linear,
    gemv_norm_dual_linear, gemv_front_scaled_mm, gemv_front_grouped_linear;
const Kernel gemv_norm_linear = with_front("gemv.norm_linear", OpKind::linear);
const Kernel gemv_norm_dual_linear = with_front("gemv.norm_dual_linear", OpKind::dual_linear);
const Kernel gemv_front_scaled_mm = with_front("gemv.front_scaled_mm", OpKind::scaled_mm);
const Kernel gemv_front_grouped_linear = with_rest(with_front("gemv.front_grouped_linear", OpKind::grouped_linear));
const Kernel gemv_linear = plain("gemv.linear", OpKind::linear, {.recorded = 0.15});
const Kernel gemv_dual_linear = plain("gemv.dual_linear", OpKind::dual_linear);
const Kernel gemv_scaled_mm = plain("gemv.scaled_mm", OpKind::scaled_mm, {.recorded = 0.2});
const Kernel gemv_grouped_linear =
    with_rest(plain("gemv.grouped_linear", OpKind::grouped_linear, {.assumes = ModelError::Assumes::group_lengths}));

}  // namespace cermet::cuda::gemv_kernels_file
