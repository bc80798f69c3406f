#include "kernel/cuda/rowwise/rowwise.hpp"

#include "base/checked.hpp"
#include "kernel/cuda/narrow.hpp"

namespace cermet::cuda {

TensorView with_rank(const TensorView& view, int rank) {
  Shape shape, strides;
  for (int axis = view.shape.rank(); axis < rank; ++axis) {
    shape.push_back(1);
    strides.push_back(0);
  }
  for (int axis = 0; axis < view.shape.rank(); ++axis) {
    shape.push_back(view.shape[axis]);
    strides.push_back(view.strides[axis]);
  }
  return {view.data, view.dtype, shape, strides};
}

StridedRows::StridedRows(std::span<const RowView> operands, std::size_t leader) : count_(operands.size()) {
  CERMET_ASSERT(count_ <= most_operands);
  const TensorView& sizes = *operands[leader].view;
  for (std::size_t i = 0; i < count_; ++i)
    operands_[i] = {operands[i].view->as<std::byte>(), byte_size(operands[i].view->dtype), {}};
  for (int axis = sizes.shape.rank() - operands[leader].trailing - 1; axis >= 0; --axis) {
    const std::int64_t size = sizes.shape[axis];
    if (size == 1) continue;
    const auto step = [&](const RowView& o) { return o.view->shape[axis] == 1 ? 0 : o.view->strides[axis]; };
    bool merges = sizes_.rank() > 0;
    const int last = sizes_.rank() - 1;
    for (std::size_t i = 0; merges && i < operands.size(); ++i)
      merges = step(operands[i]) == operands_[i].steps[last] * sizes_[last];
    if (merges) {
      sizes_[last] *= size;
      continue;
    }
    sizes_.push_back(size);
    for (std::size_t i = 0; i < operands.size(); ++i) operands_[i].steps.push_back(step(operands[i]));
  }
  const auto size_at = [&](int axis) { return axis < sizes_.rank() ? sizes_[axis] : std::int64_t{1}; };
  inner_ = size_at(0);
  middle_ = size_at(1);
  outer_ = size_at(2);
  for (int axis = 3; axis < sizes_.rank(); ++axis) launches_ *= sizes_[axis];
  if (rows() == 0) launches_ = 0;
  narrow(rows(), "row kernel", "rows of a launch");
  if (sizes_.rank() > 1) dims_ = {static_cast<std::uint32_t>(inner_), static_cast<std::uint32_t>(middle_)};
}

RowOperand StridedRows::operand(std::size_t i, std::int64_t launch) const {
  const Operand& o = operands_[i];
  RowOperand result{o.data, {0, 0, 0}};
  for (int axis = 0; axis < std::min(3, sizes_.rank()); ++axis) result.step[axis] = o.steps[axis];
  std::int64_t offset = 0;
  for (int axis = 3; axis < sizes_.rank(); ++axis) {
    offset += launch % sizes_[axis] * o.steps[axis];
    launch /= sizes_[axis];
  }
  result.data = o.data + offset * o.bytes;
  return result;
}

bool StridedRows::aligned(std::size_t i, int width) const {
  const Operand& o = operands_[i];
  if (reinterpret_cast<std::uintptr_t>(o.data) % static_cast<std::uintptr_t>(width * o.bytes) != 0) return false;
  for (const std::int64_t step : o.steps)
    if (step % width != 0) return false;
  return true;
}

namespace {

constexpr int most_threads = 1024, warp = 32;

int warps_of(std::int64_t lanes) { return static_cast<int>(round_up(lanes, warp)); }

int most_resident_threads(const Target* target) {
  const int capability = target ? target->compute_capability : 0;
  return capability < 80 ? 1024 : capability == 86 || capability == 89 ? 1536 : 2048;
}

/// Two vectors for each thread, or as many as it takes: few steps from the first load to the last store. Where a block
/// may have fewer threads than that, each stands for several.
RowVariant few_rows(const RowSpec& spec) {
  const std::int64_t vectors = spec.columns / spec.width;
  const int cluster = vectors > most_threads ? spec.few_cluster : 1;
  const std::int64_t own = div_up(vectors, cluster);
  const std::int64_t each =
      cluster > 1 ? div_up(own, most_row_warps / cluster * warp) : std::max<std::int64_t>(2, div_up(own, most_threads));
  int lanes = warps_of(div_up(own, each)), fold = 1;
  for (; lanes > spec.threads && cluster == 1 && lanes % (2 * warp) == 0; lanes /= 2) fold *= 2;
  if (lanes > spec.threads) lanes = spec.threads, fold = 1;
  return {{.columns = static_cast<int>(spec.columns),
           .lanes = lanes,
           .threads = lanes,
           .width = spec.width,
           .cluster = cluster,
           .fold = fold,
           .preload_columns = true,
           .keep_float32 = spec.keep,
           .uniform = true}};
}

/// Rows of up to a warp share a block; longer ones give each thread several vectors, so that loads are in flight while
/// other rows are reduced. What a warp does once for each row is then shared by more elements.
RowVariant many_rows(const RowSpec& spec) {
  const std::int64_t vectors = spec.columns / spec.width;
  const RowTuning& tuning = spec.columns <= 6144 ? spec.short_rows : spec.long_rows;
  RowLayout l{.columns = static_cast<int>(spec.columns),
              .lanes = 1,
              .threads = 128,
              .width = spec.width,
              .keep_float32 = spec.keep};
  if (vectors <= warp) {
    while (l.lanes < vectors) l.lanes *= 2;
  } else {
    l.lanes = std::min(spec.threads, warps_of(div_up(vectors, std::max(1, tuning.elements / spec.width))));
    if (l.lanes > warp) l.threads = l.lanes;
  }
  const int registers = 65536 / (tuning.registers * l.threads);
  return {l, std::max(1, std::min(registers, most_resident_threads(spec.target) / l.threads))};
}

/// Whether a group of columns lies in neighbouring lanes of a warp.
bool group_fits_lanes(const RowSpec& spec) {
  const std::int64_t lanes = spec.group / spec.width;
  return spec.group % spec.width == 0 && lanes <= warp && (lanes & (lanes - 1)) == 0 && spec.group < spec.columns;
}

}  // namespace

int few_cluster(const Target* target) { return target && target->compute_capability >= 90 ? 7 : 1; }

std::string RowQuantization::text(std::int64_t columns) const {
  return fmt::format(
      "{{.format = {{.dtype = {}, .wide = {}, .asymmetric = {}, .group = {}, .power_of_two = {}, .bounded = {}}}, "
      ".exact = "
      "{}}}",
      device_name(format.dtype), format.limit == 127.5f, format.asymmetric, group(columns), format.power_of_two,
      bounded, exact);
}

RowVariants::RowVariants(const RowSpec& spec) : width_(spec.width) {
  const bool vectors = spec.columns > 0 && spec.columns % spec.width == 0;
  if (vectors && (spec.group == 0 || group_fits_lanes(spec))) {
    if (spec.columns <= spec.most_columns) {
      list_.push_back(many_rows(spec));
      if (list_.front().layout.lanes > warp) {
        few_ = list_.size();
        list_.push_back(few_rows(spec));
      }
    } else {
      const int threads = std::min(512, spec.threads);
      list_.push_back({{.lanes = threads, .threads = threads, .width = spec.width}});
    }
  }
  const int threads = spec.columns > 0 && spec.columns <= 2048 ? 128 : std::min(512, spec.threads);
  list_.push_back({{.lanes = threads, .threads = threads}});
}

std::size_t RowVariants::choose(const StridedRows& strided, bool aligned, const Target& target) const {
  if (!aligned || list_.size() == 1) return list_.size() - 1;
  return strided.uniform() && strided.rows() <= target.multiprocessors ? few_ : 0;
}

std::int64_t RowVariants::items(std::size_t program, std::int64_t rows) const {
  const RowLayout& l = list_[program].layout;
  return l.cluster > 1 ? rows * l.cluster : div_up(rows, std::int64_t{l.threads / l.lanes});
}

Program variant_program(std::string header, std::string task, const RowVariant& variant) {
  return {.header = std::move(header),
          .task = std::move(task),
          .threads = variant.layout.threads,
          .shared_bytes = row_shared_bytes,
          .min_blocks = variant.min_blocks,
          .cluster = variant.layout.cluster,
          .held_columns = variant.layout.columns};
}

std::int64_t constant_columns(const Problem& problem, int trailing) {
  std::int64_t columns = 1;
  const Dims& dims = problem.input(0).dims;
  for (int axis = 1; axis <= trailing; ++axis) {
    const Dim& dim = dims[dims.size() - static_cast<std::size_t>(axis)];
    if (!dim.is_constant()) return 0;
    columns *= dim.constant();
  }
  return columns;
}

int vector_width(std::initializer_list<DType> types) {
  std::size_t widest = 1;
  for (const DType t : types) widest = std::max(widest, size_of(t));
  return static_cast<int>(16 / widest);
}

bool is_aligned(const TensorView& vector, int width) {
  return reinterpret_cast<std::uintptr_t>(vector.data) % (static_cast<std::size_t>(width) * size_of(vector.dtype)) == 0;
}

DType type_or_f32(const Problem& problem, std::size_t operand) {
  return problem.has(operand) ? problem.input(operand).dtype : DType::f32;
}

}  // namespace cermet::cuda
