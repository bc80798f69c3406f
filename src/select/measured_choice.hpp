// A measured choice against the region at hand: entries are as old as the measurement, and buckets hold regions of several sizes.
#pragma once

#include <vector>

#include "select/select.hpp"

namespace cermet {

/// Takes the first of these whose kernel is a candidate that does not decline and has the configuration; lists the others before it as ignored, each with its
/// reason.
void take_measured(Selection& selection, std::vector<FoundTuning> found);

}  // namespace cermet
