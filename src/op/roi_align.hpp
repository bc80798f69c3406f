// The attributes of roi_align.
#pragma once

#include "op/roi_bin.hpp"
#include "op/schema/operator.hpp"

namespace cermet {

roi::Rule roi_rule(const Attributes& attributes);

}  // namespace cermet
