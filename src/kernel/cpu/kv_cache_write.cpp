#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/cpu/kv_cache_write.cpp"
#include <hwy/foreach_target.h>

#include "base/checked.hpp"
#include "format/fp8.hpp"
#include "kernel/cpu/convert.hpp"
#include "kernel/cpu/index_list.hpp"
#include "kernel/cpu/vec-inl.hpp"
#include "kernel/kernel.hpp"
#include "op/kv_cache.hpp"
#include "op/reference.hpp"

HWY_BEFORE_NAMESPACE();
namespace cermet::cpu::HWY_NAMESPACE {

/// Largest magnitude of a vector; NaN where it holds one.
float absolute_maximum(const float* x, std::size_t length) {
  auto largest = hn::Zero(FloatTag()), nan = hn::Zero(FloatTag());
  for_vectors(length, [&](std::size_t i, std::size_t n) HWY_ATTR {
    const auto v = hn::Abs(load_n(x + i, n));
    largest = hn::Max(largest, hn::IfThenZeroElse(hn::IsNaN(v), v));
    nan = hn::IfThenElse(hn::IsNaN(v), v, nan);
  });
  const float poison = sum_lanes(nan);  // 0, or NaN
  return poison + max_lanes(largest);
}

/// codes = x / scale, rounded half to even, saturated; NaN gives 0.
void encode_int8(const float* x, float scale, std::int8_t* codes, std::size_t length) {
  const FloatTag f;
  const hn::Rebind<std::int8_t, FloatTag> narrow;
  const auto divisor = hn::Set(f, scale);
  for_vectors(length, [&](std::size_t i, std::size_t n) HWY_ATTR {
    auto v = hn::Div(load_n(x + i, n), divisor);
    v = hn::IfThenZeroElse(hn::IsNaN(v), v);
    v = hn::Min(hn::Max(v, hn::Set(f, -128.0f)), hn::Set(f, 127.0f));
    HWY_ALIGN std::int8_t buffer[hn::MaxLanes(f)];
    hn::StoreU(hn::DemoteTo(narrow, hn::NearestInt(v)), narrow, buffer);
    std::copy_n(buffer, n, codes + i);
  });
}

}  // namespace cermet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cermet::cpu {

HWY_EXPORT(absolute_maximum);
HWY_EXPORT(encode_int8);

namespace {

enum Operand : std::size_t { k, v, k_cache, v_cache, slots, k_scale, v_scale };

/// One of k and v on its way into its cache.
struct Stream {
  const TensorView &from, &cache;
  const TensorView *scales, *token_scales;  ///< one of them, or neither
  KvCacheAxes axes;
  RunConverter convert;  ///< to the cache's type where that is real, else to float32

  Stream(const LaunchArgs& args, std::size_t which, const KvCacheAxes& cache_axes)
      : from(args.inputs[which]), cache(args.outputs[which]), scales(nullptr), token_scales(nullptr), axes(cache_axes) {
    if (args.outputs.size() > 2) token_scales = &args.outputs[2 + which];
    else if (args.has(k_scale)) scales = &args.inputs[k_scale + which];
    convert = real_converter(from.dtype, dtypes::real.contains(cache.dtype) ? cache.dtype : DType::f32);
  }
  const std::byte* source(std::int64_t token, std::int64_t head) const {
    return from.as<std::byte>() + (token * from.strides[0] + head * from.strides[1]) * static_cast<std::int64_t>(size_of(from.dtype));
  }
  /// Offset in elements of a slot's vector in the cache, or of its scale.
  std::int64_t offset(const TensorView& view, std::int64_t slot, std::int64_t head) const {
    const std::int64_t block = view.shape[axes.block];
    return slot / block * view.strides[0] + slot % block * view.strides[axes.block] + head * view.strides[axes.heads];
  }
};

void encode(const float* x, float scale, bool scaled, DType dtype, void* codes, std::int64_t length) {
  const auto n = static_cast<std::size_t>(length);
  if (scaled && scale == 0) std::fill_n(static_cast<std::uint8_t*>(codes), n, std::uint8_t{0});
  else if (dtype == DType::i8) HWY_DYNAMIC_DISPATCH(encode_int8)(x, scale, static_cast<std::int8_t*>(codes), n);
  else if (dtype == DType::f8_e4m3)
    for (std::size_t i = 0; i < n; ++i) static_cast<format::e4m3*>(codes)[i] = format::to_e4m3(x[i] / scale);
  else
    for (std::size_t i = 0; i < n; ++i) static_cast<format::e5m2*>(codes)[i] = format::to_e5m2(x[i] / scale);
}

float largest_code(DType dtype) { return dtype == DType::i8 ? 127.0f : dtype == DType::f8_e4m3 ? format::e4m3_max : format::e5m2_max; }

/// Every token of one head, in order, so that the last of equal slots stays. `scratch`: float32, as long as the head.
void write_head(const Stream& s, const IndexList& slot_list, std::int64_t head, float* scratch) {
  const std::int64_t length = s.from.shape[2];
  const bool real = dtypes::real.contains(s.cache.dtype);
  for (std::int64_t t = 0; t < slot_list.count(); ++t) {
    const std::int64_t slot = slot_list[t];
    if (slot < 0) continue;
    std::byte* target = s.cache.as<std::byte>() + s.offset(s.cache, slot, head) * static_cast<std::int64_t>(size_of(s.cache.dtype));
    if (real) {
      s.convert(s.source(t, head), target, length);
      continue;
    }
    s.convert(s.source(t, head), reinterpret_cast<std::byte*>(scratch), length);
    float scale = s.scales ? s.scales->as<const float>()[head] : 1.0f;
    if (s.token_scales) {
      scale = HWY_DYNAMIC_DISPATCH(absolute_maximum)(scratch, static_cast<std::size_t>(length)) / largest_code(s.cache.dtype);
      s.token_scales->as<float>()[s.offset(*s.token_scales, slot, head)] = scale;
    }
    encode(scratch, scale, s.scales || s.token_scales, s.cache.dtype, target, length);
  }
}

std::int64_t scratch_length(std::int64_t d, std::int64_t dv) { return round_up(std::max(d, dv), 16); }

void launch(const LaunchArgs& args, const KvCacheAxes& axes) {
  const IndexList slot_list(args.inputs[slots]);
  const Stream streams[2] = {{args, k, axes}, {args, v, axes}};
  const TensorView& cache = args.outputs[0];
  for (std::int64_t t = 0; t < slot_list.count(); ++t)
    if (slot_list[t] >= 0) check_index("kv_cache_write", "4 (slots)", slot_list[t], cache.shape[0] * cache.shape[axes.block]);
  const std::int64_t heads = args.inputs[k].shape[1], step = scratch_length(args.inputs[k].shape[2], args.inputs[v].shape[2]);
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
    .bind = [](const Problem& p) -> Launcher { return [axes = KvCacheAxes(p.attributes.text("layout"))](const LaunchArgs& args) { launch(args, axes); }; },
    .workspace = [](const Problem& p, int) -> std::int64_t { return p.size(k, 1) * 2 * scratch_length(p.size(k, 2), p.size(v, 2)) * 4; },
};

}  // namespace cermet::cpu
#endif
