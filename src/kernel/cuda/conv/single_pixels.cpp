// Two convolutions of single pixels, one after the other, with the mean over an image in front
// (device/conv/single_pixels.cuh).
#include <algorithm>
#include <array>

#include "kernel/cuda/config_text.hpp"
#include "kernel/cuda/conv/weights.hpp"
#include "kernel/cuda/device/conv/single_pixels.hpp"
#include "kernel/cuda/gemm/product.hpp"
#include "kernel/cuda/narrow.hpp"
#include "kernel/cuda/task.hpp"
#include "kernel/region_part.hpp"
#include "op/conv.hpp"
#include "op/schema/axes.hpp"

namespace cermet::cuda::conv_single_pixels_file {
namespace {

using conv::SinglePixelsShape;

constexpr std::size_t most_operands = 12;
constexpr std::int64_t most_cluster = 8;

bool is_conv(const RegionNode& node) { return node.problem.op->kind == OpKind::conv; }

bool is_one(const Dim& dim) { return dim.is_constant() && dim.constant() == 1; }

bool is_pixel(const TensorType& type) {
  return type.rank() == 4 && is_one(type.dims[1]) && is_one(type.dims[2]) && type.dims.back().is_constant();
}

/// Where the parts of a region begin: the mean, if there is one, and two convolutions with what follows each; nothing
/// where it has other nodes.
struct Parts {
  bool has_mean = false;
  std::size_t first = 0, second = 0;
};

std::optional<Parts> parts_of(const Region& region) {
  Parts parts;
  parts.has_mean = region.nodes[0].problem.op->kind == OpKind::reduce_mean;
  parts.first = parts.has_mean ? 1 : 0;
  for (std::size_t n = parts.first + 1; n < region.nodes.size(); ++n)
    if (is_conv(region.nodes[n])) {
      if (parts.second > 0) return std::nullopt;
      parts.second = n;
    }
  if (parts.second == 0 || !is_conv(region.nodes[parts.first]) ||
      static_cast<std::size_t>(region.anchor) != parts.second)
    return std::nullopt;
  return parts;
}

RegionPart first_of(const Region& region, const Parts& parts) {
  return part_of(region, parts.first, parts.second, parts.first);
}
RegionPart second_of(const Region& region, const Parts& parts) {
  return part_of(region, parts.second, region.nodes.size(), parts.second);
}

/// As many blocks to a sample as leave none of the SMs to wait.
SinglePixelsShape shape_of(const Region& region, const Parts& parts) {
  const Problem &first = region.nodes[parts.first].problem, &second = region.problem();
  SinglePixelsShape shape{static_cast<int>(first.size(1, 1)), static_cast<int>(first.size(1, 0)),
                          static_cast<int>(second.size(1, 0)), static_cast<int>(size_of(first.input(0).dtype)), 1};
  const std::int64_t samples = std::max<std::int64_t>(1, second.size(0, 0));
  const Target& target = *region.target();
  const auto doubles = [&] {
    return 2 * shape.cluster <= most_cluster && 2 * shape.cluster * samples <= target.multiprocessors;
  };
  if (target.compute_capability >= 90)
    while (doubles() || (2 * shape.cluster <= most_cluster && shape.shared_bytes() > target.shared_bytes))
      shape.cluster *= 2;
  return shape;
}

Decline declines_conv(const Problem& p) {
  if (p.attributes.text("layout") != "nhwc" || !is_pixel(p.input(0)) || !is_pixel(p.outputs[0]))
    return "a convolution has more than one pixel, or channels in front";
  const ConvGeometry g = conv_geometry(p);
  if (g.group != 1 || g.taps() != 1) return "a convolution has groups or taps";
  if (!dtypes::real.contains(p.input(0).dtype))
    return fmt::format("{} is not added up as float32", name_of(p.input(0).dtype));
  if (!p.is_constant(1)) return "a weight is not constant, so it cannot be prepacked";
  if (p.size(1, 0) == 0 || p.size(1, 1) == 0) return "there are no channels";
  return std::nullopt;
}

Decline declines_mean(const Problem& p) {
  if (p.input(0).rank() != 4 || !p.attributes.flag("keepdims")) return "the mean is not over an image";
  std::vector<int> axes;
  for (const int axis : wrap_axes(p.attributes.integers("axes"), 4)) axes.push_back(axis);
  std::ranges::sort(axes);
  return axes == std::vector<int>{1, 2} ? Decline() : Decline("the mean is not over an image");
}

Decline declines_part(const RegionPart& part, std::optional<std::size_t> maker) {
  if (part.region.anchor != 0 || part.region.results.size() != 1) return "a part gives more than one value";
  if (part.operands.size() > most_operands)
    return fmt::format("{} operands, and {} can be", part.operands.size(), most_operands);
  for (std::size_t i = 0; i < part.operands.size(); ++i)
    if (part.operands[i].maker && (part.operands[i].maker != maker || part.region.operand_of(0) != i))
      return "the products do not follow one another";
  if (Decline reason = Product::declines_after(part.region)) return reason;
  const Product product(part.region);
  for (const EpilogueExtra& extra : product.extras())
    if (extra.extent != TileProgram::Extent::scalar && !extra.is_side_by_side())
      return "an operand after a product is not alike for all samples";
  return std::nullopt;
}

Decline declines(const Region& region) {
  if (region.is_single()) return "nothing is computed before it";
  const std::optional<Parts> parts = parts_of(region);
  if (!parts) return "there are other nodes than a mean and two convolutions with what follows them";
  if (region.results.size() != 1) return "more than one value leaves";
  for (const std::size_t n : {parts->first, parts->second})
    if (Decline reason = declines_conv(region.nodes[n].problem)) return reason;
  if (parts->has_mean)
    if (Decline reason = declines_mean(region.nodes[0].problem)) return reason;
  if (Decline reason =
          declines_part(first_of(region, *parts), parts->has_mean ? std::optional<std::size_t>(0) : std::nullopt))
    return reason;
  if (Decline reason = declines_part(second_of(region, *parts), parts->second - 1)) return reason;
  const SinglePixelsShape shape = shape_of(region, *parts);
  if (shape.channels % shape.width() != 0) return fmt::format("{} channels do not have whole 16 bytes", shape.channels);
  if (shape.vectors() > SinglePixelsShape::threads)
    return fmt::format("{} channels are more than a block reads at a time", shape.channels);
  if (shape.shared_bytes() > region.target()->shared_bytes)
    return fmt::format("its weights take {} bytes of shared memory, and a block has {}", shape.shared_bytes(),
                       region.target()->shared_bytes);
  return std::nullopt;
}

/// A product with its operands' places in the region.
struct Stage {
  Product product;
  std::vector<RegionPart::Operand> operands;

  explicit Stage(RegionPart part) : product(part.region), operands(std::move(part.operands)) {}

  /// Sets the weight and what the epilogue reads.
  void bind(const LaunchArgs& args, const void*& weight, epilogue::Operand* extra) const {
    std::array<TensorView, most_operands> views;
    for (std::size_t i = 0; i < operands.size(); ++i)
      if (operands[i].index && args.has(*operands[i].index)) views[i] = args.inputs[*operands[i].index];
    LaunchArgs own = args;
    own.inputs = std::span(views).first(operands.size());
    weight = product.given(own, product.at.w)->data;
    for (std::size_t i = 0; i < product.extras().size(); ++i) extra[i] = product.operand(own, i);
  }
};

class SinglePixelsConv {
 public:
  explicit SinglePixelsConv(const Region& region)
      : parts_(*parts_of(region)),
        shape_(shape_of(region, parts_)),
        type_(region.problem().input(0).dtype),
        first_(first_of(region, parts_)),
        second_(second_of(region, parts_)),
        x_(*region.operand_of(0, 0)),
        rounds_mean_(parts_.has_mean && rounds(region, parts_.first)),
        rounds_few_(rounds(region, parts_.second)) {}
  std::vector<Program> programs() const;
  void launch(const LaunchArgs& args) const;

 private:
  static bool rounds(const Region& region, std::size_t node) {
    return region.nodes[node].inputs[0].rounding == Rounding::strict;
  }

  Parts parts_;
  SinglePixelsShape shape_;
  DType type_;
  Stage first_, second_;
  std::size_t x_;
  bool rounds_mean_, rounds_few_;
};

std::vector<Program> SinglePixelsConv::programs() const {
  const GeneratedType first = first_.product.epilogue(), second = second_.product.epilogue();
  const conv::SinglePixelsConfig config{.type = type_,
                                        .channels = shape_.channels,
                                        .few = shape_.few,
                                        .outputs = shape_.outputs,
                                        .cluster = shape_.cluster,
                                        .rounds_mean = rounds_mean_,
                                        .rounds_few = rounds_few_};
  return {{.header = "kernel/cuda/device/conv/single_pixels.cuh",
           .task = fmt::format("cermet::conv::SinglePixels<cermet::conv::SinglePixelsConfig{}, {}, {}>",
                               config_text(config), first.name, second.name),
           .prelude = first.name == second.name ? first.source : first.source + second.source,
           .threads = SinglePixelsShape::threads,
           .shared_bytes = shape_.shared_bytes(),
           .cluster = shape_.cluster}};
}

void SinglePixelsConv::launch(const LaunchArgs& args) const {
  const TensorView &x = args.inputs[x_], &y = args.outputs[0];
  if (y.elements() == 0) return;
  const std::int64_t rows = x.shape[1], columns = x.shape[2], run = shape_.width();
  conv::SinglePixelsParams p{};
  p.x = x.data;
  p.x_sample = x.strides[0], p.x_row = x.strides[1], p.x_column = x.strides[2],
  p.x_channel = shape_.channels > 1 ? x.strides[3] : 1;
  p.pixels = narrow(rows * columns, "conv", "pixels");
  p.columns = narrow(columns, "conv", "columns");
  p.one_line = rows == 1 || p.x_row == columns * p.x_column;
  const auto whole = [&](std::int64_t count, std::int64_t stride) { return count == 1 || stride % run == 0; };
  p.vectors = reinterpret_cast<std::uintptr_t>(x.data) % 16 == 0 && p.x_channel == 1 && whole(x.shape[0], p.x_sample) &&
              whole(rows, p.x_row) && whole(columns, p.x_column);
  p.divisor = static_cast<float>(p.pixels);
  first_.bind(args, p.first, p.first_extra);
  second_.bind(args, p.second, p.second_extra);
  p.y = y.data;
  p.y_sample = y.strides[0];
  p.y_channel = shape_.outputs > 1 ? y.strides[3] : 1;
  args.queue->run(0, narrow(y.shape[0] * shape_.cluster, "conv", "blocks"), p);
}

const WeightLayout* weight_layout(const Region& region, std::size_t operand) {
  const std::optional<Parts> parts = parts_of(region);
  const bool is_weight =
      parts && (region.operand_of(parts->first, 1) == operand || region.operand_of(parts->second, 1) == operand);
  return is_weight ? &conv_rows : nullptr;
}

}  // namespace

extern const Kernel conv_single_pixels;
const Kernel conv_single_pixels{.name = "conv.single_pixels",
                                .op = OpKind::conv,
                                .summary =
                                    "two convolutions of one pixel, one after the other, after the mean over an image: "
                                    "a cluster of blocks for each sample, weights in shared memory",
                                .fuses = true,
                                .declines = declines,
                                .bind = [](const Region& r) -> Launcher {
                                  return [conv = SinglePixelsConv(r)](const LaunchArgs& args) { conv.launch(args); };
                                },
                                .weight_layout = weight_layout,
                                .programs = [](const Region& r) { return SinglePixelsConv(r).programs(); }};

}  // namespace cermet::cuda::conv_single_pixels_file
