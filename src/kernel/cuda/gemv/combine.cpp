// Host half of the second product of a mixture's experts for one token: grouped_linear and moe_unpermute
// (device/gemv/combine.cuh).
#include "kernel/cuda/device/gemv/combine.hpp"
#include "base/checked.hpp"
#include "kernel/cuda/config_text.hpp"
#include "kernel/cuda/gemm/product.hpp"
#include "kernel/cuda/gemv/prologue.hpp"
#include "kernel/cuda/narrow.hpp"
#include "kernel/cuda/task.hpp"
#include "kernel/roofline.hpp"
#include "op/grouped_work.hpp"
#include "op/operands.hpp"
#include "op/products.hpp"

namespace cermet::cuda::gemv_combine_file {
namespace {

constexpr ProductLoops loops{.row_scale = true, .combines = true};

/// KiB of stages: as two blocks of an SM have them, and for a kernel that shares stages among tasks.
constexpr std::int64_t usual_ring_kib = gemv::usual_ring_bytes >> 10, shared_ring_kib = 48;

int ring_bytes_of(const Config& config) {
  return static_cast<int>(config.find("ring_kib").value_or(usual_ring_kib) << 10);
}

gemv::CombineShape shape_of(const Region& region, int ring_bytes = gemv::usual_ring_bytes) {
  const Problem& p = region.problem();
  return gemv::combine_shape(static_cast<int>(p.size(1, -1)), static_cast<int>(size_of(p.input(1).dtype)),
                             static_cast<int>(region.nodes.back().problem.size(op::moe_unpermute::row_of, 1)),
                             ring_bytes);
}

Decline declines(const Region& region) {
  const Problem &p = region.problem(), &last = region.nodes.back().problem;
  if (last.op->kind != OpKind::moe_unpermute || region.nodes.size() != static_cast<std::size_t>(region.anchor) + 2)
    return "expects moe_unpermute after the product";
  if (p.target->compute_capability < 90)
    return "weights cannot stream through shared memory before compute capability 9.0";
  if (max_rows(last, op::moe_unpermute::row_of) != 1) return "adds the rows of one token";
  const RegionInput& added = region.nodes.back().inputs[op::moe_unpermute::rows];
  if (added != RegionInput::inside(static_cast<std::size_t>(region.anchor), 0, added.rounding))
    return "the rows are not the product's";
  if (last.has(op::moe_unpermute::residual)) return "adds no residual";
  const std::int64_t k = p.size(1, -1), choices = last.size(op::moe_unpermute::row_of, 1);
  if (choices < 1 || choices > gemv::most_choices)
    return fmt::format("adds the rows of up to {} experts", gemv::most_choices);
  if (k * byte_size(p.input(1).dtype) % 16 != 0) return "rows of the weight are not whole 16 bytes";
  if (k > gemv::longest_row || !shape_of(region).fits(gemv::usual_ring_bytes))
    return "a row of each expert does not fit into a stage";
  if (Decline reason = GemvPrologue::declines(region)) return reason;
  if (GemvPrologue(region).permute != nullptr) return "the rows are not sorted here";
  if (Decline reason = Product::declines_after(region, loops)) return reason;
  const Product product(region, loops);
  if (product.blocked || product.column_sums) return "scales cover blocks of the reduction";
  if (region.results.size() != 1) return "more than the token leaves";
  if (p.input(1).dims[0] == Dim(0)) return "no group has a weight";
  return std::nullopt;
}

struct Combined {
  Product product;
  int row_of, weights;  ///< operands
  std::vector<Program> programs;

  explicit Combined(const Region& region, const Config& config = {})
      : product(region, loops),
        row_of(static_cast<int>(*region.operand_of(region.nodes.size() - 1, op::moe_unpermute::row_of))),
        weights(static_cast<int>(*region.operand_of(region.nodes.size() - 1, op::moe_unpermute::weights))) {
    const Problem& p = region.problem();
    const GemvPrologue prologue(region);
    if (!prologue.is_empty()) product.at.x = static_cast<int>(prologue.x(region));
    const int ring_bytes = ring_bytes_of(config);
    const gemv::CombineShape shape = shape_of(region, ring_bytes);
    const gemv::CombineConfig device{
        .k = static_cast<int>(p.size(1, -1)),
        .x = prologue.is_empty() ? p.input(0).dtype : prologue.x_type(),
        .w = p.input(1).dtype,
        .offsets = p.input(op::grouped_linear::offsets).dtype,
        .ids = region.operand_type(static_cast<std::size_t>(row_of)).dtype,
        .choices = shape.choices,
        .tail = has_unweighted_group(p),
        .ring_bytes = ring_bytes,
        .prologue = prologue.quantization(),
    };
    const GeneratedType epilogue = product.epilogue();
    programs.push_back(
        {.header = "kernel/cuda/device/gemv/combine.cuh",
         .task = fmt::format("cermet::gemv::Combine<cermet::gemv::CombineConfig{}, {}>", config_text(device),
                             epilogue.name),
         .prelude = epilogue.source,
         .threads = shape.threads(),
         .shared_bytes = shape.shared_bytes(),
         .min_blocks =
             shape.warp_pieces > 8 || device.tail ? 1 : 2,  // 96 registers spill where rows may have no weight
         .alternates = true,
         .walk = Walk{.stage_bytes = shape.stage_bytes(), .ring_bytes = shape.ring_bytes() + 16 * shape.stages}});
  }

  void launch(const LaunchArgs& args) const {
    const TensorView &x = *product.given(args, product.at.x), &w = *product.given(args, product.at.w),
                     &y = args.outputs[product.y];
    if (y.elements() == 0) return;
    gemv::Params p{};
    p.x = x.data;
    p.x_stride = x.strides[0];
    p.w = w.data;
    p.w_stride = w.strides[1];
    p.w_group_stride = w.strides[0];
    p.groups = narrow(w.shape[0], "product", "groups");
    p.offsets = product.given(args, product.at.offsets)->data;
    p.y = y.data;
    p.rows = narrow(x.shape[0], "product", "rows");
    p.columns = narrow(y.shape.back(), "product", "columns");
    p.row_of_choice = args.inputs[static_cast<std::size_t>(row_of)].data;
    p.weights = args.inputs[static_cast<std::size_t>(weights)].as<const float>();
    p.published = args.queue->is_published(p.row_of_choice, p.offsets) ? 1 : 0;
    for (std::size_t i = 0; i < product.extras().size(); ++i) {
      p.extra[i] = product.operand(args, i);
      p.extra[i].row = product.extra_steps(args, i, 1)[0];
    }
    p.share_out(p.columns, std::min<std::int64_t>(args.queue->target().multiprocessors, p.columns));
    args.queue->run(0, p.shares, p);
  }
};

/// Smaller stages last, so that no other launch has them by default.
std::vector<Config> configs(const Region& region) {
  std::vector<Config> list(1);
  if (shape_of(region, shared_ring_kib << 10).fits(shared_ring_kib << 10))
    list.push_back({{"ring_kib", shared_ring_kib}});
  return list;
}

double cost(const Region& region, const Config&, const DeviceLimits& limits) {
  return 3500 / limits.clock_hz + limits.launch_seconds +
         roofline_seconds(region, limits.f32_operations_per_second, limits);
}

}  // namespace

extern const Kernel gemv_combine;
const Kernel gemv_combine{
    .name = "gemv.combine",
    .op = OpKind::grouped_linear,
    .summary =
        "the second product of a token's experts, weighted and added as it is computed: weights of all experts stream "
        "side by side",
    .fuses = true,
    .declines = declines,
    .bind = [](const Region& region, const Config& config) -> Launcher {
      return [combined = Combined(region, config)](const LaunchArgs& args) { combined.launch(args); };
    },
    .programs = [](const Region& region, const Config& config) { return Combined(region, config).programs; },
    .configs = configs,
    .cost = cost};

}  // namespace cermet::cuda::gemv_combine_file
