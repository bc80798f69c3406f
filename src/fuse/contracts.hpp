// How values between the nodes of a region are rounded, all at once.
#pragma once

#include "op/schema/region.hpp"

namespace cermet {

/// Lets f16 and bf16 values between nodes stay float32; false where there are none.
bool relax(Region& region);
/// Takes that back.
void tighten(Region& region);

}  // namespace cermet
