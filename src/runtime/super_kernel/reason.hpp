// Why a launch cannot join a super-kernel, as data.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace cermet {

enum class SuperReason : std::uint8_t {
  vendor_product,
  outside_code,
  host_work,
  fill,
  clusters,
  shared_memory,
  many_items,
  form,
  architecture,
  loss,
};

/// A reason for readers.
struct SuperReasonInfo {
  SuperReason reason;
  std::string_view id, sentence, advice;  ///< "vendor-product", what it is, what to do
};
std::span<const SuperReasonInfo> super_reasons();  ///< by SuperReason
inline const SuperReasonInfo& info_of(SuperReason reason) { return super_reasons()[static_cast<std::size_t>(reason)]; }

}  // namespace cermet
