// What tests that hold for any operator are instantiated with.
#pragma once

#include <vector>

#include "op/schema/operator.hpp"

namespace cermet {

inline std::vector<const OpDefinition*> every_operator() {
  std::vector<const OpDefinition*> list;
  for (const OpDefinition& op : all_operators()) list.push_back(&op);
  return list;
}

}  // namespace cermet
