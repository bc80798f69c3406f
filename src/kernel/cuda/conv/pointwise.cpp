// conv with windows of one pixel over nhwc is linear: the kernels of linear compute it, with its residual and activation as nodes that follow.
#include <algorithm>
#include <array>

#include "kernel/cuda/conv/as_linear.hpp"
#include "kernel/cuda/conv/general.hpp"

namespace cermet::cuda {

namespace gemv_kernels_file {
extern const Kernel gemv_linear;
}
namespace gemm_hopper_kernels_file {
extern const Kernel gemm_places_hopper;
}
namespace gemm_general_kernels_file {
extern const Kernel gemm_linear_tensor, gemm_linear_general;
}

namespace conv_pointwise_file {
namespace {

/// Most operands of a region, so that a launch can hand on views of them without memory of its own.
constexpr std::size_t most_operands = 16;

Decline declines_windows(const Region& region) {
  const Problem& p = region.problem();
  if (p.attributes.text("layout") != "nhwc") return "the layout is nchw";
  if (region.anchor != 0) return "computes nothing before the convolution";
  const ConvGeometry g = conv_geometry(p);
  const auto all = [](const ConvGeometry::Axes& axes, std::int64_t value) { return std::ranges::all_of(axes, [&](std::int64_t a) { return a == value; }); };
  if (g.taps() != 1 || !all(g.stride, 1) || !all(g.before, 0) || !all(g.after, 0)) return "windows are not single pixels, one beside the other";
  if (g.group != 1) return "channels are in groups";
  if (p.input(1).dims[1] == Dim(0)) return "there are no channels";
  if (region.operands.size() > most_operands) return fmt::format("{} operands, and {} can be", region.operands.size(), most_operands);
  return std::nullopt;
}

/// Runs a kernel of linear; weights whose channels are not neighbours in memory take the general convolution.
Launcher bind(const Kernel& linear, const Region& region, const Config& config) {
  const Region product = conv_as_linear(region);
  return [launch = linear.bind(product, config), general = GeneralConv(region), weight = *region.operand_of(1),
          last = linear.programs(product, config).size()](const LaunchArgs& args) {
    std::array<TensorView, most_operands> views;
    std::ranges::copy(args.inputs, views.begin());
    TensorView& w = views[weight];
    if (w.shape[1] > 1 && w.strides[1] != 1) return general.launch(args, last);
    w.shape = {w.shape[0], w.shape[1]};
    w.strides = {w.strides[0], 1};
    LaunchArgs own = args;
    own.inputs = std::span(views).first(args.inputs.size());
    launch(own);
  };
}

std::vector<Program> programs(const Kernel& linear, const Region& region, const Config& config) {
  std::vector<Program> list = linear.programs(conv_as_linear(region), config);
  list.push_back(as_fallbacks({GeneralConv(region).program()}).front());
  return list;
}

/// conv by a kernel of linear, which need not be there yet when this is called.
Kernel pointwise(const char* name, const char* summary, const Kernel& linear) {
  return {.name = name,
          .op = OpKind::conv,
          .summary = summary,
          .fuses = true,
          .declines = [&linear](const Region& r) -> Decline {
            if (Decline reason = declines_windows(r)) return reason;
            if (Decline reason = GeneralConv::declines(r)) return reason;
            return linear.declines(conv_as_linear(r));
          },
          .bind = [&linear](const Region& r, const Config& config) { return bind(linear, r, config); },
          .workspace = [&linear](const Region& r, const Config& config, int n) { return linear.workspace(conv_as_linear(r), config, n); },
          .programs = [&linear](const Region& r, const Config& config) { return programs(linear, r, config); },
          .configs = [&linear](const Region& r) { return linear.configs(conv_as_linear(r)); },
          .cost = [&linear](const Region& r, const Config& config, const DeviceLimits& limits) { return linear.cost(conv_as_linear(r), config, limits); }};
}

}  // namespace

extern const Kernel conv_pointwise_gemv, conv_pointwise_hopper, conv_pointwise_tensor, conv_pointwise_general;
const Kernel conv_pointwise_gemv = pointwise("conv.pointwise.gemv", "windows of one pixel, few of them: gemv.linear", gemv_kernels_file::gemv_linear);
const Kernel conv_pointwise_hopper =
    pointwise("conv.pointwise.hopper", "windows of one pixel: gemm.linear.hopper", gemm_hopper_kernels_file::gemm_places_hopper);
const Kernel conv_pointwise_tensor =
    pointwise("conv.pointwise.tensor", "windows of one pixel: gemm.linear.tensor", gemm_general_kernels_file::gemm_linear_tensor);
const Kernel conv_pointwise_general =
    pointwise("conv.pointwise.general", "windows of one pixel: gemm.linear.general", gemm_general_kernels_file::gemm_linear_general);

}  // namespace conv_pointwise_file

}  // namespace cermet::cuda
