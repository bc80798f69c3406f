// Host half of attention of many queries on the tensor cores, and the general task for launches that it does not fit.
#include "base/checked.hpp"
#include "kernel/cuda/attention/prefill_tma.hpp"
#include "kernel/cuda/config_text.hpp"
#include "kernel/cuda/declare.hpp"
#include "kernel/cuda/device/attention/prefill_hopper.hpp"
#include "kernel/cuda/narrow.hpp"
#include "kernel/cuda/task.hpp"

namespace cermet::cuda::attention_prefill_file {
namespace {

/// What is compiled for a problem.
struct PrefillShape {
  static constexpr int usual_stages = 2;
  AttentionProblem a;
  int warp_rows = 0, keys = 0;  ///< 0 where nothing fits
  int stages = usual_stages;

  explicit PrefillShape(const Problem& p, const Config& config = {}) : a(p) {
    if (!config.empty()) {
      warp_rows = static_cast<int>(config.at("warp_rows"));
      keys = static_cast<int>(config.at("keys"));
      stages = static_cast<int>(config.find("stages").value_or(usual_stages));
      return;
    }
    // Large tiles reuse keys best; two thread blocks per SM hide each other's waits.
    const std::int64_t share = (p.target->shared_bytes + 1024) / 2 - 1024;
    for (const std::int64_t room : {share, p.target->shared_bytes})
      for (const int candidate_rows : {32, 16})
        for (const int candidate_keys : {64, 32}) {
          if (candidate_rows == 32 && (std::max(a.head_size, a.value_size) > 64 || a.tokens * a.group() <= 64))
            continue;  // registers; rows that there are
          if (keys != 0 || bytes(candidate_rows, candidate_keys) > room) continue;
          warp_rows = candidate_rows;
          keys = candidate_keys;
        }
  }
  std::int64_t bytes(int with_rows, int with_keys) const {
    return attention::prefill_shared_bytes(static_cast<int>(a.head_size), static_cast<int>(a.value_size), with_rows,
                                           with_keys, stages, a.q == a.kv ? 1 : 2);
  }
  std::int64_t rows() const { return std::int64_t{attention::prefill_warps} * warp_rows; }
};

/// What every task here needs of a problem with head sizes that are multiples of `step` up to `most`.
Decline declines(const Problem& p, std::int64_t step, std::int64_t most) {
  if (p.input(0).rank() == 4) return attention_general_ragged.declines(p);
  const AttentionProblem a(p);
  if (a.kv != DType::bf16 && a.kv != DType::f16) return fmt::format("keys of {}; taken: bf16 and f16", name_of(a.kv));
  if (p.target->compute_capability < (a.kv == DType::bf16 ? 80 : 75))
    return fmt::format("{} needs compute capability 8.0", name_of(a.kv));
  if (a.kv == DType::f16 && a.q != DType::f16)
    return fmt::format("{} queries may not fit the f16 of the keys", name_of(a.q));
  if (a.head_size % step != 0 || a.value_size % step != 0 || a.head_size > most || a.value_size > most)
    return fmt::format("head sizes {} and {}; taken: multiples of {} up to {}", a.head_size, a.value_size, step, most);
  return a.paged ? attention_general_paged.declines(p) : attention_general_ragged.declines(p);
}

Decline tile_declines(const Problem& p) {
  if (Decline reason = declines(p, 8, 192)) return reason;  // registers hold the outputs of 16 rows
  if (PrefillShape(p).keys == 0) return "tiles of 64 rows and 32 keys do not fit shared memory";
  return std::nullopt;
}

Decline hopper_declines(const Problem& p) {
  if (p.target->compute_capability != 90) return "needs compute capability 9.0";
  return declines(p, 64, 128);  // swizzled rows of 128 bytes; registers
}

/// Warpgroups of 64 rows: two share keys, one has less to do where every block would have an SM of its own.
int hopper_warpgroups(const Problem& p, const Config& config) {
  if (!config.empty()) return static_cast<int>(config.at("warpgroups"));
  const AttentionProblem a(p);
  return div_up(a.tokens * a.group(), 128) * a.kv_heads <= p.target->multiprocessors ? 1 : 2;
}

/// Rows of a warp that registers hold, with the tiles of keys that shared memory does.
std::vector<Config> tile_configs(const Problem& p) {
  const PrefillShape own(p);
  std::vector<Config> list(1);
  for (const int rows : {32, 16})
    for (const int keys : {64, 32})
      if ((rows == 16 || std::max(own.a.head_size, own.a.value_size) <= 64) &&
          own.bytes(rows, keys) <= p.target->shared_bytes)
        list.push_back({{"warp_rows", rows}, {"keys", keys}});
  return list;
}
ConfigSpace tile_space(const Problem& p) {
  const PrefillShape own(p);
  ConfigSpace space;
  space.add(ConfigField::set("warp_rows", {16, 32})).add(ConfigField::set("keys", {32, 64}));
  space.add(ConfigField::range("stages", 2, 4).with_usual(PrefillShape::usual_stages));
  space.constrain("registers hold the results of warp_rows rows", [own](const Config& c) {
    return c.at("warp_rows") == 16 || std::max(own.a.head_size, own.a.value_size) <= 64;
  });
  space.constrain("the stages fit shared memory", [p](const Config& c) {
    const PrefillShape shape(p, c);
    return shape.bytes(shape.warp_rows, shape.keys) <= p.target->shared_bytes;
  });
  return space;
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

/// Blocks of mma.sync tiles that share an SM: 60 registers beside outputs, scores and queries are what the assembler
/// reports for heads of 64.
std::int64_t resident_blocks(const Problem& p, const PrefillShape& s) {
  constexpr std::int64_t sm_registers = 65536, other_registers = 60, threads = 32 * attention::prefill_warps;
  const std::int64_t held = s.warp_rows * (s.a.value_size + s.keys + s.a.head_size / 2) / 32;
  const std::int64_t by_registers =
      sm_registers / threads / round_up(std::min<std::int64_t>(255, other_registers + held), 8);
  return std::max<std::int64_t>(
      1, std::min(by_registers, (p.target->shared_bytes + 1024) / (s.bytes(s.warp_rows, s.keys) + 1024)));
}

/// mma.sync tiles wait for each other's results: on an H200 (bench/results/h200/tune/tables.json) one with 64 rows took
/// 64 cycles for a key and one with 128 rows 84, whether three others shared the SM or none, and one block more than
/// all SMs hold took as long again. With four on an SM that is 0.32 cycles of it for a score; more were not measured,
/// and are taken to be no faster.
double tile_cost(const Problem& p, const Config& config, const DeviceLimits& limits) {
  const PrefillShape s(p, config);
  const AttentionTiles tiles = attention_tiles(p, s.rows());
  const auto rounds = static_cast<double>(div_up(tiles.count, resident_blocks(p, s) * p.target->multiprocessors));
  const double waits = rounds * tiles.keys * (44 + 20 * static_cast<double>(s.rows()) / 64);
  return std::max(attention_seconds(p, s.rows(), 0.32, limits), (attention_cycles + waits) / limits.clock_hz);
}
double hopper_cost(const Problem& p, const Config& config, const DeviceLimits& limits) {
  return attention_seconds(p, 64 * hopper_warpgroups(p, config), hopper_cycles, limits);
}

Program tile_program(const Problem& p, const Config& config) {
  const PrefillShape s(p, config);
  const AttentionProblem& a = s.a;
  const attention::PrefillConfig device_config{.head_size = static_cast<int>(a.head_size),
                                               .value_size = static_cast<int>(a.value_size),
                                               .group = static_cast<int>(a.group()),
                                               .block = static_cast<int>(a.block),
                                               .q = a.q,
                                               .kv = a.kv,
                                               .out = a.out,
                                               .plain = a.plain,
                                               .warp_rows = s.warp_rows,
                                               .keys = s.keys,
                                               .stages = s.stages,
                                               .step = 32};
  return {.header = "kernel/cuda/device/attention/prefill.cuh",
          .task = fmt::format("cermet::attention::PrefillTask<cermet::attention::PrefillConfig{}>",
                              config_text(device_config)),
          .threads = 32 * attention::prefill_warps,
          .shared_bytes = s.bytes(s.warp_rows, s.keys)};
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

/// The program, and the general task's for rows that are not aligned.
std::vector<Program> with_general(Program program, const Problem& p) {
  std::vector<Program> list{std::move(program)};
  const Kernel& general = AttentionProblem(p).paged ? attention_general_paged : attention_general_ragged;
  for (Program& other : as_fallbacks(general.programs(p))) list.push_back(std::move(other));
  return list;
}

QueriesLauncher bind_tiles(const Problem& p, std::size_t first, std::int64_t rows) {
  return [launch = AttentionLaunch(p), group = AttentionProblem(p).group(), rows, first,
          run_general = bind_general_attention(p, first + 1)](const LaunchArgs& args, std::int32_t least_queries) {
    attention::PrefillParams params{launch.params(args, least_queries), 0, 0};
    if (!params.a.aligned) return run_general(args, least_queries);
    constexpr double log2_e = 1.4426950408889634;
    params.scale_log2 = static_cast<float>(params.a.scale * log2_e);
    params.tiles = narrow(AttentionLaunch::most_tiles(params.a, group, rows), "attention", "tiles");
    args.queue->run(first, std::int64_t{params.tiles} * params.a.kv_heads, params);
    if (params.tiles > 0) declare_operands(args);
  };
}

Launcher for_all_sequences(QueriesLauncher run) {
  return [run = std::move(run)](const LaunchArgs& args) { run(args, 0); };
}
Launcher bind_tile(const Problem& p, const Config& config) {
  return for_all_sequences(bind_tiles(p, 0, PrefillShape(p, config).rows()));
}
Launcher bind_hopper(const Problem& p, const Config& config) {
  return for_all_sequences(bind_tiles(p, 0, 64 * hopper_warpgroups(p, config)));
}
std::vector<Program> tile_programs(const Problem& p, const Config& config) {
  return with_general(tile_program(p, config), p);
}
std::vector<Program> hopper_programs(const Problem& p, const Config& config) {
  return with_general(hopper_program(p, config), p);
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
    "many queries on the tensor cores: a tile of rows against tiles of 16-bit keys and values";
constexpr const char* const hopper_summary =
    "many queries on Hopper's tensor cores: scores of the next tile are made while values are multiplied";
KERNEL(attention_prefill_paged_hopper, "attention.prefill_paged_hopper", OpKind::incre_flash_attention, hopper_summary,
       hopper);
KERNEL(attention_prefill_ragged_hopper, "attention.prefill_ragged_hopper", OpKind::flash_attention, hopper_summary,
       hopper);
KERNEL(attention_prefill_paged, "attention.prefill_paged", OpKind::incre_flash_attention, tile_summary, tile);
KERNEL(attention_prefill_ragged, "attention.prefill_ragged", OpKind::flash_attention, tile_summary, tile);
#undef KERNEL

}  // namespace cermet::cuda::attention_prefill_file

namespace cermet::cuda {

std::vector<Program> many_query_programs(const Problem& p) {
  using namespace attention_prefill_file;
  if (!tma_prefill_declines(p)) return tma_prefill_programs(p, {});
  if (!hopper_declines(p)) return hopper_programs(p, {});
  if (!tile_declines(p)) return tile_programs(p, {});
  return attention_general_paged.programs(p);
}

double many_query_seconds(const Problem& p, const DeviceLimits& limits) {
  using namespace attention_prefill_file;
  if (!tma_prefill_declines(p)) return tma_prefill_seconds(p, {}, limits);
  if (!hopper_declines(p)) return hopper_cost(p, {}, limits);
  if (!tile_declines(p)) return tile_cost(p, {}, limits);
  return attention_general_paged.cost(p, limits);
}

QueriesLauncher bind_many_queries(const Problem& p, std::size_t first) {
  using namespace attention_prefill_file;
  if (!tma_prefill_declines(p)) return bind_tma_prefill(p, {}, first);
  if (!hopper_declines(p)) return bind_tiles(p, first, 64 * hopper_warpgroups(p, {}));
  if (!tile_declines(p)) return bind_tiles(p, first, PrefillShape(p).rows());
  return bind_general_attention(p, first);
}

}  // namespace cermet::cuda
