// Whether a region is better computed by more launches than one.
#pragma once

#include "op/schema/region.hpp"

namespace cermet {

/// Whether launches of nodes [0, cut) and of the others, each chosen for itself, are modelled to take less time than
/// one of the whole region, which some kernel takes. False where no kernel takes a part; a kernel without a model takes
/// no time.
bool is_faster_apart(const Region& region, std::size_t cut);

}  // namespace cermet
