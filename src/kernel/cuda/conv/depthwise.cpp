// conv over nhwc tensors whose groups have one channel (device/conv/depthwise.cuh).
#include "kernel/cuda/device/conv/depthwise.hpp"
#include "base/checked.hpp"
#include "kernel/cuda/config_text.hpp"
#include "kernel/cuda/conv/general.hpp"
#include "kernel/cuda/conv/weights.hpp"
#include "kernel/cuda/gemm/stored_rows.hpp"

namespace cermet::cuda::conv_depthwise_file {
namespace {

/// Taps of a row of the weight stay in registers.
constexpr std::int64_t widest_kernel = 11, widest_row = 32;

std::int32_t narrow(std::int64_t value) {
  require(value >= 0 && value < std::int64_t{1} << 31, "conv: expected sizes below 2^31, found {}", value);
  return static_cast<std::int32_t>(value);
}

/// Of a row, that a thread may compute: many share what it loads, few leave more threads.
constexpr std::int64_t possible_places[] = {7, 4, 2}, fewest_places = 2;
/// Threads that keep an SM busy.
constexpr std::int64_t enough_threads = 384;

/// Pixels of a row that the windows of this many places cover.
std::int64_t pixels_of(const ConvGeometry& g, std::int64_t places) { return (places - 1) * g.stride[2] + g.extent(2); }

std::int64_t run_of(DType type) { return 16 / byte_size(type); }

Decline declines(const Region& region) {
  const Problem& p = region.problem();
  if (p.attributes.text("layout") != "nhwc") return "the layout is nchw";
  if (p.input(0).rank() != 4) return "there are not two spatial axes";
  if (!p.is_constant(1)) return "the weight is not constant, so it cannot be prepacked";
  const ConvGeometry g = conv_geometry(p);
  if (g.group == 1 || p.size(1, 0) != g.group || p.size(1, 1) != 1) return "groups do not have one channel";
  if (g.group % run_of(p.input(0).dtype) != 0) return fmt::format("{} channels do not have whole 16 bytes", g.group);
  if (g.kernel[2] > widest_kernel || pixels_of(g, fewest_places) > widest_row)
    return "windows are too wide to be read once for neighbouring places";
  return GeneralConv::declines(region);
}

class DepthwiseConv {
 public:
  explicit DepthwiseConv(const Region& region)
      : product_(region),
        general_(region),
        geometry_(conv_geometry(region.problem())),
        type_(region.problem().input(0).dtype),
        places_(choose_places(region.problem())) {}
  std::vector<Program> programs() const;
  void launch(const LaunchArgs& args) const;

 private:
  std::int64_t choose_places(const Problem& problem) const;
  bool is_aligned(const TensorView& x, const ConvTensor& in) const;

  Product product_;
  GeneralConv general_;
  ConvGeometry geometry_;
  DType type_;
  std::int64_t places_;
};

/// The most whose sums and pixels fit in registers, that leave few threads without a place, and that give enough
/// threads.
std::int64_t DepthwiseConv::choose_places(const Problem& p) const {
  const Dims& y = p.outputs[0].dims;
  const std::int64_t rows = y[0].value(p.maximum) * y[1].value(p.maximum), columns = y[2].value(p.maximum),
                     runs = p.size(1, 0) / run_of(type_);
  for (const std::int64_t places : possible_places) {
    if (places == fewest_places) break;
    const std::int64_t slots = div_up(columns, places) * places,
                       registers = (places * run_of(type_)) + 4 * pixels_of(geometry_, places);
    if (registers > 112 || slots * 7 > columns * 8 || pixels_of(geometry_, places) > widest_row) continue;
    if (rows * (slots / places) * runs >= enough_threads * p.target->multiprocessors) return places;
  }
  return fewest_places;
}

std::vector<Program> DepthwiseConv::programs() const {
  const GeneratedType epilogue = product_.epilogue();
  const conv::DepthwiseConfig config{.type = type_,
                                     .kernel = static_cast<int>(geometry_.kernel[2]),
                                     .stride = static_cast<int>(geometry_.stride[2]),
                                     .dilation = static_cast<int>(geometry_.dilation[2]),
                                     .places = static_cast<int>(places_)};
  Program own{.header = "kernel/cuda/device/conv/depthwise.cuh",
              .task = fmt::format("cermet::conv::Depthwise<cermet::conv::DepthwiseConfig{}, {}>", config_text(config),
                                  epilogue.name),
              .prelude = epilogue.source,
              .threads = conv::depthwise_threads};
  return {std::move(own), as_fallbacks({general_.program()}).front()};
}

bool DepthwiseConv::is_aligned(const TensorView& x, const ConvTensor& in) const {
  const auto aligned = [&](std::size_t axis) { return in.dims[axis] == 1 || in.strides[axis] % run_of(type_) == 0; };
  return reinterpret_cast<std::uintptr_t>(x.data) % 16 == 0 && aligned(0) && aligned(3) && aligned(4) &&
         in.strides[4] >= 0 && in.strides[4] < std::int64_t{1} << 31;
}

void DepthwiseConv::launch(const LaunchArgs& args) const {
  const TensorView &x = *product_.given(args, product_.at.x), &weight = *product_.given(args, product_.at.w),
                   &y = args.outputs[product_.y];
  if (y.elements() == 0) return;
  const std::optional<StoredRows> rows = StoredRows::of(product_, args, run_of(type_));
  const ConvTensor in = conv_tensor(x, true), out = conv_tensor(y, true);
  if (!rows || !is_aligned(x, in)) {
    const conv::WeightSteps steps = conv_tap_steps(weight.shape);
    return general_.launch(args, 1, &steps);
  }
  conv::DepthwiseParams p{};
  p.x = x.data;
  p.x_batch = in.strides[0], p.x_row = in.strides[3], p.x_column = narrow(in.strides[4]);
  p.weight = weight.data;
  p.weight_tap = narrow(conv_tap_elements(weight.shape));
  p.to = rows->to;
  std::ranges::copy(rows->extra, p.extra);
  narrow(rows->count);
  p.channels = narrow(out.channels());
  p.rows = narrow(out.dims[3]), p.columns = narrow(out.dims[4]);
  p.height = narrow(in.dims[3]), p.width = narrow(in.dims[4]);
  p.kernel_h = narrow(geometry_.kernel[1]);
  p.stride_h = narrow(geometry_.stride[1]);
  p.dilation_h = narrow(geometry_.dilation[1]);
  p.before_h = narrow(geometry_.before[1]), p.before_w = narrow(geometry_.before[2]);
  p.row_runs = static_cast<std::uint32_t>(narrow(div_up(p.columns, places_) * (out.channels() / run_of(type_))));
  p.lines = static_cast<std::uint32_t>(narrow(out.batch() * p.rows));
  p.vectors = rows->vectors;
  args.queue->run(0, div_up(narrow(std::int64_t{p.row_runs} * p.lines), conv::depthwise_threads), p);
}

}  // namespace

extern const Kernel conv_depthwise;
const Kernel conv_depthwise{.name = "conv.depthwise",
                            .op = OpKind::conv,
                            .summary =
                                "one channel to a group, nhwc: 16 bytes of channels of a few places to a thread, "
                                "pixels of a row of windows read once",
                            .fuses = true,
                            .declines = declines,
                            .bind = [](const Region& r) -> Launcher {
                              return [conv = DepthwiseConv(r)](const LaunchArgs& args) { conv.launch(args); };
                            },
                            .weight_layout = [](const Region& r, std::size_t operand) -> const WeightLayout* {
                              return r.operand_of(1) == operand ? &conv_taps : nullptr;
                            },
                            .programs = [](const Region& r) { return DepthwiseConv(r).programs(); }};

}  // namespace cermet::cuda::conv_depthwise_file
