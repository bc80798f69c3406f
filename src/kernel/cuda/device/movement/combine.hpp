// How updates meet what is there.
#pragma once

#include "kernel/cuda/device/integers.hpp"

namespace cermet::scatter {

enum class Reduction : uint8_t { none, sum, prod, max, min };
constexpr const char* name_of(Reduction reduction) {
  switch (reduction) {
    case Reduction::none: return "cermet::scatter::Reduction::none";
    case Reduction::sum: return "cermet::scatter::Reduction::sum";
    case Reduction::prod: return "cermet::scatter::Reduction::prod";
    case Reduction::max: return "cermet::scatter::Reduction::max";
    case Reduction::min: return "cermet::scatter::Reduction::min";
  }
  return "";
}

}  // namespace cermet::scatter
