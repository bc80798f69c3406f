// Which steps are to share a launch of a GPU, and the kernels that they take for it.
#pragma once

#include "runtime/step/compilation.hpp"

namespace cermet {

/// Fills Compilation::walked and walk_losses: marked steps whose options ask for a walk, and those that a walk is
/// predicted to be faster for. Gives them kernels that can join; all others keep those that are best by themselves.
/// `choices` are complete.
void choose_walks(Compilation& c);

}  // namespace cermet
