// Convolutions of one pixel for each sample, one after the other, with the mean over an image in front: squeeze and
// excitation. Each is a matrix product of few rows, and what goes from one to the next stays in a cache. Elementwise
// operators after the last may apply it to an image.
#include <algorithm>
#include <array>

#include "base/checked.hpp"
#include "kernel/cpu/before_anchor.hpp"
#include "kernel/cpu/kernels.hpp"
#include "kernel/region_part.hpp"
#include "kernel/roofline.hpp"

namespace cermet::cpu {
namespace {

constexpr std::size_t most_operands = 12;
constexpr auto float_bytes = static_cast<std::int64_t>(sizeof(float));

bool is_conv(const RegionNode& node) { return node.problem.op->kind == OpKind::conv; }

/// A convolution with the elementwise nodes that follow it, or the mean.
struct Stage {
  RegionPart part;
  const Kernel* kernel;  ///< null where none takes it
  std::size_t first;     ///< its first node
};

const Kernel* conv_kernel(const Region& region) {
  for (const Kernel* kernel : kernels_of(OpKind::conv))
    if ((region.is_single() || kernel->fuses) && !kernel->declines(region)) return kernel;
  return nullptr;
}

/// Whether a tensor is a batch of pixels of float32, channels last.
bool is_pixel(const TensorType& type) {
  const auto is_one = [](const Dim& dim) { return dim.is_constant() && dim.constant() == 1; };
  return type.dtype == DType::f32 && type.rank() > 2 &&
         std::all_of(type.dims.begin() + 1, type.dims.end() - 1, is_one) && type.dims.back().is_constant();
}

/// The first node after the products that gives more than a pixel; as many as there are nodes where none does.
std::size_t first_of_image(const Region& region) {
  auto n = static_cast<std::size_t>(region.anchor) + 1;
  while (n < region.nodes.size() && is_pixel(region.nodes[n].problem.outputs[0])) ++n;
  return n;
}

std::vector<Stage> stages_of(const Region& region) {
  const std::size_t image = first_of_image(region);
  std::vector<Stage> stages;
  for (std::size_t first = 0, last = 0; first < region.nodes.size(); first = last) {
    for (last = first + 1; last < region.nodes.size() && !is_conv(region.nodes[last]) && last != image;) ++last;
    RegionPart part = part_of(region, first, last, first);
    const Kernel* const kernel =
        is_conv(region.nodes[first]) ? conv_kernel(part.region) : kernel_without_workspace(part.region);
    stages.push_back({std::move(part), kernel, first});
  }
  return stages;
}

/// Images that a pixel of each of their samples is applied to.
bool is_image_of(const TensorType& image, const TensorType& pixel) {
  return image.dtype == DType::f32 && image.rank() == pixel.rank() && image.dims[0] == pixel.dims[0] &&
         image.dims.back() == pixel.dims.back();
}

Decline declines(const Region& region) {
  const std::size_t image = first_of_image(region);
  if (region.anchor == 0 && image == region.nodes.size())
    return "nothing is computed before it, and it is applied to no image";
  const auto anchor = static_cast<std::size_t>(region.anchor);
  for (std::size_t n = 0; n < region.nodes.size(); ++n) {
    const RegionNode& node = region.nodes[n];
    if (n == 0 ? !is_conv(node) && node.problem.op->kind != OpKind::reduce_mean : is_conv(node) && n > anchor)
      return fmt::format("{} is neither a mean before the products nor what follows one", node.problem.op->name);
    if (is_conv(node) && (node.problem.attributes.text("layout") != "nhwc" || !is_pixel(node.problem.input(0))))
      return "a convolution has more than one pixel, channels in front or other types than float32";
  }
  if (region.results.size() != 1) return "more than one value leaves";
  std::vector<bool> read(region.operands.size());
  std::size_t before = 0;
  for (const Stage& stage : stages_of(region)) {
    const Region& part = stage.part.region;
    if (!stage.kernel) return fmt::format("no kernel computes {} alone", part.operators());
    const bool is_right = stage.first == image ? is_image_of(part.result_type(0), region.problem().outputs[0])
                                               : is_pixel(part.result_type(0));
    if (stage.part.operands.size() > most_operands || part.results.size() != 1 || !is_right)
      return "a part gives more than one pixel";
    std::size_t made = 0;
    for (const RegionPart::Operand& operand : stage.part.operands) {
      if (operand.maker && *operand.maker < before) return "the products do not follow one another";
      if (operand.maker) ++made;
      if (!operand.index) continue;
      if (read[*operand.index]) return "two of them read the same operand";
      read[*operand.index] = true;
    }
    if (made != (stage.first == 0 ? 0 : 1)) return "the products do not follow one another";
    before = stage.first;
  }
  return std::nullopt;
}

/// A stage that is ready to run.
struct BoundStage {
  Launcher launch;
  std::vector<RegionPart::Operand> operands;
  std::int64_t channels;  ///< of its result
};

std::int64_t result_bytes(std::int64_t samples, std::int64_t channels) {
  return round_up(samples * channels * float_bytes, 64);
}

void run_stages(const LaunchArgs& args, const std::vector<BoundStage>& stages) {
  const TensorView& y = args.outputs[0];
  const std::int64_t samples = y.shape[0];
  TensorView made;
  std::byte* memory = args.workspace;
  std::int64_t total = 0;
  for (const BoundStage& stage : stages) total += result_bytes(samples, stage.channels);
  for (const BoundStage& stage : stages) {
    std::array<TensorView, most_operands> inputs;
    for (std::size_t i = 0; i < stage.operands.size(); ++i) {
      const RegionPart::Operand& operand = stage.operands[i];
      if (operand.maker) inputs[i] = made;
      else if (operand.index && args.has(*operand.index)) inputs[i] = args.inputs[*operand.index];
    }
    Shape shape = y.shape;
    for (int d = 1; d < shape.rank(); ++d) shape[d] = d + 1 == shape.rank() ? stage.channels : 1;
    made = &stage == &stages.back() ? y : TensorView(memory, DType::f32, shape);
    memory += result_bytes(samples, stage.channels);
    stage.launch({.inputs = {inputs.data(), stage.operands.size()},
                  .outputs = {&made, 1},
                  .workspace = args.workspace + total,
                  .pool = args.pool});
  }
}

Launcher bind_stages(const Region& region) {
  std::vector<BoundStage> stages;
  for (Stage& stage : stages_of(region))
    stages.push_back({stage.kernel->bind(stage.part.region), std::move(stage.part.operands),
                      stage.part.region.result_type(0).dims.back().constant()});
  return [stages = std::move(stages)](const LaunchArgs& args) { run_stages(args, stages); };
}

const WeightLayout* weight_layout(const Region& region, std::size_t operand) {
  for (const Stage& stage : stages_of(region))
    for (std::size_t i = 0; i < stage.part.operands.size(); ++i)
      if (stage.part.operands[i].index == operand) return stage.kernel->weight_layout(stage.part.region, i);
  return nullptr;
}

std::int64_t workspace(const Region& region, int threads) {
  const std::int64_t samples = region.result_type(0).dims[0].value(region.maximum());
  std::int64_t results = 0, most = 0;
  for (const Stage& stage : stages_of(region)) {
    results += result_bytes(samples, stage.part.region.result_type(0).dims.back().constant());
    most = std::max(most, stage.kernel->workspace(stage.part.region, threads));
  }
  return results + most;
}

}  // namespace

extern const Kernel conv_single_pixels{
    .name = "conv.single_pixels",
    .op = OpKind::conv,
    .summary =
        "convolutions of one pixel one after the other, after the mean over an image: squeeze and excitation, with all "
        "values in between in a cache; "
        "what follows may apply the last to an image",
    .fuses = true,
    .declines = declines,
    .bind = bind_stages,
    .weight_layout = weight_layout,
    .workspace = workspace,
    .cost =
        [](const Region& region, const DeviceLimits& limits) {
          return roofline_seconds(region, limits.f32_operations_per_second, limits);
        },
};

}  // namespace cermet::cpu
