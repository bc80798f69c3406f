// How long rows take that are summed over ranks, added to the residual and normalized: what follows every product of a
// model over several ranks.
#pragma once

#include "comm/measure.hpp"
#include "kernel/communicator.hpp"

namespace cermet::cli {

/// Columns of a row.
inline constexpr std::int64_t norm_columns = 4096;

struct NormTiming {
  comm::CommTiming timing;   ///< of one layer, in a captured graph of 16
  std::size_t launches = 0;  ///< of a layer
};

/// `bytes`: of the rows that each rank has, in float32; at least one row. `group` is on `device` ("cuda:0"). Every rank
/// calls it.
NormTiming measure_norm(Communicator& group, const std::string& device, std::int64_t bytes, double seconds);

}  // namespace cermet::cli
