// Host half of attention of many queries on the tensor cores, and the general task for launches that it does not fit.
#include "base/checked.hpp"
#include "kernel/cuda/attention.hpp"
#include "kernel/cuda/device/attention/prefill_config.hpp"
#include "kernel/cuda/task.hpp"

namespace cermet::cuda {
namespace {

/// What is compiled for a problem.
struct PrefillShape {
  AttentionProblem a;
  int warp_rows = 0, keys = 0;  ///< 0 where nothing fits

  explicit PrefillShape(const Problem& p) : a(p) {
    // Large tiles reuse keys best; two thread blocks of a multiprocessor hide each other's waits.
    const std::int64_t share = (p.target->shared_bytes + 1024) / 2 - 1024;
    for (const std::int64_t room : {share, p.target->shared_bytes})
      for (const int candidate_rows : {32, 16})
        for (const int candidate_keys : {64, 32}) {
          if (candidate_rows == 32 && (std::max(a.head_size, a.value_size) > 64 || a.tokens * a.group() <= 64)) continue;  // registers; rows that there are
          if (keys != 0 || bytes(candidate_rows, candidate_keys) > room) continue;
          warp_rows = candidate_rows;
          keys = candidate_keys;
        }
  }
  std::int64_t bytes(int with_rows, int with_keys) const {
    return attention::prefill_shared_bytes(static_cast<int>(a.head_size), static_cast<int>(a.value_size), with_rows, with_keys, a.q == a.kv ? 1 : 2);
  }
  std::int64_t rows() const { return std::int64_t{attention::prefill_warps} * warp_rows; }
};

Decline declines(const Problem& p) {
  const AttentionProblem a(p);
  if (a.kv != DType::bf16 && a.kv != DType::f16) return fmt::format("keys of {}; taken: bf16 and f16", name_of(a.kv));
  if (p.target->compute_capability < (a.kv == DType::bf16 ? 80 : 75)) return fmt::format("{} needs compute capability 8.0", name_of(a.kv));
  if (a.kv == DType::f16 && a.q != DType::f16) return fmt::format("{} queries may not fit the f16 of the keys", name_of(a.q));
  constexpr std::int64_t most = 192;  // of a head: registers hold the outputs of 16 rows
  if (a.head_size % 8 != 0 || a.value_size % 8 != 0 || a.head_size > most || a.value_size > most)
    return fmt::format("head sizes {} and {}; taken: multiples of 8 up to {}", a.head_size, a.value_size, most);
  if (PrefillShape(p).keys == 0) return "tiles of 64 rows and 32 keys do not fit shared memory";
  return a.paged ? attention_general_paged.declines(p) : attention_general_ragged.declines(p);
}

std::vector<Program> programs(const Problem& p) { return many_query_programs(p); }
Launcher bind(const Problem& p) { return bind_many_queries(p, 0); }

}  // namespace

std::vector<Program> many_query_programs(const Problem& p) {
  std::vector<Program> list;
  const PrefillShape s(p);
  const AttentionProblem& a = s.a;
  if (!declines(p))
    list.push_back(
        {.header = "kernel/cuda/device/attention/prefill.cuh",
         .task = fmt::format("cermet::attention::PrefillTask<cermet::attention::PrefillConfig{{.head_size = {}, .value_size = {}, .group = {}, "
                             ".block = {}, .q = {}, .kv = {}, .out = {}, .warp_rows = {}, .keys = {}}}>",
                             a.head_size, a.value_size, a.group(), a.block, device_name(a.q), device_name(a.kv), device_name(a.out), s.warp_rows, s.keys),
         .threads = 32 * attention::prefill_warps,
         .shared_bytes = s.bytes(s.warp_rows, s.keys)});
  const Kernel& general = a.paged ? attention_general_paged : attention_general_ragged;
  for (Program& program : general.programs(p)) list.push_back(std::move(program));
  return list;
}

Launcher bind_many_queries(const Problem& p, std::size_t first) {
  if (declines(p)) return bind_general_attention(p, first);
  return [launch = AttentionLaunch(p), shape = PrefillShape(p), first, run_general = bind_general_attention(p, first + 1)](const LaunchArgs& args) {
    attention::PrefillParams params{launch.params(args), 0, 0};
    if (!params.a.aligned) return run_general(args);
    constexpr double log2_e = 1.4426950408889634;
    params.scale_log2 = static_cast<float>(params.a.scale * log2_e);
    params.tiles = static_cast<std::int32_t>(AttentionLaunch::most_tiles(params.a, shape.a.group(), shape.rows()));
    args.queue->run(first, std::int64_t{params.tiles} * params.a.kv_heads, params);
  };
}

extern const Kernel attention_prefill_paged, attention_prefill_ragged;
const Kernel attention_prefill_paged{.name = "attention.prefill_paged",
                                     .op = OpKind::incre_flash_attention,
                                     .summary = "many queries on the tensor cores: a tile of rows against tiles of 16-bit keys and values",
                                     .declines = declines,
                                     .bind = bind,
                                     .programs = programs};
const Kernel attention_prefill_ragged{.name = "attention.prefill_ragged",
                                      .op = OpKind::flash_attention,
                                      .summary = "many queries on the tensor cores: a tile of rows against tiles of 16-bit keys and values",
                                      .declines = declines,
                                      .bind = bind,
                                      .programs = programs};

}  // namespace cermet::cuda
