// conv over nhwc tensors of few channels, as first layers are (device/conv/few_channels.cuh).
#include "kernel/cuda/device/conv/few_channels.hpp"
#include "base/checked.hpp"
#include "kernel/cuda/config_text.hpp"
#include "kernel/cuda/conv/general.hpp"
#include "kernel/cuda/conv/weights.hpp"
#include "kernel/cuda/gemm/stored_rows.hpp"
#include "kernel/cuda/narrow.hpp"

namespace cermet::cuda::conv_few_channels_file {
namespace {

using conv::FewChannelsShape;

constexpr int threads = 256;
/// Of more channels, conv.implicit reads whole 16 bytes, or loses little to those that it reads one by one.
constexpr std::int64_t most_channels = 16, fewest_outputs = 16;
/// What is unrolled, and what two blocks of an SM have on every architecture.
constexpr std::int64_t longest_run = 64, most_steps = 32, most_shared = 48 * 1024;

std::int32_t count(std::int64_t value) { return cuda::narrow(value, "conv", "elements"); }

bool all_one(const ConvGeometry::Axes& axes) {
  return std::ranges::all_of(axes, [](std::int64_t a) { return a == 1; });
}

FewChannelsShape shape_of(const Problem& p) {
  const ConvGeometry g = conv_geometry(p);
  const auto at = [](const ConvGeometry::Axes& axes, std::size_t axis) { return static_cast<int>(axes[axis]); };
  const std::int64_t outputs = p.size(1, 0), tail = outputs % 64;
  return {.channels = static_cast<int>(p.size(1, 1)),
          .kernel_h = at(g.kernel, 1),
          .kernel_w = at(g.kernel, 2),
          .stride_h = at(g.stride, 1),
          .stride_w = at(g.stride, 2),
          .before_w = at(g.before, 2),
          .outputs = tail > 0 && tail <= 32 ? 32 : 64};
}

Decline declines(const Region& region) {
  const Problem& p = region.problem();
  const DType type = p.input(0).dtype;
  if (p.attributes.text("layout") != "nhwc") return "the layout is nchw";
  if (p.input(0).rank() != 4) return "there are not two spatial axes";
  if (!p.is_constant(1)) return "the weight is not constant, so it cannot be prepacked";
  if (type != DType::f16 && type != DType::bf16)
    return fmt::format("no instruction multiplies {} exactly", name_of(type));
  if (type == DType::bf16 && p.target->compute_capability < 80) return "needs compute capability 8.0 for bf16";
  const std::int64_t outputs = p.size(1, 0), channels = p.size(1, 1);
  if (channels == 0) return "there are no channels";
  if (channels % FewChannelsShape::unit == 0) return fmt::format("{} channels have whole 16 bytes", channels);
  if (channels > most_channels) return fmt::format("{} channels, and up to {} are few", channels, most_channels);
  if (outputs < fewest_outputs) return fmt::format("{} output channels leave tiles nearly empty", outputs);
  const ConvGeometry g = conv_geometry(p);
  if (g.group != 1) return "channels are in groups";
  if (!all_one(g.dilation)) return "taps are apart";
  if (g.kernel[2] * channels > longest_run || g.kernel[1] > most_steps ||
      std::max(g.stride[1], g.stride[2]) > most_steps || g.before[2] > g.kernel[2])
    return "windows are too large";
  if (const FewChannelsShape shape = shape_of(p); shape.steps() > most_steps || shape.shared_bytes() > most_shared)
    return "windows are too large";
  return GeneralConv::declines(region);
}

class FewChannelsConv {
 public:
  explicit FewChannelsConv(const Region& region)
      : product_(region),
        general_(region),
        shape_(shape_of(region.problem())),
        before_h_(conv_geometry(region.problem()).before[1]),
        type_(region.problem().input(0).dtype),
        capability_(region.problem().target->compute_capability) {}
  std::vector<Program> programs() const;
  void launch(const LaunchArgs& args) const;

 private:
  /// Whether 128 registers are enough: not for two steps of the tensor cores in the place of one, nor for a residual's
  /// values beside the sums.
  bool is_capped() const {
    const auto of_places = [](const EpilogueExtra& extra) { return extra.extent == TileProgram::Extent::element; };
    return capability_ >= 80 && std::ranges::none_of(product_.extras(), of_places);
  }

  Product product_;
  GeneralConv general_;
  FewChannelsShape shape_;
  std::int64_t before_h_;
  DType type_;
  int capability_;
};

std::vector<Program> FewChannelsConv::programs() const {
  const GeneratedType epilogue = product_.epilogue();
  const conv::FewChannelsConfig config{.type = type_, .shape = shape_};
  Program own{.header = "kernel/cuda/device/conv/few_channels.cuh",
              .task = fmt::format("cermet::conv::FewChannels<cermet::conv::FewChannelsConfig{}, {}>",
                                  config_text(config), epilogue.name),
              .prelude = epilogue.source,
              .threads = threads,
              .shared_bytes = shape_.shared_bytes(),
              .min_blocks = is_capped() ? 2 : 1};
  return {std::move(own), as_fallbacks({general_.program()}).front()};
}

void FewChannelsConv::launch(const LaunchArgs& args) const {
  const TensorView &x = *product_.given(args, product_.at.x), &weight = *product_.given(args, product_.at.w),
                   &y = args.outputs[product_.y];
  if (y.elements() == 0) return;
  const std::optional<StoredRows> rows = StoredRows::of(product_, args, FewChannelsShape::unit);
  if (!rows) {
    const conv::WeightSteps steps = conv_row_steps(weight.shape);
    return general_.launch(args, 1, &steps);
  }
  const ConvTensor in = conv_tensor(x, true), out = conv_tensor(y, true);
  const auto step = [&](std::size_t axis) { return in.dims[axis] == 1 ? 0 : in.strides[axis]; };
  conv::FewChannelsParams p{};
  p.x = x.data;
  p.x_batch = step(0), p.x_row = step(3), p.x_column = step(4);
  p.weight = weight.data;
  p.to = rows->to;
  std::ranges::copy(rows->extra, p.extra);
  count(rows->count);
  p.k = count(conv_row_elements(weight.shape));
  p.rows = count(out.dims[3]), p.columns = count(out.dims[4]);
  p.height = count(in.dims[3]), p.width = count(in.dims[4]);
  p.samples = count(out.batch()), p.outputs = count(out.channels());
  p.before_h = count(before_h_);
  const bool dense = in.dims[4] == 1 || p.x_column == shape_.channels;
  p.rows_vectors = dense && reinterpret_cast<std::uintptr_t>(x.data) % 16 == 0 &&
                   p.x_batch % FewChannelsShape::unit == 0 && p.x_row % FewChannelsShape::unit == 0;
  p.vectors = rows->vectors;
  const std::int64_t tiles =
      div_up(out.dims[3], FewChannelsShape::places) * div_up(out.dims[4], FewChannelsShape::places) * out.batch();
  args.queue->run(0, tiles * div_up(out.channels(), shape_.outputs), p, args.queue->resident_blocks(0));
}

}  // namespace

extern const Kernel conv_few_channels;
const Kernel conv_few_channels{.name = "conv.few_channels",
                               .op = OpKind::conv,
                               .summary =
                                   "first layers over nhwc: mma.sync over windows whose rows are runs of a tile's "
                                   "pixels in shared memory; 16-bit types",
                               .fuses = true,
                               .declines = declines,
                               .bind = [](const Region& r) -> Launcher {
                                 return [conv = FewChannelsConv(r)](const LaunchArgs& args) { conv.launch(args); };
                               },
                               .weight_layout = [](const Region& r, std::size_t operand) -> const WeightLayout* {
                                 return r.operand_of(1) == operand ? &conv_rows : nullptr;
                               },
                               .programs = [](const Region& r) { return FewChannelsConv(r).programs(); }};

}  // namespace cermet::cuda::conv_few_channels_file
