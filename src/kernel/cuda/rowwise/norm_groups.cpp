// Host half of group_norm and instance_norm.
#include <algorithm>

#include "base/checked.hpp"
#include "kernel/cuda/device/rowwise/group_norm.hpp"
#include "kernel/cuda/rowwise/rowwise.hpp"

namespace cermet::cuda {
namespace {

constexpr int warp = 32, most_threads = 1024;
/// Vectors that a thread holds: few enough for the registers of a full block, and of one of a cluster, whose warps reduce_row.cuh limits to 64.
constexpr std::int64_t block_vectors = 6, cluster_vectors = 16, cluster = 8, cluster_threads = 256;
/// Vectors of a thread where there are enough rows for all SMs.
constexpr std::int64_t usual_vectors = 4;

std::int64_t groups_of(const Problem& p) { return p.op->kind == OpKind::group_norm ? p.attributes.integer("groups") : p.size(0, 1); }

/// How rows lie over threads: in registers where vectors suit them, in those of a cluster where they are long, or few; longer ones are read again for each
/// pass. The last takes any.
class GroupPrograms {
 public:
  explicit GroupPrograms(const Problem& p) : width_(vector_width({p.input(0).dtype, p.outputs[0].dtype})) {
    const std::int64_t groups = groups_of(p), sample = constant_columns(p, p.input(0).rank() - 1);
    const std::int64_t length = groups == 0 ? 0 : sample / groups;
    if (length > 0 && length % width_ == 0) {
      positions_ = length / (p.size(0, 1) / groups);
      list_.push_back(geometry(length, p.size(0, 0) * groups, *p.target));
    }
    list_.push_back({.lanes = 512, .threads = 512});
  }

  std::vector<Program> programs(const Problem& p) const {
    std::vector<Program> programs;
    for (const RowGeometry& g : list_)
      programs.push_back(geometry_program(
          "kernel/cuda/device/rowwise/group_norm.cuh",
          fmt::format("cermet::group_norm::Task<cermet::group_norm::Config{{{}, .x = {}, .y = {}, .weights = {}, .biases = {}, .weight = {}, .bias = {}, "
                      ".positions = {}}}>",
                      g.text(), device_type(p, 0), device_name(p.outputs[0].dtype), p.has(1), p.has(2), device_type(p, 1), device_type(p, 2),
                      g.width > 1 ? positions_ : 0),
          g));
    return programs;
  }
  /// The program of these rows, of which operands 0 and 1 are x and y.
  std::size_t choose(const RowWalk& walk) const {
    const bool suits = list_.size() > 1 && walk.uniform() && walk.aligned(0, width_) && walk.aligned(1, width_);
    return suits ? 0 : list_.size() - 1;
  }
  std::int64_t items(std::size_t program, std::int64_t rows) const { return rows * list_[program].cluster; }

 private:
  RowGeometry geometry(std::int64_t length, std::int64_t rows, const Target& target) const {
    const std::int64_t vectors = length / width_;
    const bool clusters = target.compute_capability >= 90, few = 2 * rows <= target.multiprocessors;
    const bool fits = vectors <= block_vectors * most_threads;
    RowGeometry g{.lanes = most_threads, .threads = most_threads, .width = width_, .uniform = true};
    if (clusters && (!fits || (few && vectors > most_threads))) {
      if (vectors <= cluster_vectors * cluster * cluster_threads) g.columns = static_cast<int>(length);
      g.lanes = g.threads = static_cast<int>(cluster_threads);
      g.cluster = static_cast<int>(cluster);
    } else if (fits) {
      g.columns = static_cast<int>(length);
      g.lanes = static_cast<int>(std::min<std::int64_t>(most_threads, round_up(div_up(vectors, few ? 1 : usual_vectors), warp)));
      g.threads = g.lanes;
    }
    return g;
  }

  int width_;
  std::int64_t positions_ = 0;
  std::vector<RowGeometry> list_;
};

/// x or y as [samples, groups, elements of a group].
TensorView grouped(const TensorView& view, std::int64_t groups) {
  const std::int64_t length = view.elements() / (view.shape[0] * groups);
  return {view.data, view.dtype, {view.shape[0], groups, length}, {view.strides[0], length, 1}};
}

Launcher bind(const Problem& p) {
  return [groups = groups_of(p), programs = GroupPrograms(p), eps = static_cast<float>(p.attributes.number("eps"))](const LaunchArgs& args) {
    if (args.inputs[0].elements() == 0) return;
    const TensorView x = grouped(args.inputs[0], groups), y = grouped(args.outputs[0], groups);
    const RowView operands[] = {{&x}, {&y}};
    const RowWalk walk(operands);
    const std::int64_t channels = args.inputs[0].shape[1], length = x.shape.back();
    require(length < std::int64_t{1} << 31, "group_norm: expected groups of fewer than 2^31 elements, found {}", length);
    group_norm::Params params{};
    params.dims = walk.dims();
    params.rows = static_cast<std::uint32_t>(walk.rows());
    params.length = static_cast<std::int32_t>(length);
    params.weight = args.has(1) ? args.inputs[1].data : nullptr;
    params.bias = args.has(2) ? args.inputs[2].data : nullptr;
    params.groups = static_cast<std::uint32_t>(groups);
    params.group_channels = static_cast<std::uint32_t>(channels / groups);
    params.positions = static_cast<std::uint32_t>(length / params.group_channels);
    params.eps = eps;
    params.x = walk.operand(0);
    params.y = walk.operand(1);
    const std::size_t program = programs.choose(walk);
    args.queue->run(program, programs.items(program, walk.rows()), params);
  };
}

constexpr const char* const summary = "a group of a sample in the registers of a block, or of a cluster of blocks where groups are long or few";

}  // namespace

extern const Kernel rowwise_group_norm, rowwise_instance_norm;
const Kernel rowwise_group_norm{.name = "rowwise.group_norm", .op = OpKind::group_norm, .summary = summary, .bind = bind, .programs = [](const Problem& p) {
                                  return GroupPrograms(p).programs(p);
                                }};
const Kernel rowwise_instance_norm{
    .name = "rowwise.instance_norm", .op = OpKind::instance_norm, .summary = summary, .bind = bind, .programs = [](const Problem& p) {
      return GroupPrograms(p).programs(p);
    }};

}  // namespace cermet::cuda
