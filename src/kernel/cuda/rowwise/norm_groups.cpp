// Host half of group_norm and instance_norm.
#include <algorithm>
#include <bit>

#include "base/checked.hpp"
#include "kernel/cuda/device/rowwise/group_norm.hpp"
#include "kernel/cuda/rowwise/rowwise.hpp"
#include "op/operands.hpp"

namespace cermet::cuda::rowwise_norm_groups_file {
namespace {

constexpr std::int64_t warp = 32, most_threads = 1024;
/// Vectors that a thread holds where an SM has 1024 threads, of 64 registers each: the most bytes on their way
/// (docs/notes/conv-cuda.md).
constexpr std::int64_t usual_vectors = 10, most_blocks = 8, resident_threads = 1024, usual_threads = 512;
/// The compiler does not keep to 64 registers where a group has a power of two elements: there each thread has fewer
/// vectors, and as many registers as it likes.
constexpr std::int64_t uncapped_vectors = 4;
/// Of a block, and of a thread of a cluster, whose warps reduce_row.cuh limits to 64.
constexpr std::int64_t block_vectors = 6, cluster_vectors = 16, most_cluster = 8, cluster_threads = 256;
/// Of longer groups: vectors of each of 1024 threads in shared memory, and then in registers.
constexpr std::int64_t staged_vectors = 13, more_vectors = 1, longest_staged = std::int64_t{1} << 30;

std::int64_t groups_of(const Problem& p) {
  return p.op->kind == OpKind::group_norm ? p.attributes.integer("groups") : p.size(0, 1);
}

/// How rows lie over threads: in registers where vectors suit them, in those of a cluster where they are long, or few;
/// longer ones are staged in shared memory, too, or read again for each pass. The last takes any.
class GroupPrograms {
 public:
  explicit GroupPrograms(const Problem& p) : width_(vector_width({p.input(0).dtype, p.outputs[0].dtype})) {
    const std::int64_t groups = groups_of(p), sample = constant_columns(p, p.input(0).rank() - 1);
    const std::int64_t length = groups == 0 ? 0 : sample / groups;
    if (length > 0 && length % width_ == 0) {
      positions_ = length / (p.size(0, 1) / groups);
      length_ = length;
      list_.push_back(variant(length, p.size(0, 0) * groups, *p.target));
    }
    list_.push_back({{.lanes = 512, .threads = 512}});
  }

  std::vector<Program> programs(const Problem& p) const {
    std::vector<Program> programs;
    for (const RowVariant& v : list_) {
      if (is_staged(v.layout)) {
        programs.push_back(staged_program(p, v.layout));
        continue;
      }
      const group_norm::Config config{.layout = v.layout,
                                      .x = p.input(0).dtype,
                                      .y = p.outputs[0].dtype,
                                      .weights = p.has(1),
                                      .biases = p.has(op::group_norm::bias),
                                      .weight = type_or_f32(p, 1),
                                      .bias = type_or_f32(p, 2),
                                      .positions = v.layout.width > 1 ? static_cast<int>(positions_) : 0};
      programs.push_back(variant_program(
          "kernel/cuda/device/rowwise/group_norm.cuh",
          fmt::format("cermet::group_norm::Task<cermet::group_norm::Config{}>", config_text(config)), v));
    }
    return programs;
  }
  /// The program of these rows, of which operands 0 and 1 are x and y.
  std::size_t choose(const StridedRows& strided) const {
    const bool suits =
        list_.size() > 1 && strided.uniform() && strided.aligned(0, width_) && strided.aligned(1, width_);
    return suits ? 0 : list_.size() - 1;
  }
  std::int64_t items(std::size_t program, std::int64_t rows) const { return rows * list_[program].layout.cluster; }

 private:
  static bool is_staged(const RowLayout& l) { return l.columns == 0 && l.cluster > 1; }

  Program staged_program(const Problem& p, const RowLayout& l) const {
    const std::int64_t own = div_up(length_, std::int64_t{width_} * l.threads * l.cluster);
    const std::int64_t staged = std::min(own, staged_vectors), held = std::min(own - staged, more_vectors);
    const std::int64_t bytes = staged * l.threads * width_ * byte_size(p.input(0).dtype);
    const group_norm::StagedConfig config{.x = p.input(0).dtype,
                                          .y = p.outputs[0].dtype,
                                          .weights = p.has(1),
                                          .biases = p.has(op::group_norm::bias),
                                          .weight = type_or_f32(p, 1),
                                          .bias = type_or_f32(p, 2),
                                          .columns = static_cast<int>(length_),
                                          .positions = static_cast<int>(positions_),
                                          .width = width_,
                                          .staged = static_cast<int>(staged),
                                          .held = static_cast<int>(held)};
    return {.header = "kernel/cuda/device/rowwise/group_norm_staged.cuh",
            .task = fmt::format("cermet::group_norm::Staged<cermet::group_norm::StagedConfig{}>", config_text(config)),
            .threads = l.threads,
            .shared_bytes = group_norm::cluster_moments_bytes(l.threads, l.cluster) + bytes,
            .cluster = l.cluster,
            .held_columns = 0};
  }

  RowVariant variant(std::int64_t length, std::int64_t rows, const Target& target) const {
    const std::int64_t vectors = length / width_;
    const bool clusters = target.compute_capability >= 90, few = 2 * rows <= target.multiprocessors;
    const bool capped = clusters && !std::has_single_bit(static_cast<std::uint64_t>(length));
    RowVariant v{{.width = width_, .uniform = true}};
    RowLayout& l = v.layout;
    const auto held = [&](std::int64_t threads, std::int64_t cluster) {
      l.columns = static_cast<int>(length);
      l.lanes = l.threads = static_cast<int>(threads);
      l.cluster = static_cast<int>(cluster);
      if (capped && div_up(vectors, threads * cluster) <= usual_vectors)
        v.min_blocks = static_cast<int>(std::clamp<std::int64_t>(resident_threads / threads, 1, most_blocks));
      return v;
    };
    // Few groups: as many blocks as there are SMs.
    if (few && vectors <= most_threads) return held(round_up(vectors, warp), 1);
    if (few && clusters) {
      std::int64_t cluster = 2;
      while (cluster < most_cluster && 2 * cluster * rows <= target.multiprocessors) cluster *= 2;
      const std::int64_t threads = cluster == most_cluster ? cluster_threads : usual_threads;
      if (vectors <= usual_vectors * cluster * threads) return held(threads, cluster);
    }
    const std::int64_t most = capped ? usual_vectors * usual_threads : block_vectors * most_threads;
    if (vectors <= most)
      return held(std::min(most_threads, round_up(div_up(vectors, capped ? usual_vectors : uncapped_vectors), warp)),
                  1);
    if (capped && vectors <= 2 * most) return held(round_up(div_up(vectors, 2 * usual_vectors), warp), 2);
    if (clusters && vectors <= cluster_vectors * most_cluster * cluster_threads)
      return held(cluster_threads, most_cluster);
    l.lanes = l.threads = static_cast<int>(most_threads);
    if (clusters && length < longest_staged) l.cluster = static_cast<int>(most_cluster);
    return v;
  }

  int width_;
  std::int64_t length_ = 0, positions_ = 0;
  std::vector<RowVariant> list_;
};

/// x or y as [samples, groups, elements of a group].
TensorView grouped(const TensorView& view, std::int64_t groups) {
  const std::int64_t length = view.elements() / (view.shape[0] * groups);
  return {view.data, view.dtype, {view.shape[0], groups, length}, {view.strides[0], length, 1}};
}

Launcher bind(const Problem& p) {
  return [groups = groups_of(p), programs = GroupPrograms(p),
          eps = static_cast<float>(p.attributes.number("eps"))](const LaunchArgs& args) {
    if (args.inputs[0].elements() == 0) return;
    const TensorView x = grouped(args.inputs[0], groups), y = grouped(args.outputs[0], groups);
    const RowView operands[] = {{&x}, {&y}};
    const StridedRows strided(operands);
    const std::int64_t channels = args.inputs[0].shape[1], length = x.shape.back();
    require(length < std::int64_t{1} << 31, "group_norm: expected groups of fewer than 2^31 elements, found {}",
            length);
    group_norm::Params params{};
    params.dims = strided.dims();
    params.rows = static_cast<std::uint32_t>(strided.rows());
    params.length = static_cast<std::int32_t>(length);
    params.weight = args.has(1) ? args.inputs[1].data : nullptr;
    params.bias = args.has(op::group_norm::bias) ? args.inputs[op::group_norm::bias].data : nullptr;
    params.groups = static_cast<std::uint32_t>(groups);
    params.group_channels = static_cast<std::uint32_t>(channels / groups);
    params.positions = static_cast<std::uint32_t>(length / params.group_channels);
    params.eps = eps;
    params.x = strided.operand(0);
    params.y = strided.operand(1);
    const std::size_t program = programs.choose(strided);
    args.queue->run(program, programs.items(program, strided.rows()), params);
  };
}

constexpr const char* const summary =
    "a group of a sample in the registers of a block, or of a cluster of blocks where groups are long or few";

}  // namespace

extern const Kernel rowwise_group_norm, rowwise_instance_norm;
const Kernel rowwise_group_norm{.name = "rowwise.group_norm",
                                .op = OpKind::group_norm,
                                .summary = summary,
                                .bind = bind,
                                .programs = [](const Problem& p) { return GroupPrograms(p).programs(p); }};
const Kernel rowwise_instance_norm{.name = "rowwise.instance_norm",
                                   .op = OpKind::instance_norm,
                                   .summary = summary,
                                   .bind = bind,
                                   .programs = [](const Problem& p) { return GroupPrograms(p).programs(p); }};

}  // namespace cermet::cuda::rowwise_norm_groups_file
