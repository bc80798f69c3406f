// A total order of float32 values for choosing the largest: NaN is above everything, both zeros are equal. Readable by
// host and device compilers.
#pragma once

#include "format/half.hpp"

namespace cermet {

/// Keys compare as the values do; larger key, larger value. Equal values have equal keys, and every NaN has the
/// largest.
CERMET_HOST_DEVICE inline cermet_u32 order_key(float value) {
  if (value != value) return 0xffffffffu;
  const cermet_u32 bits = format::float_bits(value + 0.0f);  // -0 becomes +0
  return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

/// The value of a key that order_key gave.
CERMET_HOST_DEVICE inline float value_of_order_key(cermet_u32 key) {
  return format::float_from_bits(key & 0x80000000u ? key & 0x7fffffffu : ~key);
}

}  // namespace cermet
