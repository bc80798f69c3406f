// Host half of moe_permute.
#include "kernel/cuda/device/mixture/permute.hpp"

#include <algorithm>
#include <bit>

#include "base/checked.hpp"
#include "kernel/cuda/movement/axes.hpp"
#include "kernel/cuda/task.hpp"
#include "kernel/kernel.hpp"
#include "op/expert_groups.hpp"
#include "op/operands.hpp"

namespace cermet::cuda::mixture_permute_file {
namespace {

/// Pairs up to which every block counts all of them for itself: that costs less than launches between which counts are
/// exchanged.
constexpr std::int64_t direct_pairs = permute::groups_held;
constexpr std::int64_t most_chunks = 128;
/// Words of a slice of a row at least, below which more blocks take no less time.
constexpr std::int64_t fewest_slice_words = 64;

std::int64_t chunk_of(std::int64_t pairs) {
  return round_up(std::max<std::int64_t>(256, div_up(pairs, most_chunks)), 32);
}

bool sorts_in_chunks(std::int64_t pairs, std::int64_t experts) {
  return pairs > direct_pairs && experts <= permute::chunk_experts;
}

/// Bytes that every row of x and of the result can be copied in.
std::int64_t word_bytes(const TensorView& x, const TensorView& rows) {
  const auto bytes = byte_size(x.dtype);
  std::int64_t word = 16;
  const auto fits = [&](std::int64_t w) {
    return is_aligned(x.data, w) && is_aligned(rows.data, w) && x.shape[1] * bytes % w == 0 &&
           x.strides[0] * bytes % w == 0 && rows.strides[0] * bytes % w == 0;
  };
  while (word > bytes && !fits(word)) word /= 2;
  return word;
}

/// Logarithm of the slices of a row: a block copies one of them, and each SM has one block at most, because every block
/// counts all pairs.
std::uint32_t slices_shift(std::int64_t tokens, std::int64_t row_words, std::int64_t multiprocessors) {
  std::uint32_t shift = 0;
  while (tokens << (shift + 1) <= multiprocessors && row_words >> (shift + 1) >= fewest_slice_words) ++shift;
  return shift;
}

/// Of the threads that copy a slice to the same place: as many as its words, and whole warps.
std::uint32_t lanes_shift(std::int64_t slice_words) {
  constexpr auto least = 5U;
  const auto words = static_cast<std::uint64_t>(std::clamp<std::int64_t>(slice_words, 1 << least, permute::threads));
  return static_cast<std::uint32_t>(std::bit_width(words - 1));
}

void launch(const LaunchArgs& args, const ExpertGroups& groups) {
  const TensorView &x = args.inputs[0], &ids = args.inputs[1], &rows = args.outputs[0], &row_of = args.outputs[2];
  const auto bytes = byte_size(x.dtype), word = word_bytes(x, rows);
  const std::int64_t pairs = ids.elements(), chunk = chunk_of(pairs), row_words = x.shape[1] * bytes / word;
  const std::uint32_t slices = slices_shift(ids.shape[0], row_words, args.queue->target().multiprocessors);
  const std::int64_t slice_words = div_up(row_words, std::int64_t{1} << slices);
  const permute::Params params{
      .x = x.data,
      .ids = ids.data,
      .scales = args.has(op::moe_permute::scales) ? args.inputs[op::moe_permute::scales].as<const float>() : nullptr,
      .rows = rows.data,
      .offsets = args.outputs[1].as<std::int32_t>(),
      .row_of = row_of.as<std::int32_t>(),
      .row_scales = args.has(op::moe_permute::scales) ? args.outputs[3].as<float>() : nullptr,
      .counts = reinterpret_cast<std::int32_t*>(args.workspace),
      .tokens = ids.shape[0],
      .k = ids.shape[1],
      .experts = groups.groups,
      .ids_stride = ids.strides[0],
      .row_of_stride = row_of.strides[0],
      .x_stride = x.strides[0] * bytes / word,
      .rows_stride = rows.strides[0] * bytes / word,
      .row_words = row_words,
      .chunk = chunk,
      .chunks = div_up(pairs, chunk),
      .slice_words = static_cast<std::int32_t>(slice_words),
      .slices_shift = slices,
      .lanes_shift = lanes_shift(slice_words),
      .by_k = make_divisor(ids.shape[1]),
      .first = static_cast<std::int32_t>(groups.first),
      .own = static_cast<std::int32_t>(groups.experts()),
      .others = groups.rest ? static_cast<std::int32_t>(groups.experts()) : permute::no_group,
      .wide_ids = ids.dtype == DType::i64,
      .word_bytes = static_cast<std::uint32_t>(word)};
  if (!sorts_in_chunks(pairs, groups.groups)) return args.queue->run(0, (params.tokens << slices) + 1, params);
  args.queue->run(1, div_up(params.chunks, permute::warps), params);
  args.queue->run(2, div_up(params.chunks, permute::warps), params);
  args.queue->run(3, params.tokens, params);
}

std::int64_t max_pairs(const Problem& p) { return p.size(1, 0) * p.size(1, 1); }

std::vector<Program> programs(const Problem& p) {
  const auto program = [](const char* task, std::int64_t shared) {
    return Program{.header = "kernel/cuda/device/mixture/permute.cuh",
                   .task = fmt::format("cermet::permute::{}", task),
                   .threads = permute::threads,
                   .shared_bytes = shared};
  };
  std::vector<Program> list{program("Direct", permute::direct_shared_bytes)};
  list[0].header = "kernel/cuda/device/mixture/permute_few.cuh";
  list[0].min_blocks = 4;
  if (sorts_in_chunks(max_pairs(p), p.attributes.integer("experts"))) {
    list.insert(list.end(), {program("Count", permute::count_shared_bytes),
                             program("RowIndices", permute::row_indices_shared_bytes), program("Copy", 0)});
  }
  return list;
}

}  // namespace

extern const Kernel moe_permute;
const Kernel moe_permute{.name = "moe.permute",
                         .op = OpKind::moe_permute,
                         .summary =
                             "a stable counting sort: in one launch where pairs are few, by chunks where they are "
                             "many; rows in words of 16 bytes",
                         .declines = [](const Problem& p) -> Decline {
                           if (max_pairs(p) >= std::int64_t{1} << 31) return "2^31 or more pairs of token and expert";
                           if (p.size(0, 1) >= std::int64_t{1} << 31) return "2^31 or more columns";
                           return std::nullopt;
                         },
                         .bind = [](const Problem& p) -> Launcher {
                           return
                               [groups = ExpertGroups(p.attributes)](const LaunchArgs& args) { launch(args, groups); };
                         },
                         .workspace = [](const Problem& p, int) -> std::int64_t {
                           const std::int64_t pairs = max_pairs(p), experts = p.attributes.integer("experts");
                           return sorts_in_chunks(pairs, experts) ? most_chunks * experts * 4 : 0;
                         },
                         .programs = programs};

}  // namespace cermet::cuda::mixture_permute_file
