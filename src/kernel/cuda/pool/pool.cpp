// Host half of pooling.
#include "kernel/cuda/device/pool/pool.hpp"

#include "base/checked.hpp"
#include "kernel/cuda/config_text.hpp"
#include "kernel/cuda/image/positions.hpp"
#include "kernel/cuda/task.hpp"
#include "kernel/kernel.hpp"

namespace cermet::cuda::pool_pool_file {
namespace {

struct Pooling {
  PoolWindow window;
  bool count_padding = false, columns = false;
  int power = 1;
};

void launch(const LaunchArgs& args, const Pooling& pooling) {
  const TensorView &x = args.inputs[0], &y = args.outputs[0];
  if (y.elements() == 0) return;
  const bool last = pooling.window.channels_last, indices = args.outputs.size() > 1;
  const SpatialView from = spatial_view(x, last), to = spatial_view(y, last);
  const PoolWindow window = pooling.window.over(from.size);
  const bool wide = last && channel_run(x, y) == 16 / byte_size(x.dtype) && !indices;
  pool::Params params{.x = x.data,
                      .y = y.data,
                      .indices = indices ? args.outputs[1].as<std::int64_t>() : nullptr,
                      .from = spatial_tensor(from),
                      .to = spatial_tensor(to),
                      .places = indices ? spatial_tensor(spatial_view(args.outputs[1], last)) : SpatialTensor{},
                      .order = position_order(to, last, wide ? channel_run(x, y) : 1),
                      .channels = from.channels,
                      .kernel = {},
                      .stride = {},
                      .dilation = {},
                      .before = {},
                      .after = {},
                      .count_padding = pooling.count_padding,
                      .columns = pooling.columns,
                      .power = pooling.power};
  for (std::size_t a = 0; a < 3; ++a) {
    params.kernel[a] = static_cast<std::int32_t>(window.kernel[a]);
    params.stride[a] = static_cast<std::int32_t>(window.stride[a]);
    params.dilation[a] = static_cast<std::int32_t>(window.dilation[a]);
    params.before[a] = static_cast<std::int32_t>(window.before[a]);
    params.after[a] = static_cast<std::int32_t>(window.after[a]);
  }
  args.queue->run(wide ? 1 : 0, div_up(params.order.count, std::int64_t{pool::threads}), params);
}

/// Spatial positions and windows are counted in 32 bits.
Decline declines(const Problem& p) {
  constexpr std::int64_t most = std::int64_t{1} << 30;
  const PoolWindow window = pool_window(p.attributes, p.input(0).rank());
  for (std::size_t a = 0; a < 3; ++a)
    if ((window.kernel[a] - 1) * window.dilation[a] + window.stride[a] >= most) return "a window of 2^30 or more";
  for (int a = 1; a < p.input(0).rank(); ++a)
    if (p.size(0, a) >= most) return "an axis of 2^30 or more elements";
  return std::nullopt;
}

std::vector<Program> programs(const Problem& p, pool::Kind kind) {
  const DType type = p.input(0).dtype;
  const auto program = [&](int run) -> Program {
    const pool::Config config{.type = type, .kind = kind, .run = run};
    return {.header = "kernel/cuda/device/pool/pool.cuh",
            .task = fmt::format("cermet::pool::Task<cermet::pool::Config{}>", config_text(config)),
            .threads = pool::threads};
  };
  std::vector<Program> list{program(1)};
  if (is_channels_last(p.attributes)) list.push_back(program(16 / static_cast<int>(size_of(type))));
  return list;
}

constexpr const char* const summary = "a thread for each result, or for 16 bytes of channels where they are last";

}  // namespace

extern const Kernel pool_max;
const Kernel pool_max{.name = "pool.max",
                      .op = OpKind::max_pool,
                      .summary = summary,
                      .declines = declines,
                      .bind = [](const Problem& p) -> Launcher {
                        return [pooling = Pooling{pool_window(p.attributes, p.input(0).rank()), false,
                                                  p.attributes.integer("storage_order") == 1}](const LaunchArgs& args) {
                          launch(args, pooling);
                        };
                      },
                      .programs = [](const Problem& p) { return programs(p, pool::Kind::max); }};
extern const Kernel pool_average;
const Kernel pool_average{
    .name = "pool.average",
    .op = OpKind::average_pool,
    .summary = summary,
    .declines = declines,
    .bind = [](const Problem& p) -> Launcher {
      return [pooling = Pooling{pool_window(p.attributes, p.input(0).rank()), p.attributes.flag("count_include_pad")}](
                 const LaunchArgs& args) { launch(args, pooling); };
    },
    .programs = [](const Problem& p) { return programs(p, pool::Kind::average); }};
extern const Kernel pool_norm;
const Kernel pool_norm{.name = "pool.norm",
                       .op = OpKind::lp_pool,
                       .summary = summary,
                       .declines = declines,
                       .bind = [](const Problem& p) -> Launcher {
                         return [pooling = Pooling{.window = pool_window(p.attributes, p.input(0).rank()),
                                                   .power = static_cast<int>(p.attributes.integer("p"))}](
                                    const LaunchArgs& args) { launch(args, pooling); };
                       },
                       .programs = [](const Problem& p) { return programs(p, pool::Kind::norm); }};

}  // namespace cermet::cuda::pool_pool_file
