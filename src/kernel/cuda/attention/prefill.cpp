// Host half of attention of many queries on the tensor cores, and the general task for launches that it does not fit.
#include "base/checked.hpp"
#include "kernel/cuda/attention/prefill_shape.hpp"
#include "kernel/cuda/attention/prefill_tma.hpp"
#include "kernel/cuda/attention/prefill_wide.hpp"
#include "kernel/cuda/config_text.hpp"
#include "kernel/cuda/declare.hpp"
#include "kernel/cuda/device/attention/prefill_hopper.hpp"
#include "kernel/cuda/narrow.hpp"
#include "kernel/cuda/task.hpp"

namespace cermet::cuda::attention_prefill_file {
namespace {

Decline hopper_declines(const Problem& p) {
  if (p.target->compute_capability != 90) return "needs compute capability 9.0";
  if (Decline reason = prefill_tile_declines(p)) return reason;
  const AttentionProblem a(p);
  if (a.kv != DType::bf16 && a.kv != DType::f16) return fmt::format("keys of {}; taken: bf16 and f16", name_of(a.kv));
  if (a.head_size % 64 != 0 || a.value_size % 64 != 0 || a.head_size > 128 || a.value_size > 128)  // registers
    return fmt::format("head sizes {} and {}; taken: 64 and 128", a.head_size, a.value_size);
  return std::nullopt;
}

/// Warpgroups of 64 rows: two share keys, one has less to do where every block would have an SM of its own.
int hopper_warpgroups(const Problem& p, const Config& config) {
  if (!config.empty()) return static_cast<int>(config.at("warpgroups"));
  const AttentionProblem a(p);
  return div_up(a.tokens * a.group(), 128) * a.kv_heads <= p.target->multiprocessors ? 1 : 2;
}

std::vector<Config> hopper_configs(const Problem& p) {
  const AttentionProblem a(p);
  std::vector<Config> list(1);
  for (const int warpgroups : {2, 1})
    if (attention::hopper_prefill_bytes(static_cast<int>(a.head_size), static_cast<int>(a.value_size), warpgroups,
                                        a.q == a.kv ? 1 : 2) <= p.target->shared_bytes)
      list.push_back({{"warpgroups", warpgroups}});
  return list;
}

ConfigSpace hopper_space(const Problem& p) { return ConfigSpace::listing(hopper_configs(p)); }

constexpr double hopper_cycles = 0.38;  ///< of an SM for a score, measured on an H200, whatever the head size

double hopper_cost(const Problem& p, const Config& config, const DeviceLimits& limits) {
  return attention_seconds(p, 64 * hopper_warpgroups(p, config), hopper_cycles, limits);
}

Program tile_program(const PrefillShape& s) {
  return {
      .header = "kernel/cuda/device/attention/prefill.cuh",
      .task = fmt::format("cermet::attention::PrefillTask<cermet::attention::PrefillConfig{}>", config_text(s.tile)),
      .threads = 32 * s.tile.warps(),
      .shared_bytes = s.tile.shared_bytes(),
      .min_blocks = s.blocks,
      .may_spill = s.blocks > 1 || s.a.value_size >= 256};  // up to 52 bytes, with which it was measured
}

Program hopper_program(const Problem& p, const Config& config) {
  const AttentionProblem a(p);
  const int warpgroups = hopper_warpgroups(p, config);
  const attention::HopperPrefillConfig device_config{.head_size = static_cast<int>(a.head_size),
                                                     .value_size = static_cast<int>(a.value_size),
                                                     .group = static_cast<int>(a.group()),
                                                     .block = static_cast<int>(a.block),
                                                     .q = a.q,
                                                     .kv = a.kv,
                                                     .out = a.out,
                                                     .plain = a.plain,
                                                     .warpgroups = warpgroups};
  return {.header = "kernel/cuda/device/attention/prefill_hopper.cuh",
          .task = fmt::format("cermet::attention::HopperPrefillTask<cermet::attention::HopperPrefillConfig{}>",
                              config_text(device_config)),
          .threads = 128 * warpgroups,
          .shared_bytes = attention::hopper_prefill_bytes(static_cast<int>(a.head_size), static_cast<int>(a.value_size),
                                                          warpgroups, a.q == a.kv ? 1 : 2),
          .reads_descriptors = true};
}

/// The programs, and the general task's for rows that are not aligned.
std::vector<Program> with_general(std::vector<Program> list, const Problem& p) {
  const Kernel& general = AttentionProblem(p).paged ? attention_general_paged : attention_general_ragged;
  for (Program& other : as_fallbacks(general.programs(p))) list.push_back(std::move(other));
  return list;
}

/// Row tiles of a program, and whether it is for values that are the first columns of the keys.
struct RowTiles {
  std::int64_t rows;
  bool values_in_keys = false;
};

/// Launches the last of the programs `first` on that suits the values; the general task follows them.
QueriesLauncher bind_tiles(const Problem& p, std::size_t first, const std::vector<RowTiles>& programs) {
  return [launch = AttentionLaunch(p), group = AttentionProblem(p).group(), first, programs,
          run_general = bind_general_attention(p, first + programs.size())](const LaunchArgs& args,
                                                                            std::int32_t least_queries) {
    attention::PrefillParams params{launch.params(args, least_queries), 0, 0};
    std::size_t which = programs.size();
    while (which > 0 && programs[which - 1].values_in_keys && !has_values_in_keys(params.a)) --which;
    if (!params.a.aligned || which == 0) return run_general(args, least_queries);
    constexpr double log2_e = 1.4426950408889634;
    params.scale_log2 = static_cast<float>(params.a.scale * log2_e);
    params.tiles = narrow(AttentionLaunch::most_tiles(params.a, group, programs[which - 1].rows), "attention", "tiles");
    args.queue->run(first + which - 1, std::int64_t{params.tiles} * params.a.kv_heads, params);
    if (params.tiles > 0) declare_operands(args);
  };
}
QueriesLauncher bind_shapes(const Problem& p, std::size_t first, const Config& config) {
  std::vector<RowTiles> programs;
  for (const PrefillShape& shape : prefill_shapes(p, config))
    programs.push_back({shape.rows(), shape.tile.values_in_keys});
  return bind_tiles(p, first, programs);
}

Launcher for_all_sequences(QueriesLauncher run) {
  return [run = std::move(run)](const LaunchArgs& args) { run(args, 0); };
}
Launcher bind_prefill_tile(const Problem& p, const Config& config) {
  return for_all_sequences(bind_shapes(p, 0, config));
}
Launcher bind_hopper(const Problem& p, const Config& config) {
  return for_all_sequences(bind_tiles(p, 0, {{64 * hopper_warpgroups(p, config)}}));
}
std::vector<Program> prefill_tile_programs(const Problem& p, const Config& config) {
  std::vector<Program> list;
  for (const PrefillShape& shape : prefill_shapes(p, config)) list.push_back(tile_program(shape));
  return with_general(std::move(list), p);
}
std::vector<Program> hopper_programs(const Problem& p, const Config& config) {
  return with_general({hopper_program(p, config)}, p);
}

}  // namespace

#define KERNEL(variable, text, operator, description, prefix)                                                   \
  extern const Kernel variable;                                                                                 \
  const Kernel variable {                                                                                       \
    .name = text, .op = operator, .summary = description, .declines = prefix##_declines, .bind = bind_##prefix, \
    .programs = prefix##_programs, .configs = prefix##_configs, .space = prefix##_space, .cost = prefix##_cost, \
    .model_error = {                                                                                            \
      .assumes = ModelError::Assumes::longest_context                                                           \
    }                                                                                                           \
  }
constexpr const char* const tile_summary =
    "many queries on the tensor cores: a tile of rows against tiles of keys and values of 16 or 8 bits";
constexpr const char* const hopper_summary =
    "many queries on Hopper's tensor cores: scores of the next tile are made while values are multiplied";
KERNEL(attention_prefill_paged_hopper, "attention.prefill_paged_hopper", OpKind::incre_flash_attention, hopper_summary,
       hopper);
KERNEL(attention_prefill_ragged_hopper, "attention.prefill_ragged_hopper", OpKind::flash_attention, hopper_summary,
       hopper);
KERNEL(attention_prefill_paged, "attention.prefill_paged", OpKind::incre_flash_attention, tile_summary, prefill_tile);
KERNEL(attention_prefill_ragged, "attention.prefill_ragged", OpKind::flash_attention, tile_summary, prefill_tile);
#undef KERNEL

}  // namespace cermet::cuda::attention_prefill_file

namespace cermet::cuda {

std::vector<Program> many_query_programs(const Problem& p) {
  using namespace attention_prefill_file;
  if (!tma_prefill_declines(p)) return tma_prefill_programs(p, {});
  if (!wide_prefill_declines(p)) return wide_prefill_programs(p, {});
  if (!hopper_declines(p)) return hopper_programs(p, {});
  if (!prefill_tile_declines(p)) return prefill_tile_programs(p, {});
  return attention_general_paged.programs(p);
}

double many_query_seconds(const Problem& p, const DeviceLimits& limits) {
  using namespace attention_prefill_file;
  if (!tma_prefill_declines(p)) return tma_prefill_seconds(p, {}, limits);
  if (!wide_prefill_declines(p)) return wide_prefill_seconds(p, {}, limits);
  if (!hopper_declines(p)) return hopper_cost(p, {}, limits);
  if (!prefill_tile_declines(p)) return prefill_tile_cost(p, {}, limits);
  return attention_general_paged.cost(p, limits);
}

QueriesLauncher bind_many_queries(const Problem& p, std::size_t first) {
  using namespace attention_prefill_file;
  if (!tma_prefill_declines(p)) return bind_tma_prefill(p, {}, first);
  if (!wide_prefill_declines(p)) return bind_wide_prefill(p, first);
  if (!hopper_declines(p)) return bind_tiles(p, first, {{64 * hopper_warpgroups(p, {})}});
  if (!prefill_tile_declines(p)) return bind_shapes(p, first, {});
  return bind_general_attention(p, first);
}

}  // namespace cermet::cuda
