// conv over nhwc tensors on Hopper: the GEMM of linear, whose rows are windows that bulk copies gather (im2col tensor
// maps).
#include <algorithm>
#include <array>
#include <limits>

#include "base/checked.hpp"
#include "kernel/cuda/conv/as_linear.hpp"
#include "kernel/cuda/conv/general.hpp"
#include "kernel/cuda/conv/weights.hpp"
#include "kernel/cuda/gemm/hopper.hpp"

namespace cermet::cuda::conv_hopper_file {
namespace {

/// Most operands of a region, so that a launch can hand on views of them without memory of its own.
constexpr std::size_t most_operands = 16;
/// What a tensor map of windows can say: where windows stand from the edges, how far taps are from the first, and
/// steps.
constexpr std::int64_t lowest_corner = -128, highest_corner = 127, farthest_tap = 255, longest_step = 8;

using Axes = ConvGeometry::Axes;

/// Where the first tap of the last window is, from the last pixel.
std::int64_t last_corner(const ConvGeometry& g, std::size_t axis) { return g.after[axis] - g.extent(axis) + 1; }

Decline declines_windows(const Problem& p) {
  const DType type = p.input(0).dtype;
  if (p.attributes.text("layout") != "nhwc") return "the layout is nchw";
  if (p.input(0).rank() != 4) return "there are not two spatial axes";
  if (!p.is_constant(1)) return "the weight is not constant, so it cannot be prepacked";
  if (type != DType::f16 && type != DType::bf16)
    return fmt::format("no instruction multiplies {} exactly", name_of(type));
  const ConvGeometry g = conv_geometry(p);
  if (g.group != 1) return "channels are in groups";
  const std::int64_t stage = gemm::HopperShape::row_bytes / byte_size(type);
  if (const std::int64_t channels = p.size(1, 1); channels == 0 || channels % stage != 0)
    return fmt::format("{} channels are not in blocks of {}", channels, stage);
  for (const std::size_t axis : {1u, 2u}) {
    const auto is_corner = [](std::int64_t at) { return at >= lowest_corner && at <= highest_corner; };
    if (!is_corner(-g.before[axis]) || !is_corner(last_corner(g, axis)) || g.extent(axis) - 1 > farthest_tap ||
        g.stride[axis] > longest_step)
      return "a tensor map cannot describe the windows";
  }
  return std::nullopt;
}

class HopperConv {
 public:
  static Decline declines(const Region& region);
  HopperConv(const Region& region, const Config& config)
      : geometry_(conv_geometry(region.problem())),
        product_(conv_as_linear(region), config, windows_of(region.problem()), HopperTiles::one),
        general_(region),
        x_(*region.operand_of(0)),
        weight_(*region.operand_of(1)),
        programs_(product_.tile_programs().size()) {}
  std::vector<Program> programs() const;
  std::vector<Config> configs() const { return product_.configs(); }
  ConfigSpace space() const { return product_.space(); }
  double seconds(const DeviceLimits& limits) const { return product_.seconds(limits); }
  void launch(const LaunchArgs& args) const;

 private:
  static HopperRows windows_of(const Problem& p);
  WindowMapShape map_of(const TensorView& x) const;

  ConvGeometry geometry_;
  HopperProduct product_;
  GeneralConv general_;
  std::size_t x_, weight_, programs_;  ///< places of operands in a launch; programs of the product
};

Decline HopperConv::declines(const Region& region) {
  if (region.problem().target->compute_capability != 90) return "needs compute capability 9.0";
  if (Decline reason = declines_windows(region.problem())) return reason;
  if (Decline reason = GeneralConv::declines(region)) return reason;
  if (region.operands.size() > most_operands)
    return fmt::format("{} operands, and {} can be", region.operands.size(), most_operands);
  return HopperProduct::declines(conv_as_linear(region));
}

HopperRows HopperConv::windows_of(const Problem& p) {
  const ConvGeometry g = conv_geometry(p);
  const Dims &x = p.input(0).dims, &y = p.outputs[0].dims;
  double share = 1 / static_cast<double>(g.taps());
  for (const std::size_t axis : {1u, 2u}) {
    const std::int64_t places = std::max<std::int64_t>(1, y[axis].value(p.maximum));
    share *= static_cast<double>(x[axis].value(p.maximum)) / static_cast<double>(places);
  }
  const auto narrow = [](std::int64_t value) { return static_cast<int>(value); };
  const gemm::HopperWindows windows{.kernel_h = narrow(g.kernel[1]),
                                    .kernel_w = narrow(g.kernel[2]),
                                    .stride_h = narrow(g.stride[1]),
                                    .stride_w = narrow(g.stride[2]),
                                    .dilation_h = narrow(g.dilation[1]),
                                    .dilation_w = narrow(g.dilation[2]),
                                    .before_h = narrow(g.before[1]),
                                    .before_w = narrow(g.before[2]),
                                    .channels = narrow(p.size(1, 1))};
  return {windows, std::min(1.0, share)};
}

std::vector<Program> HopperConv::programs() const {
  std::vector<Program> list = product_.tile_programs();
  list.push_back(as_fallbacks({general_.program()}).front());
  return list;
}

WindowMapShape HopperConv::map_of(const TensorView& x) const {
  const ConvTensor in = conv_tensor(x, true);
  const auto narrow = [](std::int64_t value) { return static_cast<int>(value); };
  // Axes of one entry may have any stride, but a map wants a multiple of 16 bytes.
  const auto stride = [&](std::size_t axis, std::int64_t dense) {
    return in.dims[axis] == 1 ? dense : in.strides[axis];
  };
  WindowMapShape map;
  map.data = x.data;
  map.dtype = x.dtype;
  map.samples = in.batch(), map.height = in.dims[3], map.width = in.dims[4], map.channels = in.channels();
  map.column_stride = stride(4, map.channels);
  map.row_stride = stride(3, map.column_stride * map.width);
  map.sample_stride = stride(0, map.row_stride * map.height);
  map.stride_h = narrow(geometry_.stride[1]), map.stride_w = narrow(geometry_.stride[2]);
  map.first_h = narrow(-geometry_.before[1]), map.first_w = narrow(-geometry_.before[2]);
  map.last_h = narrow(last_corner(geometry_, 1)), map.last_w = narrow(last_corner(geometry_, 2));
  return map;
}

void HopperConv::launch(const LaunchArgs& args) const {
  const TensorView &x = args.inputs[x_], &weight = args.inputs[weight_], &y = args.outputs[0];
  if (y.elements() == 0) return;
  const WindowMapShape map = map_of(x);
  const ConvTensor out = conv_tensor(y, true);
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max(), unit = 8;  // elements of 16 bytes
  const bool aligned = map.column_stride % unit == 0 && map.row_stride % unit == 0 && map.sample_stride % unit == 0;
  if (aligned && std::max(out.dims[3], out.dims[4]) < most) {
    std::array<TensorView, most_operands> views;
    std::ranges::copy(args.inputs, views.begin());
    const std::int64_t length = weight.shape[1] * geometry_.taps();
    views[x_] = TensorView(x.data, x.dtype, {y.shape[0], y.shape[1], y.shape[2], length});
    views[weight_] = TensorView(weight.data, weight.dtype, {weight.shape[0], length});
    LaunchArgs own = args;
    own.inputs = std::span(views).first(args.inputs.size());
    if (product_.launch_windows(own, {map, byte_range(x), out.dims[3], out.dims[4]})) return;
  }
  const conv::WeightSteps steps = conv_row_steps(weight.shape);
  general_.launch(args, programs_, &steps);
}

}  // namespace

extern const Kernel conv_hopper;
const Kernel conv_hopper{
    .name = "conv.hopper",
    .op = OpKind::conv,
    .summary = "wgmma over windows that bulk copies gather: nhwc, 16-bit types, blocks of 64 channels",
    .fuses = true,
    .declines = HopperConv::declines,
    .bind = [](const Region& r, const Config& config) -> Launcher {
      return [conv = HopperConv(r, config)](const LaunchArgs& args) { conv.launch(args); };
    },
    .weight_layout = [](const Region& r, std::size_t operand) -> const WeightLayout* {
      return r.operand_of(1) == operand ? &conv_rows : nullptr;
    },
    .programs = [](const Region& r, const Config& config) { return HopperConv(r, config).programs(); },
    .configs = [](const Region& r) { return HopperConv(r, {}).configs(); },
    .space = [](const Region& r) { return HopperConv(r, {}).space(); },
    .cost = [](const Region& r, const Config& config,
               const DeviceLimits& limits) { return HopperConv(r, config).seconds(limits); }};

}  // namespace cermet::cuda::conv_hopper_file
