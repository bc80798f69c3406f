// Host half of attention of many queries with bulk tensor copies.
#include "kernel/cuda/attention/prefill_tma.hpp"

#include "base/checked.hpp"
#include "kernel/cuda/attention/prefill_maps.hpp"
#include "kernel/cuda/config_text.hpp"
#include "kernel/cuda/declare.hpp"
#include "kernel/cuda/device/attention/prefill_tma.hpp"
#include "kernel/cuda/narrow.hpp"

namespace cermet::cuda::attention_prefill_tma_file {
namespace {

struct Tile {
  int warpgroups, keys, stages;
  bool overlaps = false;  ///< whether an item's first scores are made beside the results of the one before
};

/// What was measured to be fastest for the size of a head (device/attention/prefill_tma.cuh). Weights in two parts, and
/// scores that operands change, need registers.
Tile usual_tile(const AttentionProblem& a, bool strict) {
  const std::int64_t size = std::max(a.head_size, a.value_size);
  const std::int64_t rows = div_up(a.tokens, std::max<std::int64_t>(1, a.sequences)) * a.group();
  if (size > 192) return {2, strict ? 48 : 64, 2};
  if (size > 128) return {2, 96, 2};
  if (strict || !a.plain) return {2, 128, size > 64 ? 2 : 4, true};
  if (size > 112) return rows <= 1024 ? Tile{2, 128, 2} : Tile{3, 80, 3, true};
  if (size > 64) return {3, size > 96 ? 80 : size == 80 ? 112 : 96, 2, true};  // 112 keys spill at 72
  return a.keys <= 2048 ? Tile{3, 96, 4, true} : Tile{3, 112, 4};
}

attention::TmaPrefillConfig device_config(const Problem& p, const Tile& tile) {
  attention::TmaPrefillConfig c = tma_prefill_config(AttentionProblem(p));
  c.warpgroups = tile.warpgroups, c.keys = tile.keys, c.stages = tile.stages;
  c.overlaps = tile.overlaps, c.turns = tile.warpgroups >= 3;
  c.parts = p.attributes.flag("strict") ? 2 : 1;
  return c;
}

Tile tile_of(const Problem& p, const Config& config) {
  if (config.empty()) return usual_tile(AttentionProblem(p), p.attributes.flag("strict"));
  return {static_cast<int>(config.at("warpgroups")), static_cast<int>(config.at("keys")),
          static_cast<int>(config.at("stages")), config.find("overlaps").value_or(0) != 0};
}
attention::TmaPrefillConfig device_config(const Problem& p, const Config& config) {
  return device_config(p, tile_of(p, config));
}

/// Registers that results, scores and weights leave for everything else.
bool fits_registers(const attention::TmaPrefillConfig& c) {
  const int others = c.plain ? 36 : 52;  // what the assembler needs, as compiled
  return c.value_columns() / 2 + c.keys / 2 + c.parts * c.keys / 4 + others <= c.consumer_registers();
}
/// Copies bring whole groups of 8 rows, which is how far the swizzle reaches.
bool divides_pages(const attention::TmaPrefillConfig& c) { return c.box_rows() % 8 == 0; }
bool fits(const attention::TmaPrefillConfig& c, const Target& target) {
  return fits_registers(c) && divides_pages(c) && c.group <= c.rows() && c.shared_bytes() <= target.shared_bytes;
}

Decline declines(const Problem& p) {
  if (p.target->compute_capability != 90) return "needs compute capability 9.0";
  if (p.input(0).rank() == 4) return attention_general_ragged.declines(p);
  const AttentionProblem a(p);
  if (a.kv != DType::bf16 && a.kv != DType::f16) return fmt::format("keys of {}; taken: bf16 and f16", name_of(a.kv));
  if (a.q != a.kv) return fmt::format("{} queries and {} keys; taken: one type", name_of(a.q), name_of(a.kv));
  constexpr std::int64_t least = 32, most = 256;
  const auto takes = [](std::int64_t size) { return size % 8 == 0 && size >= least && size <= most; };
  if (!takes(a.head_size) || !takes(a.value_size))
    return fmt::format("head sizes {} and {}; taken: multiples of 8 from {} to {}", a.head_size, a.value_size, least,
                       most);
  const attention::TmaPrefillConfig c = device_config(p, Config());
  if (c.group > c.rows()) return fmt::format("{} heads share keys; a tile has {} rows", c.group, c.rows());
  if (!divides_pages(c)) return fmt::format("copies of 8 keys do not divide pages of {}", a.block);
  if (c.shared_bytes() > p.target->shared_bytes) return fmt::format("tiles of {} bytes do not fit", c.shared_bytes());
  return a.paged ? attention_general_paged.declines(p) : attention_general_ragged.declines(p);
}

Config config_of(const Tile& tile) {
  return {{"warpgroups", tile.warpgroups}, {"keys", tile.keys}, {"stages", tile.stages}};
}

std::vector<Config> configs(const Problem& p) {
  std::vector<Config> list(1);
  for (const Tile& tile : {Tile{3, 80, 3}, Tile{2, 128, 2}, Tile{3, 112, 4}, Tile{3, 96, 4}, Tile{2, 96, 2}})
    if (fits(device_config(p, tile), *p.target)) list.push_back(config_of(tile));
  return list;
}

ConfigSpace space(const Problem& p) {
  ConfigSpace space;
  space.add(ConfigField::set("warpgroups", {2, 3})).add(ConfigField::set("keys", {48, 64, 80, 96, 112, 128}));
  space.add(ConfigField::range("stages", 2, 5));
  space.add(ConfigField::range("overlaps", 0, 1).with_usual(0));
  const auto config = [p](const Config& c) { return device_config(p, c); };
  space.constrain("registers hold results, scores and weights of a tile",
                  [config](const Config& c) { return fits_registers(config(c)); });
  space.constrain("copies of 8 keys and more divide tiles and pages",
                  [config](const Config& c) { return divides_pages(config(c)); });
  space.constrain("the heads that share keys fit a tile's rows",
                  [config](const Config& c) { return config(c).group <= config(c).rows(); });
  space.constrain("queries and stages fit shared memory",
                  [config, p](const Config& c) { return config(c).shared_bytes() <= p.target->shared_bytes; });
  return space;
}

/// Share of the tensor cores' peak at 1.98 GHz that tiles reach: measured on an H100, which power slows down.
double busy(const attention::TmaPrefillConfig& c) {
  const int size = std::max(c.head_size, c.value_size);
  if (size > 128 || c.parts == 2) return 0.68;
  if (size > 112) return c.warpgroups == 3 ? 0.73 : 0.62;
  return size > 64 ? 0.6 : 0.65;
}

/// As long as the model of the other tasks says, with the tensor cores' cycles for a score; and for each item, waits
/// for its queries, its first scores and its last values.
double cost(const Problem& p, const Config& config, const DeviceLimits& limits) {
  constexpr double flop_per_cycle = 4096, item_cycles = 8000;
  const attention::TmaPrefillConfig c = device_config(p, config);
  const int rows = c.tokens() * c.group;
  const auto flop = static_cast<double>(2 * (round_up(c.head_size, 16) + c.parts * c.value_columns()));
  const double unused = static_cast<double>(c.rows()) / rows;
  const auto items = static_cast<double>(div_up(attention_tiles(p, rows).count, p.target->multiprocessors));
  return attention_seconds(p, rows, flop / flop_per_cycle / busy(c) * unused, limits) +
         items * item_cycles / limits.clock_hz;
}

std::vector<Program> programs(const Problem& p, const Config& config) {
  const attention::TmaPrefillConfig c = device_config(p, config);
  const bool may_spill = std::max(c.head_size, c.value_size) > 192;  // 4 bytes, with which it was measured
  return tma_prefill_programs(p, c, may_spill);
}

QueriesLauncher bind_from(const Problem& problem, const Config& config, std::size_t first) {
  return [launch = AttentionLaunch(problem), c = device_config(problem, config), first,
          run_general = bind_general_attention(problem, first + 1)](const LaunchArgs& args,
                                                                    std::int32_t least_queries) {
    attention::TmaPrefillParams params{};
    params.a = launch.params(args, least_queries);
    params.tiles = narrow(AttentionLaunch::most_tiles(params.a, 1, c.tokens()), "attention", "tiles");
    if (params.tiles == 0) return;
    if (!params.a.aligned || !set_prefill_maps(args.queue->device(), c, params))
      return run_general(args, least_queries);
    constexpr double log2_e = 1.4426950408889634;
    params.scale_log2 = static_cast<float>(params.a.scale * log2_e);
    args.queue->run(first, std::int64_t{params.tiles} * params.a.kv_heads, params, args.queue->resident_blocks(first));
    declare_operands(args);
  };
}

Launcher bind(const Problem& p, const Config& config) {
  return [run = bind_from(p, config, 0)](const LaunchArgs& args) { run(args, 0); };
}

Kernel kernel(const char* name, OpKind op) {
  return {.name = name,
          .op = op,
          .summary =
              "many queries on Hopper's tensor cores: a warp copies by TMA, warpgroups take turns in multiplying, "
              "and weights are made without maxima",
          .declines = declines,
          .bind = bind,
          .programs = programs,
          .configs = configs,
          .space = space,
          .cost = cost,
          .model_error = {.assumes = ModelError::Assumes::longest_context}};
}

}  // namespace

extern const Kernel attention_prefill_paged_tma, attention_prefill_ragged_tma;
const Kernel attention_prefill_paged_tma = kernel("attention.prefill_paged_tma", OpKind::incre_flash_attention);
const Kernel attention_prefill_ragged_tma = kernel("attention.prefill_ragged_tma", OpKind::flash_attention);

}  // namespace cermet::cuda::attention_prefill_tma_file

namespace cermet::cuda {

Decline tma_prefill_declines(const Problem& p) { return attention_prefill_tma_file::declines(p); }
std::vector<Program> tma_prefill_programs(const Problem& p, const Config& config) {
  return attention_prefill_tma_file::programs(p, config);
}
QueriesLauncher bind_tma_prefill(const Problem& p, const Config& config, std::size_t first) {
  return attention_prefill_tma_file::bind_from(p, config, first);
}
double tma_prefill_seconds(const Problem& p, const Config& config, const DeviceLimits& limits) {
  return attention_prefill_tma_file::cost(p, config, limits);
}

attention::TmaPrefillConfig tma_prefill_config(const AttentionProblem& a) {
  attention::TmaPrefillConfig c{};
  c.head_size = static_cast<int>(a.head_size), c.value_size = static_cast<int>(a.value_size);
  c.group = static_cast<int>(a.group()), c.block = static_cast<int>(a.block);
  c.kv = a.kv, c.out = a.out, c.plain = a.plain;
  c.query_buffers = std::max(a.head_size, a.value_size) > 128 ? 1 : 2;
  c.parts = 1;
  return c;
}

std::vector<Program> tma_prefill_programs(const Problem& p, const attention::TmaPrefillConfig& c, bool may_spill) {
  std::vector<Program> list{
      {.header = "kernel/cuda/device/attention/prefill_tma.cuh",
       .task = fmt::format("cermet::attention::TmaPrefillTask<cermet::attention::TmaPrefillConfig{}>", config_text(c)),
       .threads = c.threads(),
       .shared_bytes = c.shared_bytes(),
       .may_spill = may_spill,
       .divides_warps = true,
       .reads_descriptors = true}};
  const Kernel& general = AttentionProblem(p).paged ? attention_general_paged : attention_general_ragged;
  for (Program& other : as_fallbacks(general.programs(p))) list.push_back(std::move(other));
  return list;
}

}  // namespace cermet::cuda
