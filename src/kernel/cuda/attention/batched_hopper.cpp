// Host half of attention over batches of sequences of one length with wgmma.
#include "kernel/cuda/device/attention/batched_hopper.hpp"
#include "base/checked.hpp"
#include "kernel/cuda/attention/batched.hpp"
#include "kernel/cuda/config_text.hpp"
#include "kernel/cuda/task.hpp"
#include "op/operands.hpp"

namespace cermet::cuda::attention_batched_hopper_file {
namespace {

/// Keys of a tile, and tiles in shared memory, which hold all keys where they are resident; tiles of 64 rows that a
/// block has then, most; blocks on an SM, which cap registers.
struct Tile {
  int keys, stages;
  bool resident;
  int row_tiles, blocks;
};

constexpr int rows = attention::batched_hopper_rows;

std::int64_t shared_bytes(const BatchedProblem& a, const Tile& tile) {
  return attention::batched_hopper_bytes(static_cast<int>(a.head_size), tile.keys, tile.stages, tile.row_tiles);
}

bool reads_operands(const Problem& p) { return p.has(op::flash_attention::bias) || p.has(op::flash_attention::mask); }

int row_tiles(const BatchedProblem& a) { return static_cast<int>(div_up(a.queries * a.group(), rows)); }

/// A block has all rows of a head where there are as many heads as blocks that run at once.
Tile tile_of(const Problem& p, const Config& config) {
  const BatchedProblem a(p);
  if (!config.empty()) {
    const auto field = [&](std::string_view name) { return static_cast<int>(config.at(name)); };
    return {field("keys"), field("stages"), field("resident") != 0, field("row_tiles"), field("blocks")};
  }
  const bool narrow = a.head_size == 64;
  const int blocks = narrow ? 3 : 2;
  const std::int64_t of_head =
      std::clamp<std::int64_t>(blocks * p.target->multiprocessors / (a.sequences * a.kv_heads), 1, row_tiles(a));
  int best = 64;  // tiles that leave the fewest keys empty; those of 128 keys leave too few registers for products that
                  // run by themselves
  for (const int keys : {80, 96, 112})
    if (round_up(a.keys, keys) <= round_up(a.keys, best) && (narrow || keys <= 80)) best = keys;
  const std::int64_t count = div_up(a.keys, best);
  const bool resident = count <= 2;
  return {best, resident ? static_cast<int>(count) : 2, resident,
          resident ? static_cast<int>(div_up(row_tiles(a), of_head)) : 1, blocks};
}

std::vector<Config> configs(const Problem& p) {
  const BatchedProblem a(p);
  std::vector<Config> list(1);
  const bool narrow = a.head_size == 64;
  for (const int keys : {64, 80, 96, 112})
    for (const int stages : {1, 2, 3})
      for (const bool resident : {false, true})
        for (const int tiles : row_tiles(a) > 1 ? std::vector{1, row_tiles(a)} : std::vector{1})
          for (const int blocks : {1, 2, 3, 4}) {
            const Tile tile{keys, stages, resident, tiles, blocks};
            const bool holds = resident ? stages <= 2 && a.keys <= stages * keys : stages > 1 && tiles == 1;
            if (!holds || blocks * (shared_bytes(a, tile) + 1024) > p.target->shared_bytes ||
                (!narrow && (keys > 80 || blocks > 2)))
              continue;
            list.push_back(
                {{"keys", keys}, {"stages", stages}, {"resident", resident}, {"row_tiles", tiles}, {"blocks", blocks}});
          }
  return list;
}

Decline declines(const Problem& p) {
  if (!BatchedAttention::is(p)) return attention_batched_file::attention_batched_general.declines(p);
  if (p.target->compute_capability != 90) return "needs compute capability 9.0";
  const BatchedProblem a(p);
  if (a.type != DType::bf16 && a.type != DType::f16)
    return fmt::format("keys of {}; taken: bf16 and f16", name_of(a.type));
  if (a.steps) return "elements of a row of q, k or v are apart";
  if (a.head_size != a.value_size || (a.head_size != 64 && a.head_size != 128))
    return fmt::format("head sizes {} and {}; taken: 64 and 128, the same for both", a.head_size, a.value_size);
  if (shared_bytes(a, tile_of(p, {})) > p.target->shared_bytes) return "tiles do not fit shared memory";
  return attention_batched_file::attention_batched_general.declines(p);
}

double cost(const Problem& p, const Config& config, const DeviceLimits& limits) {
  const BatchedProblem a(p);
  const auto number = [](std::int64_t value) { return static_cast<double>(value); };
  const Tile tile = tile_of(p, config);
  const std::int64_t items = a.sequences * a.kv_heads * div_up(row_tiles(a), tile.row_tiles);
  const double scores = std::max(1.0, number(items) / p.target->multiprocessors) * number(rows * tile.row_tiles) *
                        number(round_up(a.keys, tile.keys));
  const double elements =
      number(a.sequences) * number(a.heads * a.queries + a.kv_heads * a.keys) * number(a.head_size + a.value_size);
  const double cycles = (reads_operands(p) ? 0.3 : 0.2) * std::max(1.0, number(a.head_size + a.value_size) / 128);
  return 7000 / limits.clock_hz +
         std::max(scores * cycles / limits.clock_hz, 2 * elements / limits.read_bytes_per_second);
}

std::vector<Program> programs(const Problem& p, const Config& config) {
  const BatchedProblem a(p);
  const Tile tile = tile_of(p, config);
  const attention::BatchedHopperConfig device_config{.head_size = static_cast<int>(a.head_size),
                                                     .group = static_cast<int>(a.group()),
                                                     .type = a.type,
                                                     .out = a.out,
                                                     .plain = a.plain,
                                                     .keys = tile.keys,
                                                     .stages = tile.stages,
                                                     .resident = tile.resident,
                                                     .row_tiles = tile.row_tiles};
  std::vector<Program> list{
      {.header = "kernel/cuda/device/attention/batched_hopper.cuh",
       .task = fmt::format("cermet::attention::BatchedHopperTask<cermet::attention::BatchedHopperConfig{}, {}>",
                           config_text(device_config), score_config(p)),
       .threads = 128,
       .shared_bytes = shared_bytes(a, tile),
       .min_blocks = tile.blocks,
       .may_spill = tile.blocks > 3,  // 24 bytes at 128 registers; tuning measures them
       .reads_descriptors = true}};
  for (Program& other : as_fallbacks(attention_batched_file::attention_batched_general.programs(p)))
    list.push_back(std::move(other));
  return list;
}

/// The general task where rows are not aligned.
Launcher bind(const Problem& p, const Config& config) {
  return [launch = BatchedLaunch(p), item_rows = std::int64_t{rows} * tile_of(p, config).row_tiles,
          run_general = bind_batched_general(p, 1)](const LaunchArgs& args) {
    const attention::BatchedParams params = launch.params(args, item_rows);
    if (!params.a.aligned) return run_general(args);
    args.queue->run(0, BatchedLaunch::items(args, params), params);
  };
}

}  // namespace

extern const Kernel attention_batched_hopper;
const Kernel attention_batched_hopper{
    .name = "attention.batched_hopper",
    .op = OpKind::flash_attention,
    .summary = "batches of sequences of one length on Hopper's tensor cores: 16-bit operands, with biases and masks",
    .declines = declines,
    .bind = bind,
    .programs = programs,
    .configs = configs,
    .cost = cost,
    .model_error = {.assumes = ModelError::Assumes::longest_context}};

}  // namespace cermet::cuda::attention_batched_hopper_file
