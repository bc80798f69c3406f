// A normalization of channels with what its kernel does around it: channels joined and moved to the front before, an
// activation and channels moved to the back afterwards.
#pragma once

#include <optional>
#include <vector>

#include "kernel/kernel.hpp"

namespace cermet::cpu {

struct ChannelRegion {
  std::int64_t groups;  ///< of each sample; 0: one for each channel
  std::vector<std::size_t>
      parts;  ///< operands of the region that have the channels of x side by side: several of a concat
  std::optional<std::size_t> weight, bias;
  std::optional<std::size_t> joined;        ///< the result of the region that is the concat's
  std::size_t result = 0;                   ///< the one that is normalized
  std::size_t activation = 0;               ///< a node; 0 where there is none
  bool from_last = false, to_last = false;  ///< whether parts and the result have their channels last

  /// Of a region that is not declined.
  explicit ChannelRegion(const Region& region);
  static Decline declines(const Region& region);
};

}  // namespace cermet::cpu
