// A compilation as the data of a page: `cermet explain --json` prints it, and its text is made of it.
#pragma once

#include <vector>

#include "cli/ui/console.hpp"
#include "runtime/record.hpp"

namespace cermet::cli {

/// One graph that was compiled. `measured`: seconds of one run by step, or nothing.
///   mode, nodes_before, nodes, blocks_launched, views, intermediate_bytes, peak_bytes, workspace_bytes,
///   modelled_seconds, measured_seconds? rules [{name, times}], reasons [{why, text}], reason_counts [{why, summary,
///   edges}] blocks [{ops [{op, name, type, scope, attributes}], mapping, view?, kernel, config, bytes, operations,
///   seconds, least, measured?, reads, writes}] edges [[from, to, value, type, bytes, reason]], inputs [{name, type,
///   readers}], outputs [{name, block}] repeats [[first, length, times]]: of blocks
/// Blocks are in an order in which they can run, views among them.
Json plan_json(const CompileRecord& record, const std::vector<double>& measured);

}  // namespace cermet::cli
