#include "kernel/cuda/conv/general.hpp"
#include "kernel/cuda/config_text.hpp"

#include "base/checked.hpp"
#include "op/operands.hpp"

namespace cermet::cuda {
namespace {

/// The axes that a kernel counts with 32 bits.
std::int32_t narrow(std::int64_t value) {
  require(value >= 0 && value < std::int64_t{1} << 31, "conv: expected sizes below 2^31, found {}", value);
  return static_cast<std::int32_t>(value);
}

conv::Steps steps_of(const std::array<std::int64_t, 5>& s) { return {s[0], s[1], {s[2], s[3], s[4]}}; }

/// Places of [batch, channel, depth, height, width] among the axes of x and y; -1 for those that they do not have.
std::array<int, 5> axes_of(const ConvGeometry& g) {
  std::array<int, 5> axes{0, g.channels_last ? g.axes + 1 : 1, -1, -1, -1};
  for (int a = 0; a < g.axes; ++a) axes[static_cast<std::size_t>(5 - g.axes + a)] = (g.channels_last ? 1 : 2) + a;
  return axes;
}

conv::WeightSteps plain_steps(const TensorView& weight, bool transposed) {
  const ConvTensor at = conv_tensor(weight, false);
  return {
      at.strides[transposed ? 1 : 0], at.strides[transposed ? 0 : 1], {at.strides[2], at.strides[3], at.strides[4]}};
}

}  // namespace

Decline GeneralConv::declines(const Region& region) {
  if (Decline reason = Product::declines(region, {.results = 2})) return reason;
  if (conv_geometry(region.problem()).channels_last || !region.problem().has(op::conv::bias)) return std::nullopt;
  // Columns of the result are channels for the bias and places for what follows.
  const auto bias = region.operand_of(op::conv::bias);
  for (std::size_t n = 1; n < region.nodes.size(); ++n)
    for (const RegionInput& input : region.nodes[n].inputs)
      if (input.from == RegionInput::From::outside && static_cast<std::size_t>(input.index) == bias)
        return "the bias is read again after the convolution";
  return std::nullopt;
}

GeneralConv::GeneralConv(const Region& region, bool gated)
    : product_(region),
      geometry_(conv_geometry(region.problem())),
      transposed_(region.problem().op->kind == OpKind::conv_transpose),
      gated_(gated),
      type_(region.problem().input(0).dtype) {
  if (region.problem().has(op::conv::bias)) bias_ = region.operand_of(op::conv::bias);
  for (const TileProgram::Extra& extra : product_epilogue(region).program.extras) extras_.push_back(extra.operand);
}

Program GeneralConv::program() const {
  const GeneratedType epilogue = product_.epilogue();
  const conv::GeneralConfig config{
      .type = type_, .channels_last = geometry_.channels_last, .transposed = transposed_, .gated = gated_};
  return {.header = "kernel/cuda/device/conv/general.cuh",
          .task = fmt::format("cermet::conv::General<cermet::conv::GeneralConfig{}, {}>", config_text(config),
                              epilogue.name),
          .prelude = epilogue.source,
          .threads = conv::general_threads};
}

/// Operands that follow broadcast to the result; the bias goes along its channels.
conv::Steps GeneralConv::steps_of_extra(const LaunchArgs& args, std::size_t i) const {
  const TensorView& view = args.inputs[extras_[i]];
  if (bias_ == extras_[i]) return {0, view.strides[0], {}};
  const std::array<int, 5> axes = axes_of(geometry_);
  std::array<std::int64_t, 5> steps{};
  for (std::size_t a = 0; a < 5; ++a) {
    const int own = axes[a] < 0 ? -1 : axes[a] - (geometry_.axes + 2 - view.shape.rank());
    if (own >= 0 && view.shape[own] > 1) steps[a] = view.strides[own];
  }
  return steps_of(steps);
}

void GeneralConv::launch(const LaunchArgs& args, std::size_t program, const conv::WeightSteps* weight,
                         const ConvGate* gate) const {
  const TensorView &x = *product_.given(args, product_.at.x), &w = *product_.given(args, product_.at.w),
                   &y = args.outputs[product_.y];
  const TensorView* const second = product_.second ? &args.outputs[product_.second->y] : nullptr;
  if (y.elements() == 0) return;
  const ConvTensor in = conv_tensor(x, geometry_.channels_last), out = conv_tensor(y, geometry_.channels_last);
  conv::GeneralParams p{};
  p.x = x.data;
  p.weight = w.data;
  p.y = y.data;
  if (second) p.second = second->data, p.second_step = steps_of(conv_tensor(*second, geometry_.channels_last).strides);
  p.x_step = steps_of(in.strides);
  p.y_step = steps_of(out.strides);
  p.weight_step = weight ? *weight : plain_steps(w, transposed_);
  for (std::size_t i = 0; i < extras_.size(); ++i) {
    p.extra[i] = args.inputs[extras_[i]].data;
    p.extra_step[i] = steps_of_extra(args, i);
  }
  if (gate) p.gate = gate->data, p.gate_batch = gate->batch, p.gate_channel = gate->channel;
  p.groups = narrow(geometry_.group);
  p.group_inputs = narrow(in.channels() / geometry_.group);
  p.group_outputs = narrow(out.channels() / geometry_.group);
  for (std::size_t a = 0; a < 3; ++a) {
    p.size[a] = narrow(in.dims[2 + a]);
    p.places[a] = narrow(out.dims[2 + a]);
    p.kernel[a] = narrow(geometry_.kernel[a]);
    p.stride[a] = narrow(geometry_.stride[a]);
    p.dilation[a] = narrow(geometry_.dilation[a]);
    p.before[a] = narrow(geometry_.before[a]);
  }
  const std::int64_t blocks = geometry_.group * div_up(p.group_outputs, conv::general_outputs),
                     threads = blocks * out.positions();
  require(threads < std::int64_t{1} << 31, "conv: expected fewer than 2^31 results of a sample, found {}",
          threads * conv::general_outputs);
  p.sample_items = static_cast<std::uint32_t>(div_up(threads, conv::general_threads));
  args.queue->run(program, out.batch() * p.sample_items, p);
}

}  // namespace cermet::cuda

namespace cermet::cuda {

namespace conv_pointwise_file {
extern const Kernel conv_pointwise_hopper;
}
namespace conv_hopper_file {
extern const Kernel conv_hopper;
}
namespace conv_implicit_file {
extern const Kernel conv_implicit;
}

Decline declines_second_result(const Region& region) {
  if (region.problem().op->kind != OpKind::conv || !Product(region).second) return std::nullopt;
  for (const Kernel* hopper : {&conv_pointwise_file::conv_pointwise_hopper, &conv_hopper_file::conv_hopper}) {
    if (hopper->declines(region.problem())) continue;
    if (const Decline reason = hopper->declines(region))
      return fmt::format("{} is faster alone, and declines the rest: {}", hopper->name, *reason);
  }
  return std::nullopt;
}

// 2.6 % slower than apart on an H200: docs/notes/conv-cuda.md.
RegionCut second_result_cut(const Region& region) {
  const bool takes = region.problem().op->kind == OpKind::conv && !region.is_single() &&
                     !conv_implicit_file::conv_implicit.declines(region);
  return {takes && Product(region).second ? RegionCut::Rule::separate : RegionCut::Rule::none};
}

}  // namespace cermet::cuda

namespace cermet::cuda::conv_general_file {
namespace {

Decline declines(const Region& region) {
  if (Decline reason = GeneralConv::declines(region)) return reason;
  return declines_second_result(region);
}

Kernel general(const char* name, OpKind op) {
  return {
      .name = name,
      .op = op,
      .summary = "float32 multiply-adds for any layout, groups, strides and types, four output channels to a thread",
      .fuses = true,
      .declines = declines,
      .bind = [](const Region& r) -> Launcher {
        return [conv = GeneralConv(r)](const LaunchArgs& args) { conv.launch(args); };
      },
      .programs = [](const Region& r) { return std::vector<Program>{GeneralConv(r).program()}; },
      .cut = second_result_cut};
}

}  // namespace

extern const Kernel conv_general, conv_transpose_general;
const Kernel conv_general = general("conv.general", OpKind::conv);
const Kernel conv_transpose_general = general("conv_transpose.general", OpKind::conv_transpose);

}  // namespace cermet::cuda::conv_general_file
