// What `cermet bench comm` has measured, and how it is shown.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/ui/console.hpp"
#include "comm/measure.hpp"
#include "comm/peer_routes.hpp"

namespace cermet::cli {

struct CommRow {
  Collective kind = Collective::all_reduce;
  std::optional<comm::Route> route = {};  ///< where every way between GPUs was measured by itself
  comm::CommTiming timing = {};
  std::string name = {};
};

struct CommRows {
  std::string engine = {}, dtype = {};
  int ranks = 1;
  std::vector<CommRow> rows = {};
  int checked = 0;                        ///< calls that were compared with their definition
  std::vector<std::string> missing = {};  ///< routes that the devices do not have: "nccl: why"
  std::string stored = {};                ///< file of the times
};

/// Of rows that have routes.
comm::RouteTimes times_of(const CommRows& measured);
void print(Console& console, const CommRows& measured);
/// Time over size, as SVG.
void plot(Console& console, const std::string& file, const CommRows& measured);

}  // namespace cermet::cli
