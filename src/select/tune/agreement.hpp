// Whether two kernels computed the same, within what their operators allow.
#pragma once

#include <string>
#include <vector>

#include "jit/program_store.hpp"
#include "op/schema/region.hpp"

namespace cermet {

/// Elements of a result, in device memory where the queue has a device: all of them, or of a large one evenly spread
/// pieces, its first and last among them. Values of fp8 types are numbers of representable values.
std::vector<double> sampled_values(const TensorView& result, const DeviceQueue& queue);

/// What is wrong with the values of a result beside those that another kernel computed; empty where nothing is. Both
/// may be off by the bound of the region's operators (see compare() in op/schema/case_data.hpp), whose magnitude is
/// taken to be the largest value: half a unit in the last place for the rounding of the result, and rounding_depth *
/// 2^-24 * magnitude for sums; integers and fp8 by integer_slack.
std::string disagreement(const Region& region, std::size_t result, const std::vector<double>& expected,
                         const std::vector<double>& found);

}  // namespace cermet
