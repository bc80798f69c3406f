// Host half of the kv_cache_write task.
#include "kernel/cuda/device/attention/kv_cache_write.hpp"

#include "base/checked.hpp"
#include "kernel/cuda/attention.hpp"
#include "kernel/cuda/task.hpp"
#include "op/kv_cache.hpp"

namespace cermet::cuda {
namespace {

enum Operand : std::size_t { k, v, k_cache, v_cache, slots, k_scale, v_scale };
constexpr int threads = 256;
/// Up to this many tokens every one has its own thread block; beyond, blocks share the search for tokens that are overwritten.
constexpr std::int64_t most_single_tokens = 1024;

std::vector<Program> programs(const Problem& p) {
  const KvCacheAxes axes(p.attributes.text("layout"));
  const char* scales = !p.has(k_scale) ? "none" : has_token_scales(p, k_scale) ? "token" : "head";
  return {
      {.header = "kernel/cuda/device/attention/kv_cache_write.cuh",
       .task = fmt::format("cermet::kv_cache::Task<cermet::kv_cache::Config{{.key_size = {}, .value_size = {}, .block = {}, .from = {}, .to = {}, .slot = {}, "
                           ".scales = cermet::kv_cache::Scales::{}, .threads = {}}}>",
                           p.size(k, 2), p.size(v, 2), p.size(k_cache, axes.block), device_name(p.input(k).dtype), device_name(p.input(k_cache).dtype),
                           device_name(p.input(slots).dtype), scales, threads),
       .threads = threads,
       .shared_bytes = kv_cache::most_item_tokens * 8}};
}

/// Whether rows of the last dimension start at multiples of four elements.
bool quads_aligned(const TensorView& view) {
  const auto bytes = 4 * size_of(view.dtype);
  bool aligned = reinterpret_cast<std::uintptr_t>(view.data) % bytes == 0;
  for (int axis = 0; axis + 1 < view.shape.rank(); ++axis) aligned &= view.strides[axis] % 4 == 0;
  return aligned;
}

kv_cache::Stream stream_of(const LaunchArgs& args, std::size_t which, const KvCacheAxes& axes) {
  const TensorView &from = args.inputs[which], &cache = args.outputs[which];
  kv_cache::Stream s{};
  s.from = from.data;
  s.cache = cache.data;
  s.token_stride = from.strides[0];
  s.head_stride = from.strides[1];
  s.page_stride = cache.strides[0];
  s.row_stride = cache.strides[axes.block];
  s.cache_head_stride = cache.strides[axes.heads];
  if (args.outputs.size() > 2) {
    const TensorView& scales = args.outputs[2 + which];
    s.scale = scales.as<float>();
    s.scale_page_stride = scales.strides[0];
    s.scale_row_stride = scales.strides[axes.block];
    s.scale_head_stride = scales.strides[axes.heads];
  } else if (args.has(k_scale)) {
    s.scale = args.inputs[k_scale + which].as<float>();
    s.scale_head_stride = args.inputs[k_scale + which].strides[0];
  }
  return s;
}

void launch(const LaunchArgs& args, const KvCacheAxes& axes) {
  kv_cache::Params p{};
  p.k = stream_of(args, k, axes);
  p.v = stream_of(args, v, axes);
  p.slots = args.inputs[slots].data;
  p.tokens = args.inputs[slots].shape[0];
  p.blocks = args.outputs[0].shape[0];
  p.heads = static_cast<std::int32_t>(args.inputs[k].shape[1]);
  p.item_tokens = p.tokens <= most_single_tokens ? 1 : kv_cache::most_item_tokens;
  p.aligned = quads_aligned(args.inputs[k]) && quads_aligned(args.inputs[v]) && quads_aligned(args.outputs[0]) && quads_aligned(args.outputs[1]);
  args.queue->run(0, div_up(p.tokens, p.item_tokens), p);
}

}  // namespace

extern const Kernel attention_kv_cache_write;
const Kernel attention_kv_cache_write{
    .name = "attention.kv_cache_write",
    .op = OpKind::kv_cache_write,
    .summary = "a warp converts or quantizes one vector of a token and head into its slot",
    .bind = [](const Problem& p) -> Launcher { return [axes = KvCacheAxes(p.attributes.text("layout"))](const LaunchArgs& args) { launch(args, axes); }; },
    .programs = programs};

}  // namespace cermet::cuda
