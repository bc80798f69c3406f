// Host half of deform_conv.
#include "kernel/cuda/device/conv/deform_conv.hpp"

#include "base/checked.hpp"
#include "kernel/cuda/image/positions.hpp"
#include "kernel/cuda/task.hpp"
#include "kernel/kernel.hpp"
#include "op/deform_conv.hpp"

namespace cermet::cuda::conv_deform_conv_file {
namespace {

void launch(const LaunchArgs& args, const DeformConv& conv) {
  const TensorView &x = args.inputs[deform::x], &weight = args.inputs[deform::weight], &y = args.outputs[0];
  if (y.elements() == 0) return;
  const auto view = [&](std::size_t operand) {
    return args.has(operand) ? spatial_tensor(spatial_view(args.inputs[operand], false)) : SpatialTensor{};
  };
  const auto data = [&](std::size_t operand) -> const void* {
    return args.has(operand) ? args.inputs[operand].data : nullptr;
  };
  const SpatialView to = spatial_view(y, false);
  deform_conv::Params params{.x = x.data,
                             .weight = weight.data,
                             .offset = data(deform::offset),
                             .bias = data(deform::bias),
                             .mask = data(deform::mask),
                             .y = y.data,
                             .from = view(deform::x),
                             .moves = view(deform::offset),
                             .scales = view(deform::mask),
                             .to = spatial_tensor(to),
                             .order = position_order(to, false),
                             .weight_stride = {weight.strides[0], weight.strides[1], weight.strides[2]},
                             .inner = static_cast<std::int32_t>(weight.shape[1]),
                             .outer = static_cast<std::int32_t>(y.shape[1] / conv.groups),
                             .each = static_cast<std::int32_t>(x.shape[1] / conv.offset_groups),
                             .kernel = {},
                             .stride = {},
                             .dilation = {},
                             .before = {}};
  for (std::size_t a = 0; a < 2; ++a) {
    params.kernel[a] = static_cast<std::int32_t>(conv.window.kernel[a + 1]);
    params.stride[a] = static_cast<std::int32_t>(conv.window.stride[a + 1]);
    params.dilation[a] = static_cast<std::int32_t>(conv.window.dilation[a + 1]);
    params.before[a] = static_cast<std::int32_t>(conv.window.before[a + 1]);
  }
  args.queue->run(0, div_up(params.order.count, std::int64_t{deform_conv::threads}), params);
}

}  // namespace

extern const Kernel conv_deform;
const Kernel conv_deform{
    .name = "conv.deform",
    .op = OpKind::deform_conv,
    .summary = "a thread for each result",
    .declines = [](const Problem& p) -> Decline {
      for (int a = 1; a < 4; ++a)
        if (p.size(deform::x, a) >= std::int64_t{1} << 30) return "an axis of 2^30 or more elements";
      return std::nullopt;
    },
    .bind = [](const Problem& p) -> Launcher {
      return [conv = deform_conv_of(p.attributes, p.size(deform::weight, 2), p.size(deform::weight, 3))](
                 const LaunchArgs& args) { launch(args, conv); };
    },
    .programs = [](const Problem& p) -> std::vector<Program> {
      return {{.header = "kernel/cuda/device/conv/deform_conv.cuh",
               .task = fmt::format("cermet::deform_conv::Task<{}>", device_name(p.input(deform::x).dtype)),
               .threads = deform_conv::threads}};
    }};

}  // namespace cermet::cuda::conv_deform_conv_file
