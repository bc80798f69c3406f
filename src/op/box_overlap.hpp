// Whether a box suppresses another: one text for the reference and the kernels of every backend, in float64. Readable
// by host and device compilers.
#pragma once

#include "format/half.hpp"

namespace cermet {

struct Box {
  double low[2], high[2];
};

/// Two opposite corners, or with `centered` the centre, width and height.
CERMET_HOST_DEVICE inline Box box_of(double a, double b, double c, double d, bool centered) {
  if (centered) return {{a - c / 2, b - d / 2}, {a + c / 2, b + d / 2}};
  return {{a < c ? a : c, b < d ? b : d}, {a < c ? c : a, b < d ? d : b}};
}

/// Whether intersection over union is above the threshold; boxes without an area overlap nothing.
CERMET_HOST_DEVICE inline bool overlaps(const Box& a, const Box& b, double threshold) {
  double shared = 1, area_a = 1, area_b = 1;
  for (int i = 0; i < 2; ++i) {
    const double low = a.low[i] > b.low[i] ? a.low[i] : b.low[i], high = a.high[i] < b.high[i] ? a.high[i] : b.high[i];
    if (!(high > low)) return false;
    shared *= high - low;
    area_a *= a.high[i] - a.low[i];
    area_b *= b.high[i] - b.low[i];
  }
  const double joined = area_a + area_b - shared;
  return area_a > 0 && area_b > 0 && joined > 0 && shared / joined > threshold;
}

}  // namespace cermet
