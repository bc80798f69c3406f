// Host half of the kv_cache_write task.
#include "kernel/cuda/device/attention/kv_cache_write.hpp"

#include "base/checked.hpp"
#include "kernel/cuda/attention/kv_cache.hpp"
#include "kernel/cuda/config_text.hpp"
#include "kernel/cuda/narrow.hpp"
#include "kernel/cuda/task.hpp"
#include "kernel/kernel.hpp"
#include "op/operands.hpp"

namespace cermet::cuda::attention_kv_cache_write_file {
namespace {

using enum op::kv_cache_write::Operand;
constexpr int threads = 256;
/// Up to this many tokens every one has its own thread block; beyond, blocks share the search for tokens that are
/// overwritten.
constexpr std::int64_t most_single_tokens = 1024;

std::vector<Program> programs(const Problem& p) {
  const KvCacheAxes axes(p.attributes.text("layout"));
  const kv_cache::WriteConfig config{.key_size = static_cast<int>(p.size(k, 2)),
                                     .value_size = static_cast<int>(p.size(v, 2)),
                                     .block = static_cast<int>(p.size(k_cache, axes.block)),
                                     .from = p.input(k).dtype,
                                     .to = p.input(k_cache).dtype,
                                     .slot = p.input(slots).dtype,
                                     .scales = scales_of(p, k_scale),
                                     .threads = threads,
                                     .columns = in_columns(p.input(v_cache))};
  return {{.header = "kernel/cuda/device/attention/kv_cache_write.cuh",
           .task = fmt::format("cermet::kv_cache::WriteTask<cermet::kv_cache::WriteConfig{}>", config_text(config)),
           .threads = threads,
           .shared_bytes = kv_cache::slot_memory_bytes(kv_cache::most_item_tokens)}};
}

kv_cache::Stream stream_of(const LaunchArgs& args, std::size_t which, const KvCacheAxes& axes) {
  const TensorView& from = args.inputs[which];
  const TensorView* scales = args.outputs.size() > 2 ? &args.outputs[2 + which]
                             : args.has(k_scale)     ? &args.inputs[k_scale + which]
                                                     : nullptr;
  return {from.data, from.strides[0], from.strides[1], cache_of(args.outputs[which], scales, axes)};
}

void launch(const LaunchArgs& args, const KvCacheAxes& axes) {
  const std::int64_t tokens = args.inputs[slots].shape[0];
  kv_cache::WriteParams p{};
  p.k = stream_of(args, k, axes);
  p.v = stream_of(args, v, axes);
  p.slots = args.inputs[slots].data;
  p.tokens = tokens;
  p.blocks = args.outputs[0].shape[0];
  p.heads = narrow(args.inputs[k].shape[1], "attention", "heads");
  p.item_tokens = tokens <= most_single_tokens ? 1 : kv_cache::most_item_tokens;
  p.aligned = quads_aligned(args.inputs[k]) && quads_aligned(args.inputs[v]) && quads_aligned(args.outputs[0]) &&
              quads_aligned(args.outputs[1]);
  args.queue->run(0, div_up(tokens, p.item_tokens), p);
}

}  // namespace

extern const Kernel attention_kv_cache_write;
const Kernel attention_kv_cache_write{
    .name = "attention.kv_cache_write",
    .op = OpKind::kv_cache_write,
    .summary = "a warp converts or quantizes one vector of a token and head into its slot",
    .bind = [](const Problem& p) -> Launcher {
      return [axes = KvCacheAxes(p.attributes.text("layout"))](const LaunchArgs& args) { launch(args, axes); };
    },
    .programs = programs};

}  // namespace cermet::cuda::attention_kv_cache_write_file
