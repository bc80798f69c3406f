// The attributes of roi_align.
#pragma once

#include "op/schema/operator.hpp"
#include "op/roi_bin.hpp"

namespace cermet {

roi::Rule roi_rule(const Attributes& attributes);

}  // namespace cermet
