// What group_norm and instance_norm share: x[B, C, ..] normalized over groups of channels.
#pragma once

#include "op/norm.hpp"
#include "op/schema/operator.hpp"

namespace cermet {

struct GroupNormalization {
  std::string_view summary, semantics;
  std::vector<AttributeSpec> attributes;
  /// Groups of channels of a problem with these attributes and so many channels.
  std::int64_t (*groups)(const Attributes& attributes, std::int64_t channels);
  std::vector<Case> cases;
};
OpSpec define_group_normalization(GroupNormalization op);

}  // namespace cermet
