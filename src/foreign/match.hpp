// A region as a manifest sees it: the element types and sizes behind its names, or why it does not take the region.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "foreign/manifest.hpp"
#include "kernel/config.hpp"
#include "op/schema/region.hpp"

namespace cermet::foreign {

/// Element types and, by variable, between what it lies for the symbols' values up to their maximum. Fields of the tile
/// have no value yet: 0.
struct Match {
  std::optional<std::string> reason;  ///< why there is none
  std::vector<DType> types;           ///< by the manifest's
  std::vector<Interval> values;
  std::vector<double> reals;  ///< attributes that are no integers; 0 of other variables
};

Match match(const Manifest& manifest, const Region& region);

/// Values with those of a configuration.
std::vector<Interval> with_config(const Manifest& manifest, const Match& match, const Config& config);

/// Every combination of the tile's fields that the conditions admit for all values and that there is code for, in the
/// order of the manifest; one without fields where there is no tile. Empty where no condition admits any: `why` gets
/// the one that the first combination breaks.
std::vector<Config> configs(const Manifest& manifest, const Match& match, std::string* why = nullptr);

/// The code of a configuration; null where there is none.
const Instance* instance_of(const Manifest& manifest, const Config& config);

/// The one value of an expression that is known before the first run. Throws Error(unsupported) that begins with `what`
/// where it is not.
std::int64_t known_value(const Expression& expression, std::span<const Interval> values, std::string_view what);

/// Whether code for these architectures runs on a GPU of this compute capability: sm_80 on 8.0 and later ones of
/// generation 8, sm_90a on 9.0 alone, compute_80 on 8.0 and all later ones, compute_90a on 9.0 alone.
bool runs_on(std::span<const std::string> architectures, int compute_capability);

}  // namespace cermet::foreign
