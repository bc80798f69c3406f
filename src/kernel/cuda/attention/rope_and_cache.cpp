// Host half of the rope_and_cache task.
#include "kernel/cuda/device/attention/rope_and_cache.hpp"

#include "base/checked.hpp"
#include "kernel/cuda/attention/kv_cache.hpp"
#include "kernel/cuda/item_axes.hpp"
#include "kernel/cuda/task.hpp"
#include "kernel/kernel.hpp"
#include "op/rope_and_cache.hpp"

namespace cermet::cuda::attention_rope_and_cache_file {
namespace {

using enum rope_and_cache_operands::Operand;
enum Programs : std::size_t { aligned, unaligned };
constexpr int threads = 128;

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
  const auto weight = [&](std::size_t operand) {
    return device_name(p.has(operand) ? p.input(operand).dtype : DType::f32);
  };
  const auto program = [&](bool aligned) -> Program {
    return {
        .header = "kernel/cuda/device/attention/rope_and_cache.cuh",
        .task = fmt::format(
            "cermet::rope_and_cache::Task<cermet::rope_and_cache::Config{{.head_size = {}, .half = {}, .value_size = "
            "{}, .q_heads = {}, "
            ".kv_heads = {}, .block = {}, .x = {}, .out = {}, .cache = {}, .table = {}, .q_weight = {}, .k_weight = "
            "{}, .position = {}, "
            ".slot = {}, .neox = {}, .scales = cermet::kv_cache::Scales::{}, .threads = {}, .aligned = {}}}>",
            p.size(q, 2), p.size(cos, 1), p.size(v, 2), p.size(q, 1), p.size(k, 1), p.size(k_cache, axes.block),
            device_name(p.input(q).dtype), device_name(p.outputs[0].dtype), device_name(p.input(k_cache).dtype),
            device_name(p.input(cos).dtype), weight(q_weight), weight(k_weight), device_name(p.input(positions).dtype),
            device_name(p.input(slots).dtype), device_name(p.attributes.text("style") == "neox"),
            scales_name(p, k_scale), threads, device_name(aligned)),
        .threads = threads,
        .shared_bytes = kv_cache::slot_memory_bytes(
            kv_cache::most_item_tokens),  // an item has at least three heads of each token, but for two
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
  return all && vectors_aligned(args.inputs[v], elements) && vectors_aligned(args.outputs[2], elements);
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

/// Which heads of q, k or v an item has: the next `each` of a token's, which come in this order. Where tokens end
/// within an item, all of its tokens'.
class HeadShares {
 public:
  HeadShares(std::int64_t tokens, std::int64_t q_heads, std::int64_t kv_heads, std::int64_t each)
      : q_heads_(q_heads),
        kv_heads_(kv_heads),
        each_(each),
        divides_(tokens == 1 || (q_heads + 2 * kv_heads) % each == 0) {
    grid_ = item_grid(1, 1, tokens, div_up(heads(), each));
  }
  ByteRange of_tokens(const TensorView& view, std::size_t operand) const {
    return divides_ ? range_of_items(view, grid_, {tiles_along(grid_rows, 1), along(operand)})
                    : rows_of_units(view, 2, heads(), each_);
  }
  /// Keys or values of those heads, in any slot; or their scales.
  ByteRange of_cache(const TensorView& view, std::size_t operand, const KvCacheAxes& axes) const {
    if (!divides_) return byte_range(view);
    return axes.heads == 1 ? range_of_items(view, grid_, {{}, along(operand)})
                           : range_of_items(view, grid_, {{}, {}, along(operand)});
  }

 private:
  std::int64_t heads() const { return q_heads_ + 2 * kv_heads_; }
  Along along(std::size_t operand) const {
    return {grid_columns, each_, each_, operand == q ? 0 : operand == k ? -q_heads_ : -q_heads_ - kv_heads_, 1};
  }

  std::int64_t q_heads_, kv_heads_, each_;
  bool divides_;
  ItemGrid grid_;
};

void launch(const LaunchArgs& args, const Settings& settings) {
  const TensorView& out = args.outputs[0];
  const std::int64_t tokens = args.inputs[slots].shape[0],
                     heads = args.inputs[q].shape[1] + 2 * args.inputs[k].shape[1];
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
  args.queue->run(settings.aligned(args) ? aligned : unaligned, div_up(tokens * heads, settings.heads_each), p);
  if (tokens == 0 || !args.queue->wants_ranges()) return;
  std::array<ByteRange, 16> reads, writes;
  const HeadShares own(tokens, args.inputs[q].shape[1], args.inputs[k].shape[1], settings.heads_each);
  for (std::size_t i = 0; i < args.inputs.size(); ++i)
    reads[i] = i == q || i == k || i == v ? own.of_tokens(args.inputs[i], i) : byte_range(args.inputs[i]);
  for (std::size_t i = 0; i < args.outputs.size(); ++i)
    writes[i] = i == 0 ? own.of_tokens(out, q) : own.of_cache(args.outputs[i], i % 2 == 1 ? k : v, settings.axes);
  args.queue->declare(std::span(reads.data(), args.inputs.size()), std::span(writes.data(), args.outputs.size()));
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
