// Host halves of max_unpool and col2im.
#include "kernel/cuda/device/pool/unpool.hpp"

#include "base/checked.hpp"
#include "kernel/cuda/image/positions.hpp"
#include "kernel/cuda/task.hpp"
#include "kernel/kernel.hpp"

namespace cermet::cuda::pool_unpool_file {
namespace {

Decline declines(const Problem& p) {
  for (const TensorType* type : {&p.input(0), &p.outputs[0]})
    for (std::size_t a = 1; a < type->dims.size(); ++a)
      if (type->dims[a].value(p.maximum) >= std::int64_t{1} << 30) return "an axis of 2^30 or more elements";
  return std::nullopt;
}

void unpool(const LaunchArgs& args, const Unpooling& unpooling) {
  const TensorView &x = args.inputs[0], &indices = args.inputs[1], &y = args.outputs[0];
  if (y.elements() == 0) return;
  const SpatialView from = spatial_view(x, false), to = spatial_view(y, false);
  const Spatial covered = unpooling.covered(from.size);
  unpool::Params params{.x = x.data,
                        .indices = indices.as<const std::int64_t>(),
                        .y = y.data,
                        .from = spatial_tensor(from),
                        .places = spatial_tensor(spatial_view(indices, false)),
                        .to = spatial_tensor(to),
                        .order = position_order(to, false),
                        .channels = from.channels,
                        .covered = {},
                        .zeros = 1,
                        .word_bytes = static_cast<std::uint32_t>(size_of(x.dtype))};
  for (std::size_t a = 0; a < 3; ++a) {
    require(covered[a] <= to.size[a], "max_unpool: operand 0 (x): its windows cover {} elements of an axis that has {}",
            covered[a], to.size[a]);
    params.covered[a] = static_cast<std::int32_t>(covered[a]);
  }
  args.queue->run(0, div_up(params.order.count, std::int64_t{unpool::threads}), params);
  params.order = position_order(from, false);
  params.zeros = 0;
  args.queue->run(0, div_up(params.order.count, std::int64_t{unpool::threads}), params);
}

void add_blocks(const LaunchArgs& args, const ImageBlocks& blocks) {
  const TensorView &x = args.inputs[0], &y = args.outputs[0];
  if (y.elements() == 0) return;
  const SpatialView to = spatial_view(y, false);
  unpool::BlockParams params{.x = x.data,
                             .y = y.data,
                             .to = spatial_tensor(to),
                             .order = position_order(to, false),
                             .batch_stride = x.strides[0],
                             .row_stride = x.strides[1],
                             .count = {},
                             .kernel = {},
                             .stride = {},
                             .dilation = {},
                             .before = {}};
  for (std::size_t a = 0; a < 3; ++a) {
    params.count[a] = static_cast<std::int32_t>(blocks.count[a]);
    params.kernel[a] = static_cast<std::int32_t>(blocks.window.kernel[a]);
    params.stride[a] = static_cast<std::int32_t>(blocks.window.stride[a]);
    params.dilation[a] = static_cast<std::int32_t>(blocks.window.dilation[a]);
    params.before[a] = static_cast<std::int32_t>(blocks.window.before[a]);
  }
  args.queue->run(0, div_up(params.order.count, std::int64_t{unpool::threads}), params);
}

}  // namespace

extern const Kernel pool_max_unpool;
const Kernel pool_max_unpool{
    .name = "pool.max_unpool",
    .op = OpKind::max_unpool,
    .summary = "zeros, then a thread for each element; ignores indices outside their plane",
    .declines = declines,
    .bind = [](const Problem& p) -> Launcher {
      return [unpooling = unpooling_of(p.attributes, p.input(0).rank())](const LaunchArgs& args) {
        unpool(args, unpooling);
      };
    },
    .programs = [](const Problem&) -> std::vector<Program> {
      return {
          {.header = "kernel/cuda/device/pool/unpool.cuh", .task = "cermet::unpool::Task", .threads = unpool::threads}};
    }};

extern const Kernel pool_col2im;
const Kernel pool_col2im{.name = "pool.col2im",
                         .op = OpKind::col2im,
                         .summary = "a thread for each result, which gathers what lies on it",
                         .declines = declines,
                         .bind = [](const Problem& p) -> Launcher {
                           return [blocks = image_blocks(p.attributes)](const LaunchArgs& args) {
                             add_blocks(args, blocks);
                           };
                         },
                         .programs = [](const Problem& p) -> std::vector<Program> {
                           return {{.header = "kernel/cuda/device/pool/unpool.cuh",
                                    .task = fmt::format("cermet::unpool::BlockTask<{}>", device_name(p.input(0).dtype)),
                                    .threads = unpool::threads}};
                         }};

}  // namespace cermet::cuda::pool_unpool_file
