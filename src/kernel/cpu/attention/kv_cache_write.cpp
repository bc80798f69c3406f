#include "base/checked.hpp"
#include "kernel/cpu/attention/cache_stream.hpp"
#include "kernel/cpu/convert.hpp"
#include "kernel/cpu/index_list.hpp"
#include "kernel/kernel.hpp"
#include "op/operands.hpp"
#include "op/schema/reference.hpp"

namespace cermet::cpu {
namespace {

using enum op::kv_cache_write::Operand;

/// One of k and v with its cache.
struct Stream {
  const TensorView& from;
  CacheStream to;
  RunConverter convert;  ///< to the cache's type, or to float32 where it is quantized

  Stream(const LaunchArgs& args, std::size_t which, const KvCacheAxes& axes)
      : from(args.inputs[which]), to{args.outputs[which], nullptr, nullptr, axes} {
    if (args.outputs.size() > 2) to.token_scales = &args.outputs[2 + which];
    else if (args.has(k_scale)) to.head_scales = &args.inputs[k_scale + which];
    convert = real_converter(from.dtype, dtypes::real.contains(to.cache.dtype) ? to.cache.dtype : DType::f32);
  }
  const std::byte* source(std::int64_t token, std::int64_t head) const {
    return from.as<std::byte>() + (token * from.strides[0] + head * from.strides[1]) * byte_size(from.dtype);
  }
};

/// Every token of one head, in order, so that the last of equal slots stays. `scratch`: float32, as long as the head.
void write_head(const Stream& s, const IndexList& slot_list, std::int64_t head, float* scratch) {
  const std::int64_t length = s.from.shape[2];
  const bool real = dtypes::real.contains(s.to.cache.dtype);
  for (std::int64_t t = 0; t < slot_list.count(); ++t) {
    const std::int64_t slot = slot_list[t];
    if (slot < 0) continue;
    s.convert(s.source(t, head), real ? s.to.target(slot, head) : reinterpret_cast<std::byte*>(scratch), length);
    if (!real) s.to.write(scratch, slot, head);
  }
}

std::int64_t scratch_length(std::int64_t d, std::int64_t dv) { return round_up(std::max(d, dv), 16); }

void launch(const LaunchArgs& args, const KvCacheAxes& axes) {
  const IndexList slot_list(args.inputs[slots]);
  const Stream streams[2] = {{args, k, axes}, {args, v, axes}};
  const TensorView& cache = args.outputs[0];
  for (std::int64_t t = 0; t < slot_list.count(); ++t)
    if (slot_list[t] >= 0)
      check_index("kv_cache_write", "4 (slots)", slot_list[t], cache.shape[0] * cache.shape[axes.block]);
  const std::int64_t heads = args.inputs[k].shape[1],
                     step = scratch_length(args.inputs[k].shape[2], args.inputs[v].shape[2]);
  float* scratch = reinterpret_cast<float*>(args.workspace);
  args.pool->parallel_for(heads * 2, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) write_head(streams[i % 2], slot_list, i / 2, scratch + i * step);
  });
}

}  // namespace

extern const Kernel cache_kv_cache_write{
    .name = "cache.kv_cache_write",
    .op = OpKind::kv_cache_write,
    .summary = "converts or quantizes each head's vectors into their slots; heads spread over threads",
    .bind = [](const Problem& p) -> Launcher {
      return [axes = KvCacheAxes(p.attributes.text("layout"))](const LaunchArgs& args) { launch(args, axes); };
    },
    .workspace = [](const Problem& p, int) -> std::int64_t {
      return p.size(k, 1) * 2 * scratch_length(p.size(k, 2), p.size(v, 2)) * 4;
    },
};

}  // namespace cermet::cpu
