// Host half of decoding attention whose warps share tiles of keys.
#include "kernel/cuda/attention/decode_shared.hpp"

#include <limits>

#include "base/checked.hpp"
#include "kernel/cuda/config_text.hpp"
#include "kernel/cuda/declare.hpp"
#include "kernel/cuda/task.hpp"
#include "op/operands.hpp"

namespace cermet::cuda {

/// Warps that have rows have 64 together, so that those of any number of queries find theirs; warps that have columns
/// as many as the heads of one query need, or 32, which is what registers allow.
DecodeSharedShape::DecodeSharedShape(const Problem& p, const Config& config)
    : a(p),
      bytes(static_cast<int>(byte_size(a.kv))),
      strict(p.attributes.flag("strict")),
      query_parts(a.q == DType::f32 || (bytes == 2 && a.q != a.kv) ? 2 : 1),
      has_columns(a.head_size > 128 || a.value_size > 128 || (query_parts == 2 && a.head_size > 64)),
      may_have_values(bytes == 2 && a.head_size > 256 && a.value_size <= a.head_size) {
  constexpr int warp_rows = attention::decode_warp_rows;
  const auto field = [&](const char* name, int usual) { return static_cast<int>(config.find(name).value_or(usual)); };
  if (has_columns) rows = field("rows", a.group() <= warp_rows && a.tokens <= a.sequences ? warp_rows : 2 * warp_rows);
  else rows = 4 * warp_rows;
  warps = rows / warp_rows * (has_columns ? column_parts : 1);
  unit_tiles = field("tiles", has_columns && (bytes == 2 || a.head_size > 256) ? 1 : 2);
  const int least = field("blocks", 1);
  for (blocks_each = field("blocks", warps <= 4 ? 2 : 1); blocks_each >= least; --blocks_each) {
    const std::int64_t share = (p.target->shared_bytes + 1024) / blocks_each - 1024;
    for (stages = 6; stages > 2 && shared_bytes(may_have_values) > share;) --stages;
    if (shared_bytes(may_have_values) <= share) break;
  }
  if (blocks_each < least) blocks_each = 0;
}

int DecodeSharedShape::control_bytes() const {
  return has_columns ? attention::decode_columns_control_bytes(static_cast<int>(a.head_size), rows, column_parts,
                                                               query_parts, unit_tiles)
                     : attention::decode_control_bytes(1, rows);
}

/// Where values may lie in the keys, those that do not have two stages at least.
std::int64_t DecodeSharedShape::shared_bytes(bool values_in_keys) const {
  return control_bytes() + std::int64_t{values_in_keys == may_have_values ? stages : 2} * unit_tiles *
                               attention::decode_shared_tile_bytes(static_cast<int>(a.head_size),
                                                                   static_cast<int>(a.value_size), bytes,
                                                                   values_in_keys);
}

Program DecodeSharedShape::program(bool values_in_keys) const {
  attention::DecodeConfig config = decode_config_of(a);
  config.rows = rows;
  config.tile_keys = attention::decode_shared_keys;
  config.warps = warps;
  config.stages = values_in_keys == may_have_values ? stages : 2;
  config.weight_parts = strict ? 2 : 1;
  config.unit_tiles = unit_tiles;
  config.column_parts = has_columns ? column_parts : 0;
  config.values_in_keys = values_in_keys;
  return {.header = "kernel/cuda/device/attention/decode_shared.cuh",
          .task = fmt::format("cermet::attention::DecodeSharedTask<cermet::attention::DecodeConfig{}>",
                              config_text(config)),
          .threads = 32 * warps,
          .shared_bytes = shared_bytes(values_in_keys),
          .min_blocks = values_in_keys == may_have_values ? blocks_each : 1};
}

Decline decode_shared_declines(const Problem& p) {
  if (Decline decline = decode_operands_decline(p)) return decline;
  const AttentionProblem a(p);
  const DecodeSharedShape s(p);
  const bool fits =
      s.has_columns ? a.head_size % 64 == 0 && a.value_size % 64 == 0 : a.head_size % 16 == 0 && a.value_size % 16 == 0;
  if (!fits)
    return fmt::format("head sizes {} and {}; taken: multiples of 16 up to 128, and of 64", a.head_size, a.value_size);
  for (const bool values_in_keys : {false, s.may_have_values})
    if (s.blocks_each == 0 || s.shared_bytes(values_in_keys) > p.target->shared_bytes)
      return fmt::format("two stages need {} bytes of shared memory", s.shared_bytes(values_in_keys));
  return attention_general_paged.declines(p);
}

std::vector<Program> decode_shared_programs(const Problem& problem, const Config& config) {
  const DecodeSharedShape s(problem, config);
  std::vector<Program> list{s.program(false)};
  if (s.may_have_values) list.push_back(s.program(true));
  return list;
}

std::function<void(const LaunchArgs&, std::int32_t)> bind_decode_shared(const Problem& problem, std::size_t first,
                                                                        const Config& config) {
  return [attributes = AttentionLaunch(problem), s = DecodeSharedShape(problem, config), first](
             const LaunchArgs& args, std::int32_t most_queries) {
    constexpr double log2_e = 1.4426950408889634;
    constexpr std::int32_t least_units = 4;  // a share of fewer keys takes as long to combine as to attend to
    attention::DecodeParams p{attributes.params(args), 0, least_units, 0};
    p.a.most_queries = most_queries;
    p.scale_log2 = static_cast<float>(p.a.scale * log2_e);
    const bool values_in_keys = s.may_have_values && p.a.k.data == p.a.v.data &&
                                p.a.k.page_stride == p.a.v.page_stride && p.a.k.row_stride == p.a.v.row_stride &&
                                p.a.k.head_stride == p.a.v.head_stride;
    const int blocks_each = values_in_keys == s.may_have_values ? s.blocks_each : 1;
    p.thread_blocks = args.queue->target().multiprocessors * blocks_each;
    args.queue->run(first + (values_in_keys ? 1 : 0), p.thread_blocks, p);
  };
}

/// Predicted, not measured: cycles before the first and after the last key, and the part of the bandwidth.
double decode_shared_seconds(const Problem& p, const DeviceLimits& limits) {
  constexpr double cycles = 12000, share_bandwidth = 0.9;
  const DecodeSharedShape s(p);
  const double rows = static_cast<double>(div_up(s.a.tokens, s.a.sequences) * s.a.group());
  const double again = std::ceil(rows / s.rows);  // each tile of a sequence's rows reads its keys
  return cycles / limits.clock_hz + again * cost_of(p).bytes / (share_bandwidth * limits.read_bytes_per_second);
}

namespace attention_decode_shared_file {
namespace {

bool may_have_many(const AttentionProblem& a) { return a.tokens > most_shared_queries; }

/// Beside the usual one: rows of warps that have columns, thread blocks on an SM, tiles of a unit.
std::vector<Config> configs(const Problem& p) {
  std::vector<Config> list(1);
  const DecodeSharedShape usual(p);
  for (const int rows : {16, 32})
    for (const int blocks : {1, 2})
      for (const int tiles : {1, 2}) {
        const bool has_registers = (blocks == 1 || rows == 16) && (tiles == 1 || usual.a.head_size <= 256);
        if (!usual.has_columns || !has_registers) continue;
        const Config config{{"rows", rows}, {"blocks", blocks}, {"tiles", tiles}};
        const DecodeSharedShape s(p, config);
        if (s.blocks_each > 0 && s.shared_bytes(false) <= p.target->shared_bytes) list.push_back(config);
      }
  return list;
}

std::vector<Program> programs(const Problem& p, const Config& config) {
  std::vector<Program> list = decode_shared_programs(p, config);
  for (Program& program :
       may_have_many(AttentionProblem(p)) ? many_query_programs(p) : as_fallbacks(attention_general_paged.programs(p)))
    list.push_back(std::move(program));
  return list;
}

double cost(const Problem& p, const Config&, const DeviceLimits& limits) {
  const AttentionProblem a(p);
  if (a.tokens > most_shared_queries * a.sequences) return many_query_seconds(p, limits) + limits.launch_seconds;
  return decode_shared_seconds(p, limits);
}

Launcher bind(const Problem& p, const Config& config) {
  const std::size_t own = decode_shared_programs(p, config).size();
  return [attributes = AttentionLaunch(p), run_shared = bind_decode_shared(p, 0, config),
          run_many = may_have_many(AttentionProblem(p)) ? bind_many_queries(p, own)
                                                        : bind_general_attention(p, own)](const LaunchArgs& args) {
    const attention::Params params = attributes.params(args);
    if (!params.aligned) return run_many(args, 0);
    if (params.tokens == 0) return;
    const bool has_many = params.query_starts && params.tokens - params.sequences + 1 > most_shared_queries;
    if (has_many && params.sequences == 1) return run_many(args, 0);
    run_shared(args, has_many ? most_shared_queries : std::numeric_limits<std::int32_t>::max());
    if (has_many) run_many(args, most_shared_queries + 1);
  };
}

}  // namespace

extern const Kernel attention_decode_shared;
const Kernel attention_decode_shared{
    .name = "attention.decode_shared",
    .op = OpKind::incre_flash_attention,
    .summary =
        "few queries whose rows, or whose columns, the warps of a block share: several of a sequence, wide heads",
    .declines = decode_shared_declines,
    .bind = bind,
    .workspace = [](const Problem& p, const Config& config,
                    int) { return DecodeSharedShape(p, config).scratch_bytes(*p.target); },
    .programs = programs,
    .configs = configs,
    .cost = cost,
    .model_error = {.assumes = ModelError::Assumes::longest_context}};

}  // namespace attention_decode_shared_file
}  // namespace cermet::cuda
