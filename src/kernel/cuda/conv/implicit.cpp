// conv over nhwc tensors as an implicit matrix product (device/conv/implicit.cuh).
#include "kernel/cuda/device/conv/implicit.hpp"
#include "base/checked.hpp"
#include "kernel/cuda/config_text.hpp"
#include "kernel/cuda/conv/general.hpp"
#include "kernel/cuda/conv/weights.hpp"
#include "kernel/cuda/gemm/stored_rows.hpp"

namespace cermet::cuda::conv_implicit_file {
namespace {

constexpr int small_tile = 64, large_tile = 128, threads = 256;
/// The large program is taken from this many of its tiles on: fewer leave SMs idle.
constexpr std::int64_t enough_tiles = 96;
/// A tile has columns of one group.
constexpr std::int64_t fewest_group_outputs = 16;

std::int32_t narrow(std::int64_t value) {
  require(value >= 0 && value < std::int64_t{1} << 31, "conv: expected sizes below 2^31, found {}", value);
  return static_cast<std::int32_t>(value);
}

/// Shared memory of a tile: a ring of slabs for the tensor cores, which the results pass later, or two buffers for the
/// CUDA cores.
std::int64_t shared_bytes(bool tensor, int tile, int stages) {
  if (!tensor) return std::int64_t{2} * 2 * 16 * (tile + 4) * 4;
  return std::max<std::int64_t>(std::int64_t{2} * stages * tile * (64 + 16), tile / 2 * (tile + 8) * 4);
}

class ImplicitConv {
 public:
  static Decline declines(const Region& region);
  static std::vector<Config> configs() { return {{}, {{"tile", small_tile}}, {{"tile", large_tile}}}; }
  ImplicitConv(const Region& region, const Config& config);
  std::vector<Program> programs() const;
  void launch(const LaunchArgs& args) const;

 private:
  std::int64_t run() const { return 16 / byte_size(type_); }
  std::int64_t tiles(std::int64_t places, int tile) const {
    return div_up(places, tile) * div_up(group_outputs_, tile) * geometry_.group;
  }
  Program program(int tile, bool vectors) const;
  bool reads_vectors(const TensorView& x, const ConvTensor& in) const;
  std::size_t program_of(std::int64_t places, bool vectors, int& tile) const;
  std::size_t general_program() const { return (small_ ? 1u : 0u) + (large_ ? 1u : 0u) + (vectors_ ? 1u : 0u); }

  Product product_;
  GeneralConv general_;
  ConvGeometry geometry_;
  DType type_;
  bool tensor_, vectors_;  ///< vectors_: those of x, where it is aligned
  bool large_ = false, small_ = true;
  int stages_;
  std::int64_t group_inputs_, group_outputs_;
};

Decline ImplicitConv::declines(const Region& region) {
  const Problem& p = region.problem();
  const DType type = p.input(0).dtype;
  const int capability = p.target->compute_capability;
  if (p.attributes.text("layout") != "nhwc") return "the layout is nchw";
  if (p.input(0).rank() != 4) return "there are not two spatial axes";
  if (!p.is_constant(1)) return "the weight is not constant, so it cannot be prepacked";
  if (type == DType::bf16 && capability < 80) return "needs compute capability 8.0 for bf16";
  const Dims& weight = p.input(1).dims;
  if (weight[0].constant() * weight[1].constant() == 0) return "there are no channels";
  if (const std::int64_t group = p.attributes.integer("group");
      group > 1 && weight[0].constant() / group < fewest_group_outputs)
    return "groups have few output channels, and tiles would be nearly empty";
  if (Decline reason = GeneralConv::declines(region)) return reason;
  return declines_second_result(region);
}

ImplicitConv::ImplicitConv(const Region& region, const Config& config)
    : product_(region),
      general_(region),
      geometry_(conv_geometry(region.problem())),
      type_(region.problem().input(0).dtype),
      tensor_(type_ != DType::f32) {
  const Problem& p = region.problem();
  stages_ = p.target->compute_capability >= 80 ? 4 : 2;
  group_inputs_ = p.size(1, 1);
  group_outputs_ = p.size(1, 0) / geometry_.group;
  vectors_ = group_inputs_ % run() == 0;
  std::int64_t places = 1;
  for (int axis = 0; axis < 3; ++axis) places *= p.outputs[0].dims[static_cast<std::size_t>(axis)].value(p.maximum);
  large_ = group_outputs_ > small_tile && tiles(places, large_tile) >= enough_tiles;
  if (const auto tile = config.find("tile")) {
    large_ = *tile == large_tile;
    small_ = !large_;
  }
}

Program ImplicitConv::program(int tile, bool vectors) const {
  const GeneratedType epilogue = product_.epilogue();
  const conv::ImplicitConfig config{
      .type = type_, .tensor = tensor_, .block = tile, .stages = stages_, .vectors = vectors};
  return {.header = "kernel/cuda/device/conv/implicit.cuh",
          .task = fmt::format("cermet::conv::Implicit<cermet::conv::ImplicitConfig{}, {}>", config_text(config),
                              epilogue.name),
          .prelude = epilogue.source,
          .threads = threads,
          .shared_bytes = shared_bytes(tensor_, tile, stages_),
          .min_blocks = tile == small_tile ? 2 : 1};
}

/// The sizes of tiles that launches choose from; then, for what is not aligned, small tiles that read elements, and the
/// general convolution.
std::vector<Program> ImplicitConv::programs() const {
  std::vector<Program> list;
  if (small_) list.push_back(program(small_tile, vectors_));
  if (large_) list.push_back(program(large_tile, vectors_));
  std::vector<Program> others;
  if (vectors_) others.push_back(program(small_tile, false));
  others.push_back(general_.program());
  for (Program& other : as_fallbacks(std::move(others))) list.push_back(std::move(other));
  return list;
}

bool ImplicitConv::reads_vectors(const TensorView& x, const ConvTensor& in) const {
  const auto aligned = [&](std::size_t axis) { return in.dims[axis] == 1 || in.strides[axis] % run() == 0; };
  return vectors_ && reinterpret_cast<std::uintptr_t>(x.data) % 16 == 0 && aligned(0) && aligned(3) && aligned(4);
}

std::size_t ImplicitConv::program_of(std::int64_t places, bool vectors, int& tile) const {
  const std::size_t own = (small_ ? 1u : 0u) + (large_ ? 1u : 0u);
  if (vectors_ && !vectors) {
    tile = small_tile;
    return own;
  }
  const bool large = large_ && (!small_ || tiles(places, large_tile) >= enough_tiles);
  tile = large ? large_tile : small_tile;
  return large ? own - 1 : 0;
}

void ImplicitConv::launch(const LaunchArgs& args) const {
  const TensorView &x = *product_.given(args, product_.at.x), &weight = *product_.given(args, product_.at.w),
                   &y = args.outputs[product_.y];
  if (y.elements() == 0) return;
  const std::optional<StoredRows> rows = StoredRows::of(product_, args, 8);
  if (!rows) {
    const conv::WeightSteps steps = conv_row_steps(weight.shape);
    return general_.launch(args, general_program(), &steps);
  }
  const ConvTensor in = conv_tensor(x, true), out = conv_tensor(y, true);
  conv::ImplicitParams p{};
  p.x = x.data;
  p.x_batch = in.strides[0], p.x_row = in.strides[3], p.x_column = in.strides[4];
  p.weight = weight.data;
  p.to = rows->to;
  std::ranges::copy(rows->extra, p.extra);
  p.m = narrow(rows->count);
  p.k = narrow(conv_row_elements(weight.shape));
  p.rows = narrow(out.dims[3]), p.columns = narrow(out.dims[4]);
  p.height = narrow(in.dims[3]), p.width = narrow(in.dims[4]);
  for (std::size_t a = 0; a < 2; ++a) {
    p.kernel[a] = narrow(geometry_.kernel[1 + a]);
    p.stride[a] = narrow(geometry_.stride[1 + a]);
    p.dilation[a] = narrow(geometry_.dilation[1 + a]);
    p.before[a] = narrow(geometry_.before[1 + a]);
  }
  p.groups = narrow(geometry_.group);
  p.group_inputs = narrow(group_inputs_);
  p.group_outputs = narrow(group_outputs_);
  p.vectors = rows->vectors && (geometry_.group == 1 || group_outputs_ % 8 == 0);
  int tile = 0;
  const std::size_t program = program_of(rows->count, reads_vectors(x, in), tile);
  args.queue->run(program, tiles(rows->count, tile), p);
}

}  // namespace

extern const Kernel conv_implicit;
const Kernel conv_implicit{
    .name = "conv.implicit",
    .op = OpKind::conv,
    .summary = "implicit product of gathered windows over nhwc: mma.sync for 16-bit types, float32 on the CUDA cores",
    .fuses = true,
    .declines = ImplicitConv::declines,
    .bind = [](const Region& r, const Config& config) -> Launcher {
      return [conv = ImplicitConv(r, config)](const LaunchArgs& args) { conv.launch(args); };
    },
    .weight_layout = [](const Region& r, std::size_t operand) -> const WeightLayout* {
      return r.operand_of(1) == operand ? &conv_rows : nullptr;
    },
    .programs = [](const Region& r, const Config& config) { return ImplicitConv(r, config).programs(); },
    .configs = [](const Region&) { return ImplicitConv::configs(); },
    .cut = second_result_cut};

}  // namespace cermet::cuda::conv_implicit_file
