#include "kernel/cuda/attention/prefill_shape.hpp"

#include "base/checked.hpp"
#include "op/kv_cache.hpp"
#include "op/operands.hpp"

namespace cermet::cuda {
namespace {

constexpr int usual_stages = 2, usual_row_warps = 4;

bool is_quantized(DType kv) { return byte_size(kv) == 1; }
bool has_scales_of_tokens(const Problem& p, const AttentionProblem& a) {
  return a.paged && has_token_scales(p, op::incre_flash_attention::k_scale);
}

/// What keys and values are multiplied as. Weights times scales of tokens need the range of bf16.
DType tile_type(const Problem& p, const AttentionProblem& a) {
  if (!is_quantized(a.kv)) return a.kv;
  return a.q == DType::f16 && !has_scales_of_tokens(p, a) ? DType::f16 : DType::bf16;
}

/// Warps that share rows. With 16 rows of 256 results in a warp, ptxas spills below sm_90, and shared memory there
/// holds one block, of which eight warps hide more waits than four. On an H100, where it holds two, blocks of four
/// warps take 0.7 of the time at head size 256.
int usual_column_warps(const Problem& p, const AttentionProblem& a) {
  return a.value_size > 256 || (a.value_size > 192 && p.target->compute_capability < 90) ? 2 : 1;
}

/// Parts of a weight: values of 16 bits may have it rounded to their type, unless the attribute `strict` says no.
int weight_parts(const Problem& p, const AttentionProblem& a) {
  return is_quantized(a.kv) || p.attributes.flag("strict") ? 2 : 1;
}

/// Problems whose tiles were measured on an H200 have the space that was searched there.
bool is_wide(const Problem& p) {
  const AttentionProblem a(p);
  return std::max(a.head_size, a.value_size) > 192 || is_quantized(a.kv);
}

/// Whether registers hold a tile; up to 256 columns with some spills, which a tuner finds out by measuring.
bool has_registers(const AttentionProblem& a, const attention::PrefillConfig& t) {
  if (t.column_warps == 1 && a.value_size > 256) return false;
  return t.warp_rows == 16 || (t.column_warps == 1 && std::max(a.head_size, a.value_size) <= 64);
}

void set_keys(attention::PrefillConfig& tile, int keys) {
  tile.keys = keys;
  tile.step = std::min(keys, 32);
}

}  // namespace

Decline prefill_tile_declines(const Problem& p) {
  if (p.input(0).rank() == 4) return attention_general_ragged.declines(p);
  const AttentionProblem a(p);
  const bool quantized = a.kv == DType::i8 || a.kv == DType::f8_e4m3 || a.kv == DType::f8_e5m2;
  if (!quantized && a.kv != DType::bf16 && a.kv != DType::f16)
    return fmt::format("keys of {}; taken: bf16, f16, i8, f8_e4m3 and f8_e5m2", name_of(a.kv));
  if (a.columns) return "values in columns; taken: in rows";
  if (byte_size(a.q) == 1) return fmt::format("{} queries; taken: f32, bf16 and f16", name_of(a.q));
  if (a.kv == DType::f16 && a.q != DType::f16)
    return fmt::format("{} queries may not fit the f16 of the keys", name_of(a.q));
  const DType tile = tile_type(p, a);
  if (p.target->compute_capability < (tile == DType::bf16 ? 80 : 75))
    return fmt::format("{} needs compute capability 8.0", name_of(tile));
  const std::int64_t step = quantized ? 16 : 8;
  if (a.head_size % step != 0 || a.value_size % step != 0 || a.head_size > 576 || a.value_size > 512)
    return fmt::format("head sizes {} and {}; taken: multiples of {} up to 576 and 512", a.head_size, a.value_size,
                       step);
  if (prefill_shapes(p).empty()) return "tiles of 16 rows and 16 keys do not fit shared memory";
  return a.paged ? attention_general_paged.declines(p) : attention_general_ragged.declines(p);
}

PrefillShape::PrefillShape(const Problem& p, const Config& config, bool values_in_keys) : a(p) {
  tile = {.head_size = static_cast<int>(a.head_size),
          .value_size = static_cast<int>(a.value_size),
          .group = static_cast<int>(a.group()),
          .block = static_cast<int>(a.block),
          .q = a.q,
          .kv = a.kv,
          .out = a.out,
          .tile = tile_type(p, a),
          .plain = a.plain,
          .token_scales = has_scales_of_tokens(p, a),
          .values_in_keys = values_in_keys,
          .column_warps = usual_column_warps(p, a),
          .weight_parts = weight_parts(p, a),
          .warp_rows = 16,
          .keys = 0,
          .stages = usual_stages,
          .step = 0};
  if (!config.empty()) {
    const auto field = [&](std::string_view name, int usual) {
      return static_cast<int>(config.find(name).value_or(usual));
    };
    tile.warp_rows = field("warp_rows", tile.warp_rows);
    tile.row_warps = field("row_warps", usual_row_warps);
    tile.column_warps = field("column_warps", tile.column_warps);
    tile.stages = field("stages", usual_stages);
    blocks = field("blocks", blocks);
    set_keys(tile, static_cast<int>(config.at("keys")));
    return;
  }
  // Large tiles reuse keys best; two thread blocks per SM hide each other's waits. Narrow ones are for cards with
  // little shared memory.
  const std::int64_t share = (p.target->shared_bytes + 1024) / 2 - 1024;
  const auto choose = [&](int row_warps, std::initializer_list<int> keys) {
    for (const std::int64_t room : {share, p.target->shared_bytes})
      for (const int warp_rows : {32, 16})
        for (const int candidate : keys) {
          attention::PrefillConfig t = tile;
          t.row_warps = row_warps;
          t.warp_rows = warp_rows;
          set_keys(t, candidate);
          if (warp_rows == 32 && a.tokens * a.group() <= 64) continue;
          if (!has_registers(a, t) || t.shared_bytes() > room) continue;
          tile = t;
          return true;
        }
    return false;
  };
  // On an H100, int8 keys of 128 take 0.92 of the time with narrow tiles of which three blocks share an SM.
  const bool shares = a.kv == DType::i8 && a.value_size > 64 && a.value_size <= 128 && a.head_size <= 128 &&
                      p.target->compute_capability >= 90;
  if (shares && choose(4, {32}) && 3 * (tile.shared_bytes() + 1024) <= p.target->shared_bytes + 1024) {
    blocks = 3;
    return;
  }
  [[maybe_unused]] const bool found = choose(4, {64, 32}) || choose(4, {16}) || choose(2, {32, 16}) || choose(1, {16});
}

std::vector<PrefillShape> prefill_shapes(const Problem& p, const Config& config) {
  const AttentionProblem a(p);
  std::vector<PrefillShape> list{PrefillShape(p, config)};
  if (a.paged && a.value_size > 256 && a.value_size <= a.head_size) list.emplace_back(p, config, true);
  std::erase_if(list, [](const PrefillShape& shape) { return shape.tile.keys == 0; });
  return list;
}

/// Rows of a warp that registers hold, with the tiles of keys that shared memory does.
std::vector<Config> prefill_tile_configs(const Problem& p) {
  const bool wide = is_wide(p);
  const bool narrow = std::max(p.size(0, 2), p.size(2, -1)) <= 128;
  const int other_columns = 3 - usual_column_warps(p, AttentionProblem(p));
  std::vector<Config> list(1);
  const auto add = [&](Config config) {
    const PrefillShape shape(p, config);
    if (has_registers(shape.a, shape.tile) &&
        shape.blocks * (shape.tile.shared_bytes() + 1024) <= p.target->shared_bytes + 1024)
      list.push_back(std::move(config));
  };
  for (const int rows : {32, 16})
    for (const int keys : {64, 32}) add({{"warp_rows", rows}, {"keys", keys}});
  if (!wide) return list;
  add({{"warp_rows", 16}, {"keys", 16}});
  for (const int keys : {32, 16}) {
    if (narrow) add({{"warp_rows", 16}, {"keys", keys}, {"blocks", 3}});
    if (p.target->compute_capability >= 90) continue;  // slower on an H100
    add({{"warp_rows", 16}, {"keys", keys}, {"row_warps", 2}});
    add({{"warp_rows", 16}, {"keys", keys}, {"column_warps", other_columns}});
  }
  return list;
}

ConfigSpace prefill_tile_space(const Problem& p) {
  const bool wide = is_wide(p);
  ConfigSpace space;
  space.add(ConfigField::set("warp_rows", {16, 32}));
  space.add(ConfigField::set("keys", wide ? std::vector<std::int64_t>{16, 32, 64} : std::vector<std::int64_t>{32, 64}));
  space.add(ConfigField::range("stages", 2, 4).with_usual(usual_stages));
  if (wide) {
    space.add(ConfigField::set("row_warps", {1, 2, 4}).with_usual(usual_row_warps));
    space.add(ConfigField::range("blocks", 1, 3).with_usual(1));
    space.add(ConfigField::set("column_warps", {1, 2}).with_usual(usual_column_warps(p, AttentionProblem(p))));
  }
  space.constrain("registers hold the results of warp_rows rows", [p](const Config& c) {
    const PrefillShape shape(p, c);
    return has_registers(shape.a, shape.tile);
  });
  space.constrain("the stages of so many blocks fit shared memory", [p](const Config& c) {
    const PrefillShape shape(p, c);
    return shape.blocks * (shape.tile.shared_bytes() + 1024) <= p.target->shared_bytes + 1024;
  });
  return space;
}

namespace {

/// Blocks of mma.sync tiles that share an SM: 60 registers beside outputs, scores and queries are what the assembler
/// reports for heads of 64.
std::int64_t resident_blocks(const Problem& p, const PrefillShape& s) {
  constexpr std::int64_t sm_registers = 65536, other_registers = 60;
  const std::int64_t held =
      s.tile.warp_rows * (s.a.value_size / s.tile.column_warps + s.tile.keys + s.a.head_size / 2) / 32;
  const std::int64_t by_registers =
      std::max<std::int64_t>(s.blocks, sm_registers / (32 * s.tile.warps()) /
                                           round_up(std::min<std::int64_t>(255, other_registers + held), 8));
  return std::max<std::int64_t>(
      1, std::min(by_registers, (p.target->shared_bytes + 1024) / (s.tile.shared_bytes() + 1024)));
}

}  // namespace

/// mma.sync tiles wait for each other's results: on an H200 (bench/results/h200/tune/tables.json) one with 64 rows took
/// 64 cycles for a key and one with 128 rows 84, whether three others shared the SM or none, and one block more than
/// all SMs hold took as long again. With four on an SM that is 0.32 cycles of it for a score of heads of 64, 1,200
/// operations a cycle. On an H100 heads of 128 and 256 do as many, warps that share rows five sixths of that; widening
/// keys of 8 bits takes a fifth of the time, a tenth with three blocks on an SM; weights of one part save 0.16 of it.
double prefill_tile_cost(const Problem& p, const Config& config, const DeviceLimits& limits) {
  const PrefillShape s = prefill_shapes(p, config).front();
  const double operations =
                   2 * s.tile.parts() * static_cast<double>(s.a.head_size) + 4 * static_cast<double>(s.a.value_size),
               widening = !s.tile.widens() ? 1
                          : s.blocks == 3  ? 1.1
                                           : 1.2,
               work = operations / 384 * (s.tile.column_warps == 2 ? 1.2 : 1) * widening *
                      (s.tile.weight_parts == 1 ? 0.84 : 1);
  const AttentionTiles tiles = attention_tiles(p, s.rows());
  const auto rounds = static_cast<double>(div_up(tiles.count, resident_blocks(p, s) * p.target->multiprocessors));
  const double waits = rounds * tiles.keys * (44 + 20 * static_cast<double>(s.rows()) / 64) * std::max(1.0, work / 2);
  return std::max(attention_seconds(p, s.rows(), 0.32 * work, limits), (attention_cycles + waits) / limits.clock_hz);
}

}  // namespace cermet::cuda
