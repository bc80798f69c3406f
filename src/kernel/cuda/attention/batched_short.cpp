// Host half of attention over batches of short sequences of one length with wgmma and bulk copies.
#include "kernel/cuda/device/attention/batched_short.hpp"

#include <bit>

#include "base/checked.hpp"
#include "kernel/cuda/attention/batched.hpp"
#include "kernel/cuda/config_text.hpp"
#include "kernel/cuda/narrow.hpp"
#include "kernel/cuda/task.hpp"
#include "op/operands.hpp"

namespace cermet::cuda::attention_batched_short_file {
namespace {

using Call = BatchedAttention;

constexpr std::int64_t rows = attention::batched_short_rows, most_keys = 224;

/// Keys of a tile of which a sequence has one or two, tiles of 64 rows that a block has, most, and blocks on an SM,
/// which cap registers.
struct Tile {
  std::int64_t keys, row_tiles;
  int blocks;
};

std::int64_t key_tiles(const BatchedProblem& a, const Tile& tile) { return div_up(a.keys, tile.keys); }

std::int64_t shared_bytes(const BatchedProblem& a, const Tile& tile) {
  return attention::batched_short_bytes(static_cast<int>(rows * std::min<std::int64_t>(2, tile.row_tiles)),
                                        static_cast<int>(key_tiles(a, tile) * tile.keys));
}

std::int64_t row_tiles(const BatchedProblem& a) { return div_up(a.queries, rows); }

/// Whether registers of three blocks hold what operands do to a tile's scores, beside what a second tile of keys adds
/// to.
bool is_light(const Problem& p) {
  const bool bias = p.has(op::flash_attention::bias), mask = p.has(op::flash_attention::mask);
  if (!bias && !mask) return true;
  return BatchedProblem(p).keys <= 128 && !(bias && mask) &&
         !(bias && p.input(op::flash_attention::bias).dtype == DType::f32);
}

/// A block has all rows of a head where there are as many heads as blocks that run at once.
Tile tile_of(const Problem& p, const Config& config) {
  const BatchedProblem a(p);
  Tile tile{};
  const std::int64_t least = a.keys <= 128 ? a.keys : div_up(a.keys, std::int64_t{2});
  tile.keys = std::max<std::int64_t>(16, round_up(least, std::int64_t{16}));  // what instructions there are for
  tile.blocks = is_light(p) ? 3 : 2;
  if (!config.empty()) {
    tile.row_tiles = config.at("row_tiles"), tile.blocks = static_cast<int>(config.at("blocks"));
    return tile;
  }
  const std::int64_t of_head =
      std::clamp<std::int64_t>(tile.blocks * p.target->multiprocessors / (a.sequences * a.heads), 1, row_tiles(a));
  tile.row_tiles = div_up(row_tiles(a), of_head);
  return tile;
}

std::vector<Config> configs(const Problem& p) {
  const BatchedProblem a(p);
  std::vector<Config> list(1);
  for (std::int64_t tiles = 1; tiles < 2 * row_tiles(a); tiles *= 2)
    for (int blocks = 1; blocks <= (is_light(p) ? 3 : 2); ++blocks)
      list.push_back({{"row_tiles", std::min(tiles, row_tiles(a))}, {"blocks", blocks}});
  return list;
}

Decline declines_scores(const Problem& p) {
  const BatchedProblem a(p);
  const AttentionSettings settings(p.attributes, a.head_size);
  if (!a.plain || settings.causal || settings.window > 0 || p.has(op::flash_attention::sinks))
    return "scores that depend on places or are capped, or sinks";
  if (!(settings.scale > 0)) return "a scale that is not above 0";
  if (p.has(op::flash_attention::lengths)) return "lengths of the sequences";
  if (p.outputs.size() > 1) return "logarithms of sums are wanted, too";
  for (const std::size_t operand : {std::size_t{op::flash_attention::bias}, std::size_t{op::flash_attention::mask}}) {
    if (!p.has(operand)) continue;
    if (a.keys % 2 != 0) return fmt::format("a bias or mask of {} keys; taken: even numbers", a.keys);
    if (p.input(operand).dims.back() != p.input(op::flash_attention::k).dims[static_cast<std::size_t>(a.call.k.tokens)])
      return "a bias or mask that is alike for all keys";
  }
  return std::nullopt;
}

Decline declines(const Problem& p) {
  if (!Call::is(p)) return attention_batched_file::attention_batched_general.declines(p);
  if (p.target->compute_capability != 90) return "needs compute capability 9.0";
  const BatchedProblem a(p);
  if (a.type != DType::bf16 && a.type != DType::f16)
    return fmt::format("keys of {}; taken: bf16 and f16", name_of(a.type));
  if (a.out != a.type) return fmt::format("a result of {} from {}", name_of(a.out), name_of(a.type));
  if (a.steps) return "elements of a row of q, k or v are apart";
  if (a.head_size != attention::batched_short_head || a.value_size != a.head_size || a.group() != 1)
    return fmt::format("head sizes {} and {} and {} queries of a key; taken: 64, 64 and 1", a.head_size, a.value_size,
                       a.group());
  const Dim& keys = p.input(op::flash_attention::k).dims[static_cast<std::size_t>(a.call.k.tokens)];
  if (!keys.is_constant() || a.keys == 0 || a.keys > most_keys)
    return fmt::format("{} keys; taken: up to {}, known beforehand", a.keys, most_keys);
  if (Decline reason = declines_scores(p)) return reason;
  return attention_batched_file::attention_batched_general.declines(p);
}

/// In proportion to that of attention.batched_hopper, of whose time it was measured to take 0.6 to 0.75.
double cost(const Problem& p, const Config& config, const DeviceLimits& limits) {
  const BatchedProblem a(p);
  const auto number = [](std::int64_t value) { return static_cast<double>(value); };
  const Tile tile = tile_of(p, config);
  const std::int64_t items = a.sequences * a.heads * div_up(row_tiles(a), tile.row_tiles);
  const double scores = std::max(1.0, number(items) / p.target->multiprocessors) *
                        number(rows * tile.row_tiles * key_tiles(a, tile) * tile.keys);
  const double elements = number(a.sequences * a.heads * (a.queries + a.keys)) * 2 * number(a.head_size);
  const double cycles = p.has(op::flash_attention::bias) || p.has(op::flash_attention::mask) ? 0.15 : 0.12;
  return 6000 / limits.clock_hz +
         std::max(scores * cycles / limits.clock_hz, 2 * elements / limits.read_bytes_per_second);
}

std::vector<Program> programs(const Problem& p, const Config& config) {
  const BatchedProblem a(p);
  const Tile tile = tile_of(p, config);
  const auto differs = [&](std::size_t operand) {
    return p.has(operand) && p.input(operand).rank() > 1 && p.input(operand).dims.end()[-2] != Dim(1);
  };
  const attention::BatchedShortConfig device_config{
      .type = a.type,
      .heads = static_cast<int>(a.heads),
      .keys = static_cast<int>(a.keys),
      .tile_keys = static_cast<int>(tile.keys),
      .row_tiles = static_cast<int>(tile.row_tiles),
      .rows_differ = differs(op::flash_attention::bias) || differs(op::flash_attention::mask)};
  std::vector<Program> list{
      {.header = "kernel/cuda/device/attention/batched_short.cuh",
       .task = fmt::format("cermet::attention::BatchedShortTask<cermet::attention::BatchedShortConfig{}, {}>",
                           config_text(device_config), score_config(p)),
       .threads = 128,
       .shared_bytes = shared_bytes(a, tile),
       .min_blocks = tile.blocks,
       .reads_descriptors = true}};
  for (Program& other : as_fallbacks(attention_batched_file::attention_batched_general.programs(p)))
    list.push_back(std::move(other));
  return list;
}

/// Rows of all heads and sequences as one matrix; nothing where bulk copies do not take it.
struct Matrix {
  attention::ShortRows rows;
  std::int64_t count, columns;
};
std::optional<Matrix> matrix_of(std::int64_t batches, std::int64_t heads, std::int64_t tokens, std::int64_t batch,
                                std::int64_t head, std::int64_t token) {
  constexpr std::int64_t size = attention::batched_short_head;
  if (token < size || batch % token != 0) return std::nullopt;
  const bool beside = head >= size && heads * head <= token;
  if (!beside && head % token != 0) return std::nullopt;
  const std::int64_t head_row = beside ? 0 : head / token,
                     last = (batches - 1) * (batch / token) + (heads - 1) * head_row;
  if (last < 0 || batch < 0 || head < 0 || last + tokens > most_narrow) return std::nullopt;
  const attention::ShortRows matrix_rows{static_cast<std::int32_t>(beside ? head : 0),
                                         static_cast<std::int32_t>(head_row), static_cast<std::int32_t>(batch / token)};
  return Matrix{matrix_rows, last + tokens, beside ? (heads - 1) * head + size : size};
}

std::optional<attention::BatchedShortParams> params_of(const LaunchArgs& args, const Call& call,
                                                       const attention::BatchedParams& b) {
  const auto pairs = [&](std::size_t operand, const attention::ScoreOperand& list) {
    return !args.has(operand) || list.pairs;
  };
  if (!b.a.aligned || !b.a.aligned_out || !pairs(op::flash_attention::bias, b.bias) ||
      !pairs(op::flash_attention::mask, b.mask))
    return std::nullopt;
  attention::BatchedShortParams p{};
  p.b = b;
  const auto set = [&](std::size_t operand, const AttentionAxes& axes, std::int64_t box, TensorMapBytes& map,
                       attention::ShortRows& to) {
    const TensorView& view = args.inputs[operand];
    const std::int64_t tokens = view.shape[axes.tokens],
                       step = tokens > 1 ? view.strides[axes.tokens] : attention::batched_short_head;
    const std::optional<Matrix> m =
        matrix_of(view.shape[0], view.shape[axes.heads], tokens, view.shape[0] > 1 ? view.strides[0] : 0,
                  view.shape[axes.heads] > 1 ? view.strides[axes.heads] : step, step);
    if (!m) return false;
    to = m->rows;
    map = std::bit_cast<TensorMapBytes>(
        args.queue->device().tensor_map({view.data, view.dtype, m->count, m->columns, step,
                                         static_cast<std::uint32_t>(box), attention::batched_short_head, 128}));
    return true;
  };
  const bool fits = set(op::flash_attention::q, call.q, rows, p.q, p.q_rows) &&
                    set(op::flash_attention::k, call.k, b.a.key_tokens, p.k, p.k_rows) &&
                    set(op::flash_attention::v, call.v, b.a.key_tokens, p.v, p.v_rows);
  return fits ? std::optional(p) : std::nullopt;
}

/// The general task where bulk copies or pairs of keys do not suit the operands.
Launcher bind(const Problem& p, const Config& config) {
  const BatchedProblem a(p);
  const Tile tile = tile_of(p, config);
  return [launch = BatchedLaunch(p), call = a.call, item_rows = rows * tile.row_tiles,
          run_general = bind_batched_general(p, 1)](const LaunchArgs& args) {
    const attention::BatchedParams b = launch.params(args, item_rows);
    if (BatchedLaunch::items(args, b) == 0) return;
    const std::optional<attention::BatchedShortParams> params = params_of(args, call, b);
    if (!params) return run_general(args);
    args.queue->run(0, BatchedLaunch::items(args, b), *params);
  };
}

}  // namespace

extern const Kernel attention_batched_short;
const Kernel attention_batched_short{
    .name = "attention.batched_short",
    .op = OpKind::flash_attention,
    .summary = "batches of up to 224 keys of heads of 64 on Hopper: 16-bit operands, with biases and masks",
    .declines = declines,
    .bind = bind,
    .programs = programs,
    .configs = configs,
    .cost = cost,
    .model_error = {.assumes = ModelError::Assumes::longest_context}};

}  // namespace cermet::cuda::attention_batched_short_file
