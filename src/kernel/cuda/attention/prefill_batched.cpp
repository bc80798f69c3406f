// Host half of attention over batches of sequences of one length on the tensor cores.
#include "base/checked.hpp"
#include "kernel/cuda/attention/batched.hpp"
#include "kernel/cuda/device/attention/prefill_config.hpp"
#include "kernel/cuda/task.hpp"

namespace cermet::cuda {
namespace {

/// Rows of a warp, and keys of a tile in shared memory.
struct Tile {
  int warp_rows, keys;
  std::int64_t rows() const { return std::int64_t{attention::prefill_warps} * warp_rows; }
};

std::int64_t shared_bytes(const BatchedProblem& a, const Tile& tile) {
  return attention::prefill_shared_bytes(static_cast<int>(a.head_size), static_cast<int>(a.value_size), tile.warp_rows, tile.keys, 1);
}

/// Blocks on an SM whose registers are capped; 1 where the cap would spill.
int min_blocks(const Problem& p, const Tile& tile) {
  const BatchedProblem a(p);
  const bool narrow_bias = !p.has(BatchedAttention::bias) || p.input(BatchedAttention::bias).dtype != DType::f32;
  const bool fits = tile.warp_rows == 16 && a.head_size == 64 && a.value_size == 64 && a.plain && narrow_bias && !p.has(BatchedAttention::mask);
  return fits && p.target->compute_capability >= 90 && 4 * (shared_bytes(a, tile) + 1024) <= p.target->shared_bytes ? 4 : 1;
}

/// Tiles that registers and shared memory hold.
std::vector<Tile> tiles(const Problem& p) {
  const BatchedProblem a(p);
  std::vector<Tile> list;
  for (const int rows : {16, 32})
    for (const int keys : {64, 32})
      if ((rows == 16 || (std::max(a.head_size, a.value_size) <= 64 && !p.has(BatchedAttention::bias) && !p.has(BatchedAttention::mask))) &&
          shared_bytes(a, {rows, keys}) <= p.target->shared_bytes)
        list.push_back({rows, keys});
  return list;
}

Decline declines(const Problem& p) {
  if (!BatchedAttention::is(p)) return attention_batched_general.declines(p);
  const BatchedProblem a(p);
  if (a.type != DType::bf16 && a.type != DType::f16) return fmt::format("keys of {}; taken: bf16 and f16", name_of(a.type));
  if (p.target->compute_capability < (a.type == DType::bf16 ? 80 : 75)) return fmt::format("{} needs compute capability 8.0", name_of(a.type));
  if (a.steps) return "elements of a row of q, k or v are apart";
  if (a.head_size % 8 != 0 || a.value_size % 8 != 0 || a.head_size > 192 || a.value_size > 192)
    return fmt::format("head sizes {} and {}; taken: multiples of 8 up to 192", a.head_size, a.value_size);
  if (tiles(p).empty()) return "tiles of 64 rows and 32 keys do not fit shared memory";
  return attention_batched_general.declines(p);
}

/// Tiles of 128 rows read keys half as often, where every SM has one of them.
Tile tile_of(const Problem& p, const Config& config) {
  if (!config.empty()) return {static_cast<int>(config.at("warp_rows")), static_cast<int>(config.at("keys"))};
  const std::vector<Tile> list = tiles(p);
  const BatchedProblem a(p);
  if (list.back().warp_rows == 16 || a.sequences * a.kv_heads * div_up(a.queries * a.group(), 128) < p.target->multiprocessors) return list.front();
  return *std::ranges::find(list, 32, &Tile::warp_rows);
}

std::vector<Config> configs(const Problem& p) {
  std::vector<Config> list(1);
  for (const Tile& tile : tiles(p)) list.push_back({{"warp_rows", tile.warp_rows}, {"keys", tile.keys}});
  return list;
}

/// Assumed, not measured: 0.5 cycles of an SM for a score, more for wide heads.
double cost(const Problem& p, const Config& config, const DeviceLimits& limits) {
  const BatchedProblem a(p);
  const auto number = [](std::int64_t value) { return static_cast<double>(value); };
  const std::int64_t rows = tile_of(p, config).rows(), items = a.sequences * a.kv_heads * div_up(a.queries * a.group(), rows);
  const double scores = std::max(1.0, number(items) / p.target->multiprocessors) * number(rows) * number(a.keys);
  const double elements = number(a.sequences) * number(a.heads * a.queries + a.kv_heads * a.keys) * number(a.head_size + a.value_size);
  const double cycles = 0.5 * std::max(1.0, number(a.head_size + a.value_size) / 128);
  return 3500 / limits.clock_hz + std::max(scores * cycles / limits.clock_hz, 2 * elements / limits.read_bytes_per_second);
}

std::vector<Program> programs(const Problem& p, const Config& config) {
  const BatchedProblem a(p);
  const Tile tile = tile_of(p, config);
  std::vector<Program> list{
      {.header = "kernel/cuda/device/attention/prefill_batched.cuh",
       .task =
           fmt::format("cermet::attention::BatchedPrefillTask<cermet::attention::PrefillConfig{{.head_size = {}, .value_size = {}, .group = {}, .block = 0, "
                       ".q = {}, .kv = {}, .out = {}, .plain = {}, .warp_rows = {}, .keys = {}}}, {}>",
                       a.head_size, a.value_size, a.group(), device_name(a.type), device_name(a.type), device_name(a.out), device_name(a.plain), tile.warp_rows,
                       tile.keys, score_config(p)),
       .threads = 32 * attention::prefill_warps,
       .shared_bytes = shared_bytes(a, tile),
       .min_blocks = min_blocks(p, tile)}};
  for (Program& other : as_fallbacks(attention_batched_general.programs(p))) list.push_back(std::move(other));
  return list;
}

/// The general task where rows are not aligned.
Launcher bind(const Problem& p, const Config& config) {
  return [launch = BatchedLaunch(p), rows = tile_of(p, config).rows(), run_general = bind_batched_general(p, 1)](const LaunchArgs& args) {
    const attention::BatchedParams params = launch.params(args, rows);
    if (!params.a.aligned) return run_general(args);
    args.queue->run(0, BatchedLaunch::items(args, params), params);
  };
}

}  // namespace

extern const Kernel attention_prefill_batched;
const Kernel attention_prefill_batched{.name = "attention.prefill_batched",
                                       .op = OpKind::flash_attention,
                                       .summary = "batches of sequences of one length on the tensor cores: 16-bit operands, with biases and masks",
                                       .declines = declines,
                                       .bind = bind,
                                       .programs = programs,
                                       .configs = configs,
                                       .cost = cost};

}  // namespace cermet::cuda
