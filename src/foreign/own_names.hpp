// Cermet's own kernels, whose names others may not take.
#pragma once

#include <string_view>

namespace cermet::foreign {

bool is_own_kernel(std::string_view name);

}  // namespace cermet::foreign
