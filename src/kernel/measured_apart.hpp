// What a kernel says in place of a cut (Kernel::cut) where no model tells what was measured.
#pragma once

#include <cstddef>

namespace cermet {

/// Launches for the parts were measured to be faster: planners do not form the region, and who asks for it has it.
inline constexpr std::size_t measured_apart = std::size_t(-1);

}  // namespace cermet
