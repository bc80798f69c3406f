#include "kernel/cpu/rowwise/channel_group.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/cpu/rowwise/channel_group.cpp"
#include <hwy/foreach_target.h>

#include "kernel/cpu/rowwise/moments-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace cermet::cpu::HWY_NAMESPACE {

/// y = x * factor + added over one channel of a group.
void scale_channel(RowIn x, RowOut y, std::size_t begin, std::size_t length, float factor, float added) {
  const auto f = hn::Set(FloatTag(), factor), a = hn::Set(FloatTag(), added);
  TileBuffer x_buffer, y_buffer;
  for_tiles(length, [&](std::size_t first, std::size_t n) HWY_ATTR {
    const float* values = x.read(begin + first, n, x_buffer);
    float* result = y.tile(begin + first, y_buffer);
    for_vectors(n, [&](std::size_t i, std::size_t count)
                       HWY_ATTR { store_n(hn::MulAdd(load_n(values + i, count), f, a), result + i, count); });
    y.commit(begin + first, n, y_buffer);
  });
}

/// A pass for the mean, one for the variance, and one that scales channel by channel.
void normalize(const ChannelGroup& group, const ChannelNorm& norm) {
  static ThreadPool own_thread(1);
  const auto parameter = [&](const TensorView& vector, std::int64_t c, float fallback) HWY_ATTR {
    TileBuffer buffer;
    return vector.present ? *RowIn{vector.as<std::byte>(), vector.dtype}.read(static_cast<std::size_t>(c), 1, buffer)
                          : fallback;
  };
  const RowIn x{group.x, group.x_dtype};
  const RowOut y{group.y, group.y_dtype};
  const MeanAndScale moments = statistics(x, static_cast<std::size_t>(group.channels * group.positions), norm.eps);
  for (std::int64_t c = 0; c < group.channels; ++c) {
    const float factor = moments.scale * parameter(norm.weight, group.first + c, 1);
    const float added = parameter(norm.bias, group.first + c, 0) - moments.mean * factor;
    scale_channel(x, y, static_cast<std::size_t>(c * group.positions), static_cast<std::size_t>(group.positions),
                  factor, added);
    if (!norm.after) continue;
    const TensorView made(y.data + c * group.positions * byte_size(y.dtype), y.dtype, {group.positions});
    norm.after({.inputs = {&made, 1}, .outputs = {&made, 1}, .pool = &own_thread});
  }
}

}  // namespace cermet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cermet::cpu {

HWY_EXPORT(normalize);

void normalize_group(const ChannelGroup& group, const ChannelNorm& norm) {
  HWY_DYNAMIC_DISPATCH(normalize)(group, norm);
}

}  // namespace cermet::cpu
#endif
