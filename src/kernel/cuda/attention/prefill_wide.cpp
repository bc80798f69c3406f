// Host half of attention of many queries with wide heads on Hopper.
#include "kernel/cuda/attention/prefill_wide.hpp"

#include "base/checked.hpp"
#include "kernel/cuda/attention/prefill_maps.hpp"
#include "kernel/cuda/config_text.hpp"
#include "kernel/cuda/declare.hpp"
#include "kernel/cuda/device/attention/prefill_wide.hpp"
#include "kernel/cuda/narrow.hpp"

namespace cermet::cuda::attention_prefill_wide_file {
namespace {

constexpr int all_steps = 9;  ///< at least: of a tile's scores

/// Two blocks share keys where sequences have more than one tile of rows: predicted, not measured.
int blocks_of(const AttentionProblem& a, const Config& config) {
  const std::int64_t rows = div_up(a.tokens, std::max<std::int64_t>(1, a.sequences)) * a.group();
  return static_cast<int>(config.find("cluster").value_or(rows > attention::WidePrefillConfig::rows() ? 2 : 1));
}

attention::WidePrefillConfig device_config(const AttentionProblem& a, const Config& config, bool values_in_keys) {
  return {.head_size = static_cast<int>(a.head_size),
          .value_size = static_cast<int>(a.value_size),
          .group = static_cast<int>(a.group()),
          .block = static_cast<int>(a.block),
          .kv = a.kv,
          .out = a.out,
          .plain = a.plain,
          .values_in_keys = values_in_keys,
          .cluster = blocks_of(a, config),
          .early_even = static_cast<int>(config.find("early_even").value_or(0)),
          .early_odd = static_cast<int>(config.find("early_odd").value_or(all_steps))};
}

/// One for values of their own, and one for values that may be the first columns of the keys.
std::vector<attention::WidePrefillConfig> device_configs(const Problem& p, const Config& config) {
  const AttentionProblem a(p);
  std::vector<attention::WidePrefillConfig> list{device_config(a, config, false)};
  if (a.value_size <= a.head_size) list.push_back(device_config(a, config, true));
  return list;
}

Decline declines(const Problem& p) {
  if (p.target->compute_capability != 90) return "needs compute capability 9.0";
  if (p.input(0).rank() == 4) return attention_general_ragged.declines(p);
  const AttentionProblem a(p);
  if (a.kv != DType::bf16 && a.kv != DType::f16) return fmt::format("keys of {}; taken: bf16 and f16", name_of(a.kv));
  if (a.q != a.kv) return fmt::format("{} queries and {} keys; taken: one type", name_of(a.q), name_of(a.kv));
  if (p.attributes.flag("strict")) return "rounds weights to the type of the values; `strict` does not";
  constexpr std::int64_t least = 264, most = 576, least_values = 72, most_values = 512;
  if (a.head_size < least || a.head_size > most || a.value_size < least_values || a.value_size > most_values ||
      a.head_size % 8 != 0 || a.value_size % 8 != 0)
    return fmt::format("head sizes {} and {}; taken: multiples of 8 from {} to {} and from {} to {}", a.head_size,
                       a.value_size, least, most, least_values, most_values);
  const attention::WidePrefillConfig c = device_config(a, {}, false);
  if (c.box_rows() % 8 != 0) return fmt::format("copies of 8 keys do not divide pages of {}", a.block);
  if (c.shared_bytes() > p.target->shared_bytes) return fmt::format("tiles of {} bytes do not fit", c.shared_bytes());
  return a.paged ? attention_general_paged.declines(p) : attention_general_ragged.declines(p);
}

/// As long as the model of the other tasks says, with the tensor cores' cycles for a score. Predicted, not measured:
/// they are busy for 0.65 of the time where values may be in the keys, else for 0.42.
double cost(const Problem& p, const Config& config, const DeviceLimits& limits) {
  constexpr double flop_per_cycle = 4096, item_cycles = 8000;
  const attention::WidePrefillConfig c = device_config(AttentionProblem(p), config, false);
  const int rows = c.tokens() * c.heads();
  const auto flop = static_cast<double>(2 * (round_up(c.head_size, 16) + 64 * c.value_pieces()));
  const double busy = c.value_size < c.head_size ? 0.65 : 0.42, unused = static_cast<double>(c.rows()) / rows;
  const auto items = static_cast<double>(div_up(attention_tiles(p, rows).count, p.target->multiprocessors));
  return attention_seconds(p, rows, flop / flop_per_cycle / busy * unused, limits) +
         items * item_cycles / limits.clock_hz;
}

ConfigSpace space(const Problem& p) {
  ConfigSpace space;
  space.add(ConfigField::range("cluster", 1, 2));
  space.add(ConfigField::range("early_even", 0, 2).with_usual(0));
  space.add(ConfigField::set("early_odd", {0, 1, 2, 3, all_steps}).with_usual(all_steps));
  space.constrain("copies of 8 keys and more divide tiles and pages",
                  [p](const Config& c) { return device_config(AttentionProblem(p), c, false).box_rows() % 8 == 0; });
  return space;
}

std::vector<Config> configs(const Problem&) {
  std::vector<Config> list(1);
  for (const int cluster : {1, 2}) {
    list.push_back({{"cluster", cluster}});
    list.push_back({{"cluster", cluster}, {"early_even", 1}, {"early_odd", 2}});
  }
  return list;
}

std::vector<Program> programs(const Problem& p, const Config& config) {
  std::vector<Program> list;
  for (const attention::WidePrefillConfig& c : device_configs(p, config))
    list.push_back({.header = "kernel/cuda/device/attention/prefill_wide.cuh",
                    .task = fmt::format("cermet::attention::WidePrefillTask<cermet::attention::WidePrefillConfig{}>",
                                        config_text(c)),
                    .threads = c.threads,
                    .shared_bytes = c.shared_bytes(),
                    .cluster = c.cluster,
                    .divides_warps = true,
                    .reads_descriptors = true});
  const Kernel& general = AttentionProblem(p).paged ? attention_general_paged : attention_general_ragged;
  for (Program& other : as_fallbacks(general.programs(p))) list.push_back(std::move(other));
  return list;
}

QueriesLauncher bind_from(const Problem& problem, const Config& config, std::size_t first) {
  const std::vector<attention::WidePrefillConfig> own = device_configs(problem, config);
  return [launch = AttentionLaunch(problem), c = own.front(), may_share = own.size() > 1, first,
          run_general = bind_general_attention(problem, first + own.size())](const LaunchArgs& args,
                                                                             std::int32_t least_queries) {
    attention::TmaPrefillParams params{};
    params.a = launch.params(args, least_queries);
    params.tiles = narrow(AttentionLaunch::most_tiles(params.a, 1, c.cluster_tokens()), "attention", "tiles");
    if (params.tiles == 0) return;
    if (!params.a.aligned || !set_prefill_maps(args.queue->device(), c, params))
      return run_general(args, least_queries);
    constexpr double log2_e = 1.4426950408889634;
    params.scale_log2 = static_cast<float>(params.a.scale * log2_e);
    const std::size_t program = first + (may_share && has_values_in_keys(params.a) ? 1 : 0);
    args.queue->run(program, std::int64_t{params.tiles} * params.a.kv_heads * c.head_tiles() * c.cluster, params,
                    args.queue->resident_blocks(program));
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
              "many queries with wide heads on Hopper's tensor cores: two warpgroups share weights, each has half "
              "of the columns of the results",
          .declines = declines,
          .bind = bind,
          .programs = programs,
          .configs = configs,
          .space = space,
          .cost = cost,
          .model_error = {.assumes = ModelError::Assumes::longest_context}};
}

}  // namespace

extern const Kernel attention_prefill_paged_wide, attention_prefill_ragged_wide;
const Kernel attention_prefill_paged_wide = kernel("attention.prefill_paged_wide", OpKind::incre_flash_attention);
const Kernel attention_prefill_ragged_wide = kernel("attention.prefill_ragged_wide", OpKind::flash_attention);

}  // namespace cermet::cuda::attention_prefill_wide_file

namespace cermet::cuda {

Decline wide_prefill_declines(const Problem& p) { return attention_prefill_wide_file::declines(p); }
std::vector<Program> wide_prefill_programs(const Problem& p, const Config& config) {
  return attention_prefill_wide_file::programs(p, config);
}
QueriesLauncher bind_wide_prefill(const Problem& p, std::size_t first) {
  return attention_prefill_wide_file::bind_from(p, {}, first);
}
double wide_prefill_seconds(const Problem& p, const Config& config, const DeviceLimits& limits) {
  return attention_prefill_wide_file::cost(p, config, limits);
}

}  // namespace cermet::cuda
