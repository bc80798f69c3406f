// What decoding attention compiles for a problem and a configuration: its tiles, and the blocks that share the work.
#pragma once

#include "base/checked.hpp"
#include "kernel/cuda/attention/attention_launch.hpp"
#include "kernel/cuda/config_text.hpp"
#include "kernel/cuda/device/attention/decode_config.hpp"

namespace cermet::cuda {

inline bool is_quantized_cache(DType kv) { return kv == DType::i8 || kv == DType::f8_e4m3 || kv == DType::f8_e5m2; }

/// What no kernel of decoding attention takes.
inline Decline decode_operands_decline(const Problem& p) {
  const AttentionProblem a(p);
  if (a.kv != DType::bf16 && a.kv != DType::f16 && !is_quantized_cache(a.kv))
    return fmt::format("a cache of {}; taken: bf16, f16, int8 and fp8", name_of(a.kv));
  if (p.target->compute_capability < 80) return "needs compute capability 8.0";
  if (a.columns) return "values in columns; taken: in rows";
  if (byte_size(a.q) == 1) return fmt::format("{} queries; taken: f32, bf16 and f16", name_of(a.q));
  if (a.kv == DType::f16 && a.q != DType::f16)
    return fmt::format("{} queries may not fit the f16 of the cache", name_of(a.q));
  return std::nullopt;
}

/// What the device's configuration says of the problem.
inline attention::DecodeConfig decode_config_of(const AttentionProblem& a) {
  const auto integer = [](std::int64_t value) { return static_cast<int>(value); };
  attention::DecodeConfig config{};
  config.head_size = integer(a.head_size);
  config.value_size = integer(a.value_size);
  config.kv_heads = integer(a.kv_heads);
  config.group = integer(a.group());
  config.block = integer(a.block);
  config.q = a.q;
  config.kv = a.kv;
  config.out = a.out;
  config.plain = a.plain;
  config.token_scales = a.token_scales;
  return config;
}

/// What is compiled for a problem.
struct DecodeShape {
  /// Stages of a warp where shared memory is wanted for the weights of the next products.
  static constexpr int most_stages_beside = 3;
  /// Keys of a tile of a warp, in whole pages: twice as many where heads are small, on Hopper, where shared memory
  /// holds three such stages. A tile takes a warp as long whether rows have 64 or 128 elements. Clusters have few tiles
  /// for each warp. Quantized keys have half the bytes, and always long tiles.
  static constexpr int short_tile = 16, long_tile = 32;
  /// Warps of a cluster's block, each of which should have a tile of keys.
  static constexpr int many_cluster_warps = 8, few_cluster_warps = 4;

  AttentionProblem a;
  int bytes;    ///< of a cached element
  bool widens;  ///< 8-bit floats by arithmetic, which leaves no registers for 16 rows; 8.9 has an instruction
  int rows, tile_keys = short_tile, warps = 4, stages,
            blocks_each;  ///< blocks_each: thread blocks per SM; 0 where it does not fit
  int ranks = 1;          ///< blocks of a cluster
  int cluster_warps;      ///< of clusters, where there are any; 0: as many as have keys
  int least_units;        ///< see DecodeParams: of a step that waits for it, more than for all other launches
  int pieces;             ///< of a span, which as many blocks have; 0: all blocks share all units
  bool whole;             ///< blocks have whole spans where lengths allow it; never of clusters, nor of pieces

  explicit DecodeShape(const Problem& p, const Config& config = {})
      : a(p),
        bytes(static_cast<int>(byte_size(a.kv))),
        widens(bytes == 1 && a.kv != DType::i8 && p.target->compute_capability < 89),
        rows(static_cast<int>(config.find("rows").value_or(a.group() <= 8 || widens ? 8 : 16))),
        cluster_warps(static_cast<int>(config.find("cluster_warps").value_or(0))),
        least_units(static_cast<int>(config.find("least").value_or(0))),
        pieces(static_cast<int>(config.find("pieces").value_or(0))),
        whole(config.find("whole").value_or(1) != 0 && least_units == 0 && a.group() <= rows) {
    if (pieces > 0) {
      *this = of_cluster(pieces);
      if (shared_bytes() > p.target->shared_bytes) blocks_each = 0;
      return;
    }
    const bool whole_pages = a.block > 0 && (long_tile % a.block == 0 || a.block % long_tile == 0);
    const bool is_small = p.target->compute_capability >= 90 && a.head_size <= 64 && a.value_size <= 64 && whole_pages;
    if (is_small || bytes == 1) tile_keys = long_tile;
    // As many bytes in flight as shared memory holds, in two thread blocks per SM where that leaves at least three
    // stages.
    const auto least = static_cast<int>(config.find("blocks").value_or(1));
    for (blocks_each = static_cast<int>(config.find("blocks").value_or(2)); blocks_each >= least; --blocks_each) {
      const std::int64_t share = (p.target->shared_bytes + 1024) / blocks_each - 1024;
      for (stages = least_units > 0 ? most_stages_beside : 6; stages > 2 && shared_bytes() > share;) --stages;
      if (shared_bytes() <= share && stages >= (blocks_each == 2 ? 3 : 2)) break;
    }
    if (blocks_each < least) blocks_each = 0;
    // Launches with more spans take shares. A program with both plans is slower at shares: 64 sequences of a 1B took an
    // H200 1256 us a step in place of 1221.
    whole = whole && a.sequences * a.kv_heads <= blocks(*p.target);
  }
  /// A warp's rows are exchanged where a stage was. Both parts of 16 rows of queries leave no registers to widen long
  /// keys in.
  bool fits() const {
    const bool has_registers = bytes > 1 || (a.q != DType::f32 && !widens) || rows == 8 || a.head_size <= 64;
    return blocks_each > 0 && has_registers &&
           rows * a.value_size * 4 <= attention::decode_stage_bytes(static_cast<int>(a.head_size),
                                                                    static_cast<int>(a.value_size), least_tile(),
                                                                    bytes);
  }
  /// Keys of a tile of a cluster's warp.
  int least_tile() const { return bytes == 1 ? long_tile : short_tile; }
  std::int64_t shared_bytes() const {
    return attention::decode_shared_bytes(static_cast<int>(a.head_size), static_cast<int>(a.value_size), tile_keys,
                                          bytes, warps, stages, rows);
  }
  /// Thread blocks that share the work.
  std::int64_t blocks(const Target& target) const { return std::int64_t{target.multiprocessors} * blocks_each; }
  /// What clusters run: more warps, because few blocks share the work, and little shared memory, which leaves room for
  /// the next launch's blocks.
  DecodeShape of_cluster(int blocks) const {
    DecodeShape c = *this;
    c.ranks = blocks;
    c.blocks_each = 1;
    c.tile_keys = least_tile();
    c.warps = cluster_warps > 0                                                   ? cluster_warps
              : a.keys < std::int64_t{blocks} * many_cluster_warps * least_tile() ? few_cluster_warps
                                                                                  : many_cluster_warps;
    c.stages = 2;
    c.whole = false;
    return c;
  }
  std::int64_t cluster_bytes() const {
    return shared_bytes() + attention::decode_inbox_bytes(rows, static_cast<int>(a.value_size), ranks);
  }
  /// In their place where there are more spans than step_spans(), those of a query for each sequence.
  DecodeShape without_pieces(const Problem& p) const {
    return DecodeShape(p, {{"rows", rows}, {"blocks", 1}, {"clusters", 0}, {"whole", 0}});
  }
  std::int64_t step_spans() const {
    return div_up(std::int64_t{a.group()}, std::int64_t{rows}) * a.sequences * a.kv_heads;
  }
  /// Spans of a launch of as many tokens and sequences as there may be.
  std::int64_t most_spans() const {
    return div_up(div_up(a.tokens, a.sequences) * a.group(), rows) * a.sequences * a.kv_heads;
  }
  /// The device's configuration.
  std::string config() const {
    attention::DecodeConfig config = decode_config_of(a);
    config.rows = rows;
    config.tile_keys = tile_keys;
    config.warps = warps;
    config.stages = stages;
    config.ranks = ranks;
    config.whole = whole;
    return "cermet::attention::DecodeConfig" + config_text(config);
  }
};

}  // namespace cermet::cuda
