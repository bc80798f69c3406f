// Host half of attention over batches of sequences of one length on the tensor cores.
#include "base/checked.hpp"
#include "kernel/cuda/attention/batched.hpp"
#include "kernel/cuda/config_text.hpp"
#include "kernel/cuda/device/attention/prefill_config.hpp"
#include "kernel/cuda/task.hpp"
#include "op/operands.hpp"

namespace cermet::cuda::attention_prefill_batched_file {
namespace {

/// Rows of a warp; keys of a tile in shared memory, and tiles there; keys that a warp takes at a time.
struct Tile {
  static constexpr int warps = 4;
  int warp_rows, keys, stages, step;
  std::int64_t rows() const { return std::int64_t{warps} * warp_rows; }
};

attention::PrefillConfig device_config(const BatchedProblem& a, const Tile& tile) {
  return {.head_size = static_cast<int>(a.head_size),
          .value_size = static_cast<int>(a.value_size),
          .group = static_cast<int>(a.group()),
          .block = 0,
          .q = a.type,
          .kv = a.type,
          .out = a.out,
          .tile = a.type,
          .plain = a.plain,
          .token_scales = false,
          .values_in_keys = false,
          .warp_rows = tile.warp_rows,
          .keys = tile.keys,
          .stages = tile.stages,
          .step = tile.step};
}
std::int64_t shared_bytes(const BatchedProblem& a, const Tile& tile) { return device_config(a, tile).shared_bytes(); }

/// Blocks on an SM whose registers are capped; 1 where the cap would spill.
int min_blocks(const Problem& p, const Tile& tile) {
  const BatchedProblem a(p);
  const bool has_bias = p.has(op::flash_attention::bias),
             narrow_bias = !has_bias || p.input(op::flash_attention::bias).dtype != DType::f32;
  const bool fits = tile.warp_rows == 16 && tile.step == 32 && tile.keys == 32 && a.head_size == 64 &&
                    a.value_size == 64 && a.plain && narrow_bias && !p.has(op::flash_attention::mask);
  const int blocks = has_bias ? 3 : 4;
  return fits && p.target->compute_capability >= 90 && blocks * (shared_bytes(a, tile) + 1024) <= p.target->shared_bytes
             ? blocks
             : 1;
}

/// Tiles that registers and shared memory hold.
std::vector<Tile> tiles(const Problem& p) {
  const BatchedProblem a(p);
  const bool plain = !p.has(op::flash_attention::bias) && !p.has(op::flash_attention::mask);
  std::vector<Tile> list;
  const bool narrow = std::max(a.head_size, a.value_size) <= 64;
  for (const Tile& tile : {Tile{16, 32, 4, 32}, Tile{16, 64, 2, 64}, Tile{32, 64, 2, 64}, Tile{16, 32, 2, 32}}) {
    const bool has_registers = (tile.warp_rows == 16 || plain) && (tile.step == 32 || narrow);
    if (has_registers && shared_bytes(a, tile) <= p.target->shared_bytes) list.push_back(tile);
  }
  return list;
}

Decline declines(const Problem& p) {
  if (!BatchedAttention::is(p)) return attention_batched_file::attention_batched_general.declines(p);
  const BatchedProblem a(p);
  if (a.type != DType::bf16 && a.type != DType::f16)
    return fmt::format("keys of {}; taken: bf16 and f16", name_of(a.type));
  if (p.target->compute_capability < (a.type == DType::bf16 ? 80 : 75))
    return fmt::format("{} needs compute capability 8.0", name_of(a.type));
  if (a.steps) return "elements of a row of q, k or v are apart";
  if (a.head_size % 8 != 0 || a.value_size % 8 != 0 || a.head_size > 192 || a.value_size > 192)
    return fmt::format("head sizes {} and {}; taken: multiples of 8 up to 192", a.head_size, a.value_size);
  if (tiles(p).empty()) return "tiles of 64 rows and 32 keys do not fit shared memory";
  return attention_batched_file::attention_batched_general.declines(p);
}

/// Measured on an H200: wide tiles take 15 % less time with 512 keys and 5 % more with 197.
Tile tile_of(const Problem& p, const Config& config) {
  if (!config.empty()) {
    const auto field = [&](std::string_view name) { return static_cast<int>(config.at(name)); };
    return {field("warp_rows"), field("keys"), field("stages"), field("step")};
  }
  const std::vector<Tile> list = tiles(p);
  const auto wide = std::ranges::find(list, 32, &Tile::warp_rows);
  if (wide == list.end()) return list.front();
  const BatchedProblem a(p);
  const bool fills =
      a.sequences * a.kv_heads * div_up(a.queries * a.group(), wide->rows()) >= 2 * p.target->multiprocessors;
  return fills && a.keys >= 384 ? *wide : list.front();
}

std::vector<Config> configs(const Problem& p) {
  std::vector<Config> list(1);
  for (const Tile& tile : tiles(p))
    list.push_back({{"warp_rows", tile.warp_rows}, {"keys", tile.keys}, {"stages", tile.stages}, {"step", tile.step}});
  return list;
}

/// On an H200 0.4 cycles of an SM for a score of heads of 64, half as many again where operands change it; wider heads
/// are assumed to take longer in proportion.
double cost(const Problem& p, const Config& config, const DeviceLimits& limits) {
  const BatchedProblem a(p);
  const auto number = [](std::int64_t value) { return static_cast<double>(value); };
  const std::int64_t rows = tile_of(p, config).rows(),
                     items = a.sequences * a.kv_heads * div_up(a.queries * a.group(), rows);
  const double scores = std::max(1.0, number(items) / p.target->multiprocessors) * number(rows) * number(a.keys);
  const double elements =
      number(a.sequences) * number(a.heads * a.queries + a.kv_heads * a.keys) * number(a.head_size + a.value_size);
  const bool changes = p.has(op::flash_attention::bias) || p.has(op::flash_attention::mask);
  const double cycles = (changes ? 0.6 : 0.4) * std::max(1.0, number(a.head_size + a.value_size) / 128);
  return 8000 / limits.clock_hz +
         std::max(scores * cycles / limits.clock_hz, 2 * elements / limits.read_bytes_per_second);
}

std::vector<Program> programs(const Problem& p, const Config& config) {
  const BatchedProblem a(p);
  const Tile tile = tile_of(p, config);
  std::vector<Program> list{
      {.header = "kernel/cuda/device/attention/prefill_batched.cuh",
       .task = fmt::format("cermet::attention::BatchedPrefillTask<cermet::attention::PrefillConfig{}, {}>",
                           config_text(device_config(a, tile)), score_config(p)),
       .threads = 32 * Tile::warps,
       .shared_bytes = shared_bytes(a, tile),
       .min_blocks = min_blocks(p, tile)}};
  for (Program& other : as_fallbacks(attention_batched_file::attention_batched_general.programs(p)))
    list.push_back(std::move(other));
  return list;
}

/// The general task where rows are not aligned.
Launcher bind(const Problem& p, const Config& config) {
  return [launch = BatchedLaunch(p), rows = tile_of(p, config).rows(),
          run_general = bind_batched_general(p, 1)](const LaunchArgs& args) {
    const attention::BatchedParams params = launch.params(args, rows);
    if (!params.a.aligned) return run_general(args);
    args.queue->run(0, BatchedLaunch::items(args, params), params);
  };
}

}  // namespace

extern const Kernel attention_prefill_batched;
const Kernel attention_prefill_batched{
    .name = "attention.prefill_batched",
    .op = OpKind::flash_attention,
    .summary = "batches of sequences of one length on the tensor cores: 16-bit operands, with biases and masks",
    .declines = declines,
    .bind = bind,
    .programs = programs,
    .configs = configs,
    .cost = cost,
    .model_error = {.assumes = ModelError::Assumes::longest_context}};

}  // namespace cermet::cuda::attention_prefill_batched_file
