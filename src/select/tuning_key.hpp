// What a measured choice is for: a region on a device.
#pragma once

#include <cstddef>
#include <set>
#include <string>

#include "op/schema/region.hpp"
#include "select/device_identity.hpp"

namespace cermet {

/// Canonical texts, compared in full.
struct TuningKey {
  std::string region, device, versions;
  friend bool operator==(const TuningKey&, const TuningKey&) = default;
};

std::size_t hash_of(const TuningKey& key);

/// The smallest power of two that is not less: the bucket of a symbol's maximum. A choice is the same throughout a
/// bucket, within which sizes differ by less than two; that costs time at most, because every entry is checked against
/// the region at hand (select/tuned_choice.hpp).
std::int64_t size_bucket(std::int64_t maximum);

/// The region as its text spells it: operators with their wiring and rounding, element types, static dimensions,
/// attributes; with symbols numbered in the order of their appearance (s0, s1), then the constant operands and each
/// symbol's bucket: `linear(bf16[s0, 2048], bf16[8192, 2048]) {out_dtype = "bf16"}; constant $1; s0 <= 32`.
std::string tuning_text(const Region& region);

/// Its part that names the constant operands: "; constant $1".
std::string constants_text(const Region& region);
/// The symbols of its operands' dimensions.
std::set<Symbol> symbols_of(const Region& region);

TuningKey tuning_key(const Region& region, const DeviceIdentity& device);

}  // namespace cermet
