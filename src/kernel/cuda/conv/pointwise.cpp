// conv with windows of one pixel over nhwc is linear: the kernels of linear compute it, with its residual and
// activation as nodes that follow.
#include <algorithm>
#include <array>

#include "kernel/cuda/conv/as_linear.hpp"
#include "kernel/cuda/conv/general.hpp"
#include "kernel/cuda/gemm/hopper.hpp"
#include "kernel/region_part.hpp"

namespace cermet::cuda {

namespace gemv_gemv_file {
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
  const auto all = [](const ConvGeometry::Axes& axes, std::int64_t value) {
    return std::ranges::all_of(axes, [&](std::int64_t a) { return a == value; });
  };
  if (g.taps() != 1 || !all(g.stride, 1) || !all(g.before, 0) || !all(g.after, 0))
    return "windows are not single pixels, one beside the other";
  if (g.group != 1) return "channels are in groups";
  if (p.input(1).dims[1] == Dim(0)) return "there are no channels";
  if (region.operands.size() > most_operands)
    return fmt::format("{} operands, and {} can be", region.operands.size(), most_operands);
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
          .workspace = [&linear](const Region& r, const Config& config,
                                 int n) { return linear.workspace(conv_as_linear(r), config, n); },
          .programs = [&linear](const Region& r, const Config& config) { return programs(linear, r, config); },
          .configs = [&linear](const Region& r) { return linear.configs(conv_as_linear(r)); },
          .space = [&linear](const Region& r) { return space_of(linear, conv_as_linear(r)); },
          .cost = [&linear](const Region& r, const Config& config,
                            const DeviceLimits& limits) { return linear.cost(conv_as_linear(r), config, limits); }};
}

// ---- The gate of a squeeze-and-excitation block before the convolution

bool is_one(const Dim& dim) { return dim == Dim(1); }

/// Which operand of the product in front has one number for each channel of a sample; nothing where neither has.
std::optional<std::size_t> gate_of(const Problem& product) {
  for (const std::size_t gate : {0u, 1u}) {
    const Dims &x = product.input(1 - gate).dims, &own = product.input(gate).dims;
    if (x.size() == 4 && own.size() == 4 && x == product.outputs[0].dims && own[0] == x[0] && own[3] == x[3] &&
        is_one(own[1]) && is_one(own[2]))
      return gate;
  }
  return std::nullopt;
}

/// The convolution with what follows; its x comes from the node before.
RegionPart gated_part(const Region& region) { return part_of(region, 1, region.nodes.size(), 1); }

Decline declines_gated(const Region& region) {
  if (region.anchor != 1 || region.nodes[0].problem.op->kind != OpKind::mul)
    return "no gate is computed before the convolution";
  const RegionNode &gate = region.nodes[0], &conv = region.nodes[1];
  const DType type = conv.problem.input(0).dtype;
  if (type != DType::f16 && type != DType::bf16)
    return fmt::format("no instruction multiplies {} exactly", name_of(type));
  if (gate.problem.input(0).dtype != type || gate.problem.input(1).dtype != type) return "the gate has another type";
  if (!gate_of(gate.problem)) return "the gate does not have one number for each channel of a sample";
  if (!conv.inputs[0].is_inside() || conv.inputs[0].rounding != Rounding::strict)
    return fmt::format("gated pixels are rounded to {}, which a fast edge is not", name_of(type));
  std::size_t readers = 0;
  for (const RegionNode& node : region.nodes)
    readers += static_cast<std::size_t>(
        std::ranges::count_if(node.inputs, [](const RegionInput& i) { return i.is_inside() && i.index == 0; }));
  if (readers != 1 || std::ranges::any_of(region.results, [](const RegionPlace& result) { return result.node == 0; }))
    return "others read the gated image, too";
  const RegionPart part = gated_part(region);
  if (Decline reason = declines_windows(part.region)) return reason;
  if (!part.region.is_constant(*part.region.operand_of(1))) return "the weight is not constant";
  if (Decline reason = GeneralConv::declines(part.region)) return reason;
  return HopperProduct::declines(conv_as_linear(part.region));
}

class GatedConv {
 public:
  GatedConv(const Region& region, const Config& config)
      : part_(gated_part(region)),
        product_(conv_as_linear(part_.region), config, {.gated = true}, HopperTiles::one),
        general_(part_.region, true),
        x_place_(*part_.region.operand_of(0)),
        weight_place_(*part_.region.operand_of(1)),
        programs_(product_.tile_programs().size()) {
    const std::size_t gate = *gate_of(region.nodes[0].problem);
    gate_ = *region.operand_of(0, gate);
    x_ = *region.operand_of(0, 1 - gate);
  }
  std::vector<Program> programs() const {
    std::vector<Program> list = product_.tile_programs();
    list.push_back(as_fallbacks({general_.program()}).front());
    return list;
  }
  std::vector<Config> configs() const { return product_.configs(); }
  ConfigSpace space() const { return product_.space(); }
  double seconds(const DeviceLimits& limits) const { return product_.seconds(limits); }
  void launch(const LaunchArgs& args) const;

 private:
  RegionPart part_;
  HopperProduct product_;
  GeneralConv general_;
  std::size_t x_place_, weight_place_, programs_, gate_ = 0, x_ = 0;
};

void GatedConv::launch(const LaunchArgs& args) const {
  std::array<TensorView, most_operands> views;
  for (std::size_t i = 0; i < part_.operands.size(); ++i)
    if (part_.operands[i].index && args.has(*part_.operands[i].index)) views[i] = args.inputs[*part_.operands[i].index];
  const TensorView &x = args.inputs[x_], &gate = args.inputs[gate_];
  if (args.outputs[0].elements() == 0) return;
  views[x_place_] = x;
  LaunchArgs own = args;
  own.inputs = std::span(views).first(part_.operands.size());
  const std::int64_t channel = gate.shape[3] > 1 ? gate.strides[3] : 1,
                     sample = gate.shape[0] > 1 ? gate.strides[0] : 0;
  TensorView& weight = views[weight_place_];
  if (channel == 1 && (weight.shape[1] == 1 || weight.strides[1] == 1)) {
    const TensorView whole = weight;
    weight.shape = {weight.shape[0], weight.shape[1]};
    weight.strides = {weight.strides[0], 1};
    if (product_.launch_gated(own, {byte_range(gate), sample, x.shape[1] * x.shape[2]})) return;
    weight = whole;
  }
  const ConvGate general_gate{gate.data, sample, channel};
  general_.launch(own, programs_, nullptr, &general_gate);
}

}  // namespace

extern const Kernel conv_gated_hopper;
const Kernel conv_gated_hopper{
    .name = "conv.gated.hopper",
    .op = OpKind::conv,
    .summary =
        "windows of one pixel of an image that a gate multiplies, channel by channel: gemm.linear.hopper, which scales "
        "rows in shared memory",
    .fuses = true,
    .declines = declines_gated,
    .bind = [](const Region& r, const Config& config) -> Launcher {
      return [conv = GatedConv(r, config)](const LaunchArgs& args) { conv.launch(args); };
    },
    .programs = [](const Region& r, const Config& config) { return GatedConv(r, config).programs(); },
    .configs = [](const Region& r) { return GatedConv(r, {}).configs(); },
    .space = [](const Region& r) { return GatedConv(r, {}).space(); },
    .cost = [](const Region& r, const Config& config,
               const DeviceLimits& limits) { return GatedConv(r, config).seconds(limits); }};

extern const Kernel conv_pointwise_gemv, conv_pointwise_hopper, conv_pointwise_tensor, conv_pointwise_general;
const Kernel conv_pointwise_gemv =
    pointwise("conv.pointwise.gemv", "windows of one pixel, few of them: gemv.linear", gemv_gemv_file::gemv_linear);
const Kernel conv_pointwise_hopper = pointwise("conv.pointwise.hopper", "windows of one pixel: gemm.linear.hopper",
                                               gemm_hopper_kernels_file::gemm_places_hopper);
const Kernel conv_pointwise_tensor = pointwise("conv.pointwise.tensor", "windows of one pixel: gemm.linear.tensor",
                                               gemm_general_kernels_file::gemm_linear_tensor);
const Kernel conv_pointwise_general = pointwise("conv.pointwise.general", "windows of one pixel: gemm.linear.general",
                                                gemm_general_kernels_file::gemm_linear_general);

}  // namespace conv_pointwise_file

}  // namespace cermet::cuda
