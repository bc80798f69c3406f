// Host half of attention of many queries in 8 bits: queries, keys, weights and values of e4m3, values in columns. Its
// device half is that of 16 bits (device/attention/prefill_tma.cuh).
#include "base/checked.hpp"
#include "format/value_columns.hpp"
#include "kernel/cuda/attention/prefill_maps.hpp"
#include "kernel/cuda/attention/prefill_tma.hpp"
#include "kernel/cuda/config_text.hpp"
#include "kernel/cuda/declare.hpp"
#include "kernel/cuda/narrow.hpp"

namespace cermet::cuda::attention_prefill_f8_file {
namespace {

struct Tile {
  int warpgroups, keys, stages;
  bool overlaps;       ///< whether an item's first scores are made beside the results of the one before
  bool turns = false;  ///< whether warpgroups take turns in issuing products
};

attention::TmaPrefillConfig device_config(const Problem& p, const Tile& tile) {
  const AttentionProblem a(p);
  attention::TmaPrefillConfig c = tma_prefill_config(a);
  c.warpgroups = tile.warpgroups, c.keys = tile.keys, c.stages = tile.stages;
  c.overlaps = tile.overlaps, c.turns = tile.turns;
  c.columns = true, c.token_scales = a.token_scales;
  return c;
}

attention::TmaPrefillConfig device_config(const Problem& p, const Config& config) {
  if (!config.empty())
    return device_config(p, {static_cast<int>(config.at("warpgroups")), static_cast<int>(config.at("keys")),
                             static_cast<int>(config.at("stages")), config.find("overlaps").value_or(1) != 0,
                             config.find("turns").value_or(0) != 0});
  const AttentionProblem a(p);
  const std::int64_t size = std::max(a.head_size, a.value_size);
  Tile tile{2, size > 192 ? 64 : size > 128 ? 96 : 128, 5, true};
  while (tile.stages > 2 && device_config(p, tile).shared_bytes() > p.target->shared_bytes) --tile.stages;
  return device_config(p, tile);
}

/// Registers that results, scores and weights leave for everything else.
bool fits_registers(const attention::TmaPrefillConfig& c) {
  const int others = (c.plain ? 40 : 56) + (c.token_scales ? 8 : 0);
  return c.value_columns() / 2 + c.keys / 2 + c.keys / 8 + others <= c.consumer_registers();
}
bool fits(const attention::TmaPrefillConfig& c, const Target& target) {
  return fits_registers(c) && c.group <= c.rows() && c.shared_bytes() <= target.shared_bytes;
}

Decline declines(const Problem& p) {
  if (p.target->compute_capability != 90) return "needs compute capability 9.0";
  const AttentionProblem a(p);
  if (a.q != DType::f8_e4m3 || a.kv != DType::f8_e4m3)
    return fmt::format("{} queries and {} keys; taken: f8_e4m3", name_of(a.q), name_of(a.kv));
  if (!a.columns) return "values in rows; taken: in columns";
  if (p.attributes.flag("strict")) return "strict weights; taken: weights that are rounded to f8_e4m3";
  if (a.head_size % 16 != 0 || a.head_size < 32 || a.head_size > 256)
    return fmt::format("head size {}; taken: multiples of 16 from 32 to 256", a.head_size);
  const attention::TmaPrefillConfig c = device_config(p, Config());
  if (a.value_size < 32 || a.value_size > 256 || c.value_columns() != a.value_size)
    return fmt::format("values of {}; taken: 32, multiples of 16 to 128, and of 32 to 256", a.value_size);
  if (c.group > c.rows()) return fmt::format("{} heads share keys; a tile has {} rows", c.group, c.rows());
  if (!fits_registers(c) || c.shared_bytes() > p.target->shared_bytes) return "registers or memory hold no tile";
  return attention_general_paged.declines(p);
}

std::vector<Config> configs(const Problem& p) {
  std::vector<Config> list(1);
  for (const Tile& tile :
       {Tile{2, 128, 4, true}, Tile{2, 128, 5, true}, Tile{2, 128, 4, true, true}, Tile{3, 64, 4, true}})
    if (fits(device_config(p, tile), *p.target)) {
      Config& config =
          list.emplace_back(Config{{"warpgroups", tile.warpgroups}, {"keys", tile.keys}, {"stages", tile.stages}});
      if (tile.turns) config.set("turns", 1);
    }
  return list;
}

ConfigSpace space(const Problem& p) {
  ConfigSpace space;
  space.add(ConfigField::set("warpgroups", {2, 3})).add(ConfigField::set("keys", {64, 96, 128}));
  space.add(ConfigField::range("stages", 2, 6)).add(ConfigField::range("overlaps", 0, 1).with_usual(1));
  space.add(ConfigField::range("turns", 0, 1).with_usual(0));
  const auto config = [p](const Config& c) { return device_config(p, c); };
  space.constrain("registers hold results, scores and weights of a tile",
                  [config](const Config& c) { return fits_registers(config(c)); });
  space.constrain("the heads that share keys fit a tile's rows",
                  [config](const Config& c) { return config(c).group <= config(c).rows(); });
  space.constrain("queries and stages fit shared memory",
                  [config, p](const Config& c) { return config(c).shared_bytes() <= p.target->shared_bytes; });
  return space;
}

/// Tensor cores, or what computes exponentials where heads are short, are half busy, and less where scores and weights
/// are multiplied with scales; for each item, waits for its queries, its first scores and its last values.
double cost(const Problem& p, const Config& config, const DeviceLimits& limits) {
  constexpr double flop_per_cycle = 8192, exponentials_per_cycle = 16, item_cycles = 6000;
  const double busy = AttentionProblem(p).token_scales ? 0.38 : 0.5;
  const attention::TmaPrefillConfig c = device_config(p, config);
  const int rows = c.tokens() * c.group;
  const auto flop = static_cast<double>(2 * (round_up(c.head_size, 32) + c.value_size));
  const double cycles = std::max(flop / flop_per_cycle, 1 / exponentials_per_cycle) / busy;
  const double unused = static_cast<double>(c.rows()) / rows;
  const auto items = static_cast<double>(div_up(attention_tiles(p, rows).count, p.target->multiprocessors));
  return attention_seconds(p, rows, cycles * unused, limits) + items * item_cycles / limits.clock_hz;
}

std::vector<Program> programs(const Problem& p, const Config& config) {
  const attention::TmaPrefillConfig c = device_config(p, config);
  return tma_prefill_programs(p, c, true);  // spills 8 bytes, read once an item
}

/// Whether pages hold columns as tiles do.
bool copies_columns(const attention::TmaPrefillConfig& c, const attention::KeyList& v) {
  constexpr int column = format::value_column;
  return v.column_stride == column && (v.row_stride == column * c.value_size || c.block == column);
}

Launcher bind(const Problem& problem, const Config& config) {
  return [launch = AttentionLaunch(problem), c = device_config(problem, config),
          run_general = bind_general_attention(problem, 1)](const LaunchArgs& args) {
    attention::TmaPrefillParams params{};
    params.a = launch.params(args);
    params.tiles = narrow(AttentionLaunch::most_tiles(params.a, 1, c.tokens()), "attention", "tiles");
    if (params.tiles == 0) return;
    if (!params.a.aligned || !copies_columns(c, params.a.v) || !set_prefill_maps(args.queue->device(), c, params))
      return run_general(args, 0);
    constexpr double log2_e = 1.4426950408889634;
    params.scale_log2 = static_cast<float>(params.a.scale * log2_e);
    args.queue->run(0, std::int64_t{params.tiles} * params.a.kv_heads, params, args.queue->resident_blocks(0));
    declare_operands(args);
  };
}

}  // namespace

extern const Kernel attention_prefill_paged_f8;
const Kernel attention_prefill_paged_f8{
    .name = "attention.prefill_paged_f8",
    .op = OpKind::incre_flash_attention,
    .summary = "many queries of e4m3 on Hopper's tensor cores, with weights of e4m3 and values in columns",
    .declines = declines,
    .bind = bind,
    .programs = programs,
    .configs = configs,
    .space = space,
    .cost = cost,
    .model_error = {.assumes = ModelError::Assumes::longest_context}};

}  // namespace cermet::cuda::attention_prefill_f8_file
