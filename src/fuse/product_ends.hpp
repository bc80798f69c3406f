// Operators that end some products though they are not of one place each.
#pragma once

#include <vector>

#include "graph/graph.hpp"
#include "op/schema/region.hpp"

namespace cermet {

struct ProductEnd {
  OpKind op;
  bool reads_parts = false;  ///< of the product's columns, through splits and reshapes that nothing else reads; all of
                             ///< its results leave
};
/// Null where an operator ends none.
const ProductEnd* end_of(OpKind op);

/// Whether a node only makes parts of a value for an end that reads parts. `is_result`: by value, whether it is one of
/// the graph.
bool leads_to_end(const Graph& graph, std::int32_t node, const std::vector<bool>& is_result);
/// Whether at most two results leave behind the anchor, or those of an end that reads parts and no others.
bool is_ended(const Region& region);

}  // namespace cermet
