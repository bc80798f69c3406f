// Host half of decoding attention with a warp that copies whole pages.
#include <bit>
#include <limits>

#include "base/checked.hpp"
#include "kernel/cuda/attention/decode_shared.hpp"
#include "kernel/cuda/attention/prefill_maps.hpp"
#include "kernel/cuda/declare.hpp"
#include "kernel/cuda/device/attention/decode_tma.hpp"
#include "op/kv_cache.hpp"
#include "op/operands.hpp"

namespace cermet::cuda::attention_decode_tma_file {
namespace {

/// Thread blocks on an SM.
int blocks_each(const Config& config) { return static_cast<int>(config.find("blocks").value_or(1)); }

bool is_wide(const AttentionProblem& a) { return std::max(a.head_size, a.value_size) > 128; }

/// What is compiled for a problem: the rows that its queries need, and as many heads beside them as make eight warps,
/// or four that have twice the registers.
attention::TmaDecodeConfig device_config(const Problem& p, const Config& config = {}) {
  const AttentionProblem a(p);
  const attention::DecodeConfig usual = decode_config_of(a);
  const auto field = [&](const char* name, std::int64_t value) {
    return static_cast<int>(config.find(name).value_or(value));
  };
  attention::TmaDecodeConfig c{};
  c.head_size = usual.head_size, c.value_size = usual.value_size, c.kv_heads = usual.kv_heads, c.group = usual.group;
  c.block = usual.block, c.q = a.q, c.kv = a.kv, c.element_bytes = static_cast<int>(byte_size(a.kv)), c.out = a.out,
  c.plain = a.plain;
  c.token_scales = a.token_scales;
  c.weight_parts = p.attributes.flag("strict") ? 2 : 1;
  c.heads_first = p.attributes.text("layout") == "hnd";
  const std::int64_t rows = div_up(a.tokens, std::max<std::int64_t>(1, a.sequences)) * a.group();
  c.rows = rows <= 8 ? 8 : 16;
  const int warps = is_wide(a) ? 4 : 8;
  c.row_tiles = rows <= 16 ? 1 : rows <= 32 || is_wide(a) ? 2 : 4;
  // As many as there are warps for, except where few sequences leave blocks many parts of a span to combine.
  constexpr std::int64_t few_sequences = 16;
  int heads = warps / 2 / c.row_tiles;
  if (a.sequences < few_sequences && c.element_bytes == 2) heads = std::min(heads, 2);
  while (c.kv_heads % heads != 0) heads /= 2;
  c.heads = field("heads", heads);
  c.parts = field("parts", std::max(1, warps / blocks_each(config) / (c.heads * c.row_tiles)));
  c.early = field("early", 1) != 0;
  c.joins = field("joins", 1) != 0;
  c.stages = 24;
  const std::int64_t share = (p.target->shared_bytes + 1024) / blocks_each(config) - 1024;
  while (c.stages > c.parts && c.shared_bytes() > share) c.stages -= c.parts;
  if (const int asked = field("stages", 0); asked > 0) c.stages = asked;
  return c;
}

bool takes_row(std::int64_t bytes) { return bytes == 128 || bytes == 256 || bytes == 512; }

Decline declines(const Problem& p) {
  if (p.target->compute_capability != 90) return "needs compute capability 9.0";
  if (Decline decline = decode_operands_decline(p)) return decline;
  const AttentionProblem a(p);
  const bool both = has_token_scales(p, op::incre_flash_attention::k_scale) &&
                    has_token_scales(p, op::incre_flash_attention::v_scale);
  if (a.token_scales && !both) return "scales of tokens for keys or values only; taken: for both";
  if (a.token_scales && p.attributes.text("layout") != "hnd") return "scales of tokens; taken: with heads first";
  const auto bytes = byte_size(a.kv);
  const auto takes = [&](std::int64_t size) { return size >= 64 && size <= 256 / bytes && takes_row(bytes * size); };
  if (!takes(a.head_size) || !takes(a.value_size))
    return fmt::format("head sizes {} and {}; taken: {}", a.head_size, a.value_size,
                       bytes == 2 ? "64 and 128" : "128 and 256");
  constexpr int keys = attention::TmaDecodeConfig::keys;
  if (a.block % keys != 0) return fmt::format("pages of {} tokens; taken: multiples of {}", a.block, keys);
  const attention::TmaDecodeConfig c = device_config(p);
  if (a.q == DType::f32 && (is_wide(a) || a.head_size > 64))
    return "float32 queries of so many columns need more registers";
  if (c.shared_bytes() > p.target->shared_bytes) return fmt::format("stages of {} bytes do not fit", c.stage_bytes());
  return attention_general_paged.declines(p);
}

/// Beside the usual one: key-value heads of a block at a time, warps with the same rows, and stages.
bool fits(const attention::TmaDecodeConfig& c, const Target& target, int each) {
  return c.kv_heads % c.heads == 0 && c.stages >= 2 && c.stages % c.parts == 0 &&
         c.consumers() <= (std::max(c.head_size, c.value_size) > 128 ? 7 : 16) && each * (c.consumers() + 1) <= 16 &&
         each * (c.shared_bytes() + 1024) <= target.shared_bytes + 1024;
}
std::vector<Config> configs(const Problem& p) {
  std::vector<Config> list(1);
  const attention::TmaDecodeConfig usual = device_config(p);
  for (const int heads : {4, 2, 1})
    for (const int parts : {1, 2, 4, 8}) {
      const Config config{{"heads", heads}, {"parts", parts}};
      const attention::TmaDecodeConfig c = device_config(p, config);
      const int warps = c.consumers();
      if (warps >= 4 && warps <= 8 && fits(c, *p.target, 1) && (heads != usual.heads || parts != usual.parts))
        list.push_back(config);
    }
  return list;
}
ConfigSpace space(const Problem& p) {
  ConfigSpace space;
  space.add(ConfigField::set("heads", {1, 2, 4, 8})).add(ConfigField::set("parts", {1, 2, 4, 8}));
  space.add(ConfigField::range("stages", 0, 24).with_usual(0));  // 0: as many as fit
  space.add(ConfigField::range("blocks", 1, 2).with_usual(1));
  space.add(ConfigField::range("early", 0, 1).with_usual(1)).add(ConfigField::range("joins", 0, 1).with_usual(1));
  space.constrain("heads divide those of the cache, parts stages, and stages fit shared memory",
                  [p](const Config& c) { return fits(device_config(p, c), *p.target, blocks_each(c)); });
  return space;
}

std::int64_t blocks(const Target& target, const Config& config) {
  return std::int64_t{target.multiprocessors} * blocks_each(config);
}

/// Maps of keys and values; false where they do not lie as the copies bring them.
bool set_maps(const Device& device, const attention::TmaDecodeConfig& c, attention::TmaDecodeParams& params) {
  const attention::Params& p = params.d.a;
  const auto encode = [&](const attention::KeyList& list, int size, TensorMapBytes& to) {
    const int line = 128 / c.element_bytes, lines = c.lines(size);
    if ((c.heads_first ? list.row_stride : list.head_stride) != size) return false;
    // Without pages nothing is copied, and their address says nothing.
    const void* const data = p.blocks > 0 ? list.data : p.q;
    TensorMapShape shape{const_cast<void*>(data), c.kv, 0, line, line, 0, static_cast<std::uint32_t>(line), 128};
    const TensorMapShape::Axis pages = map_axis(p.blocks, list.page_stride);
    if (c.heads_first) {
      shape.rows = std::int64_t{c.block} * lines, shape.box_rows = static_cast<std::uint32_t>(c.keys * lines);
      shape.outer = {map_axis(p.kv_heads, list.head_stride, c.heads), pages};
    } else {
      shape.rows = std::int64_t{p.kv_heads} * lines, shape.box_rows = static_cast<std::uint32_t>(lines);
      shape.outer = {map_axis(c.block, list.row_stride, c.keys), pages};
    }
    if (shape.outer[0].stride <= 0 || pages.stride <= 0) return false;
    shape.outer_axes = 2;
    to = std::bit_cast<TensorMapBytes>(const_cast<Device&>(device).tensor_map(shape));
    return true;
  };
  const auto has_scales = [&](const attention::KeyList& list) {
    return !c.token_scales || (reinterpret_cast<std::uintptr_t>(list.scale) % 16 == 0 && list.scale_row_stride == 1 &&
                               list.scale_head_stride == c.block && list.scale_page_stride % 4 == 0);
  };
  return has_scales(p.k) && has_scales(p.v) && encode(p.k, c.head_size, params.k) &&
         encode(p.v, c.value_size, params.v);
}

bool may_have_many(const AttentionProblem& a) { return a.tokens > most_shared_queries; }

std::vector<Program> programs(const Problem& p, const Config& config) {
  const attention::TmaDecodeConfig c = device_config(p, config);
  std::vector<Program> list{
      {.header = "kernel/cuda/device/attention/decode_tma.cuh",
       .task = fmt::format("cermet::attention::TmaDecodeTask<cermet::attention::TmaDecodeConfig{}>", config_text(c)),
       .threads = c.threads(),
       .shared_bytes = c.shared_bytes(),
       .min_blocks = blocks_each(config),
       .may_spill = true,  // what is needed at the ends of spans: up to 32 bytes
       .divides_warps = true,
       .reads_descriptors = true}};
  for (Program& program :
       may_have_many(AttentionProblem(p)) ? many_query_programs(p) : as_fallbacks(attention_general_paged.programs(p)))
    list.push_back(std::move(program));
  return list;
}

/// Predicted, not measured: cycles before the first and after the last key, and the part of the bandwidth.
double cost(const Problem& p, const Config& config, const DeviceLimits& limits) {
  constexpr double cycles = 14000, bandwidth = 0.9;
  const AttentionProblem a(p);
  if (a.tokens > most_shared_queries * a.sequences) return many_query_seconds(p, limits) + limits.launch_seconds;
  const attention::TmaDecodeConfig c = device_config(p, config);
  const double rows = static_cast<double>(div_up(a.tokens, a.sequences) * a.group());
  const double again = std::ceil(rows / c.head_rows());  // each tile of a sequence's rows reads its keys
  return cycles / limits.clock_hz + again * cost_of(p).bytes / (bandwidth * limits.read_bytes_per_second);
}

Launcher bind(const Problem& p, const Config& config) {
  return [attributes = AttentionLaunch(p), c = device_config(p, config), config,
          run_many = may_have_many(AttentionProblem(p)) ? bind_many_queries(p, 1)
                                                        : bind_general_attention(p, 1)](const LaunchArgs& args) {
    constexpr double log2_e = 1.4426950408889634;
    attention::TmaDecodeParams params{};
    attention::Params& a = params.d.a;
    a = attributes.params(args);
    if (a.tokens == 0) return;
    if (!a.aligned || !set_maps(args.queue->device(), c, params)) return run_many(args, 0);
    const bool has_many = a.query_starts && a.tokens - a.sequences + 1 > most_shared_queries;
    if (has_many && a.sequences == 1) return run_many(args, 0);
    if (has_many) a.most_queries = most_shared_queries;
    params.d.scale_log2 = static_cast<float>(a.scale * log2_e);
    params.d.thread_blocks = static_cast<std::int32_t>(blocks(args.queue->target(), config));
    args.queue->run(0, params.d.thread_blocks, params);
    if (has_many) run_many(args, most_shared_queries + 1);
  };
}

}  // namespace

extern const Kernel attention_decode_tma;
const Kernel attention_decode_tma{
    .name = "attention.decode_tma",
    .op = OpKind::incre_flash_attention,
    .summary = "few queries on Hopper: a warp copies whole pages of several key-value heads by TMA",
    .declines = declines,
    .bind = bind,
    .workspace = [](const Problem& p, const Config& config, int) -> std::int64_t {
      const attention::TmaDecodeConfig c = device_config(p, config);
      return attention::decode_scratch_bytes(static_cast<int>(blocks(*p.target, config)), c.block_rows(), c.value_size);
    },
    .programs = programs,
    .configs = configs,
    .space = space,
    .cost = cost,
    .model_error = {.assumes = ModelError::Assumes::longest_context}};

}  // namespace cermet::cuda::attention_decode_tma_file
