// The attributes of grid_sample.
#pragma once

#include "op/grid_axis.hpp"
#include "op/schema/operator.hpp"

namespace cermet {

grid::Rule grid_rule(const Attributes& attributes);

}  // namespace cermet
