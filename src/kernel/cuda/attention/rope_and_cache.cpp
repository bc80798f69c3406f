// Host half of the rope_and_cache task.
#include "kernel/cuda/device/attention/rope_and_cache.hpp"

#include <algorithm>

#include "base/checked.hpp"
#include "kernel/cuda/attention/kv_cache.hpp"
#include "kernel/cuda/config_text.hpp"
#include "kernel/cuda/task.hpp"
#include "kernel/kernel.hpp"
#include "op/operands.hpp"

namespace cermet::cuda::attention_rope_and_cache_file {
namespace {

using enum op::rope_and_cache::Operand;
enum Programs : std::size_t { aligned, unaligned };
constexpr int threads = 128;
/// An item that writes to the cache compares its slots with those of all later tokens, so that of many tokens it has
/// several: one for each `tokens_of_one`, up to `most_tokens`. Of 512 tokens, eight each take twice as long as one.
constexpr std::int64_t tokens_of_one = 512, most_tokens = 8;

struct Settings {
  KvCacheAxes axes;
  float eps, weight_offset;
  int pairs, elements, heads_each;  ///< rope_width, value_width; heads of a work item
  bool neox;

  explicit Settings(const Problem& p)
      : axes(p.attributes.text("layout")),
        eps(static_cast<float>(p.attributes.number("eps"))),
        weight_offset(static_cast<float>(p.attributes.number("weight_offset"))),
        pairs(rope_and_cache::rope_width(p.size(cos, 1), static_cast<int>(size_of(p.input(q).dtype)),
                                         p.attributes.text("style") == "neox")),
        elements(rope_and_cache::value_width(p.size(v, 2), static_cast<int>(size_of(p.input(v).dtype)))),
        heads_each(threads / rope_and_cache::head_lanes(p.size(cos, 1), pairs)),
        neox(p.attributes.text("style") == "neox") {}
  bool aligned(const LaunchArgs& args) const;
};

std::vector<Program> programs(const Problem& p) {
  const KvCacheAxes axes(p.attributes.text("layout"));
  const auto size = [&](std::size_t operand, int axis) { return static_cast<int>(p.size(operand, axis)); };
  const auto weight = [&](std::size_t operand) { return p.has(operand) ? p.input(operand).dtype : DType::f32; };
  rope_and_cache::Config config{.head_size = size(q, 2),
                                .half = size(cos, 1),
                                .value_size = size(v, 2),
                                .q_heads = size(q, 1),
                                .kv_heads = size(k, 1),
                                .block = size(k_cache, axes.block),
                                .x = p.input(q).dtype,
                                .out = p.outputs[0].dtype,
                                .cache = p.input(k_cache).dtype,
                                .table = p.input(cos).dtype,
                                .q_weight = weight(q_weight),
                                .k_weight = weight(k_weight),
                                .position = p.input(positions).dtype,
                                .slot = p.input(slots).dtype,
                                .neox = p.attributes.text("style") == "neox",
                                .scales = scales_of(p, k_scale),
                                .threads = threads,
                                .aligned = false,
                                .columns = in_columns(p.input(v_cache))};
  const auto program = [&](bool aligned) -> Program {
    config.aligned = aligned;
    return {.header = "kernel/cuda/device/attention/rope_and_cache.cuh",
            .task = fmt::format("cermet::rope_and_cache::Task<cermet::rope_and_cache::Config{}>", config_text(config)),
            .threads = threads,
            .shared_bytes = kv_cache::slot_memory_bytes(kv_cache::most_item_tokens),
            .fallback = !aligned};
  };
  return {program(true), program(false)};
}

bool Settings::aligned(const LaunchArgs& args) const {
  const std::int64_t both = neox ? pairs : 2 * pairs;  // elements of a head in one access
  bool all = vectors_aligned(args.inputs[cos], pairs) && vectors_aligned(args.inputs[sin], pairs);
  for (const std::size_t operand : {q, k, q_weight, k_weight})
    all = all && (!args.has(operand) || vectors_aligned(args.inputs[operand], both));
  for (const std::size_t result : {0, 1}) all = all && vectors_aligned(args.outputs[result], both);
  const bool columns = args.outputs[2].shape.rank() == 5;  // stored one by one
  return all && vectors_aligned(args.inputs[v], elements) && (columns || vectors_aligned(args.outputs[2], elements));
}

rope_and_cache::Heads heads_of(const LaunchArgs& args, std::size_t which, std::size_t weight) {
  const TensorView& x = args.inputs[which];
  return {x.data, which != v && args.has(weight) ? args.inputs[weight].data : nullptr, x.strides[0], x.strides[1]};
}

kv_cache::Cache cache_of(const LaunchArgs& args, std::size_t which, const KvCacheAxes& axes) {
  const TensorView* scales = args.outputs.size() > 3 ? &args.outputs[3 + which]
                             : args.has(k_scale)     ? &args.inputs[k_scale + which]
                                                     : nullptr;
  return cuda::cache_of(args.outputs[1 + which], scales, axes);
}

void launch(const LaunchArgs& args, const Settings& settings) {
  const TensorView& out = args.outputs[0];
  const std::int64_t tokens = args.inputs[slots].shape[0], cache_heads = 2 * args.inputs[k].shape[1];
  rope_and_cache::Params p{};
  p.q = heads_of(args, q, q_weight);
  p.k = heads_of(args, k, k_weight);
  p.v = heads_of(args, v, v);
  p.out = out.data;
  p.k_cache = cache_of(args, 0, settings.axes);
  p.v_cache = cache_of(args, 1, settings.axes);
  p.cos = args.inputs[cos].data;
  p.sin = args.inputs[sin].data;
  p.positions = args.inputs[positions].data;
  p.slots = args.inputs[slots].data;
  p.out_token_stride = out.strides[0];
  p.out_head_stride = out.strides[1];
  p.cos_stride = args.inputs[cos].strides[0];
  p.sin_stride = args.inputs[sin].strides[0];
  p.table_rows = args.inputs[cos].shape[0];
  p.tokens = tokens;
  p.blocks = args.outputs[1].shape[0];
  p.eps = settings.eps;
  p.weight_offset = settings.weight_offset;
  const std::int64_t item_tokens = std::min(std::max<std::int64_t>(1, settings.heads_each / cache_heads) *
                                                std::clamp(tokens / tokens_of_one, std::int64_t{1}, most_tokens),
                                            std::int64_t{kv_cache::most_item_tokens});
  p.item_tokens = static_cast<std::uint32_t>(item_tokens);
  p.cache_items = static_cast<std::uint32_t>(div_up(tokens, item_tokens));
  args.queue->run(settings.aligned(args) ? aligned : unaligned,
                  p.cache_items + div_up(tokens * args.inputs[q].shape[1], settings.heads_each), p);
}

}  // namespace

extern const Kernel attention_rope_and_cache;
const Kernel attention_rope_and_cache{.name = "attention.rope_and_cache",
                                      .op = OpKind::rope_and_cache,
                                      .summary =
                                          "a few lanes normalize and rotate one head of a token in registers and store "
                                          "it, rounded or quantized, where it goes",
                                      .bind = [](const Problem& p) -> Launcher {
                                        return [settings = Settings(p)](const LaunchArgs& args) {
                                          launch(args, settings);
                                        };
                                      },
                                      .programs = programs};

}  // namespace cermet::cuda::attention_rope_and_cache_file
