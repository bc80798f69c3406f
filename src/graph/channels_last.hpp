// Chooses where a graph keeps the channels of its images: last, wherever a convolution is near, so that rows of
// channels are dense for products and vectors.
#pragma once

#include "graph/graph.hpp"

namespace cermet {

/// The same computation with convolutions and pools in layout nhwc, and what lies between them along with them:
/// elementwise operators, joins, slices, pads and reductions. Transpositions stand only where another operator meets
/// such a value. The graph itself where it has no convolution. Results keep their bits.
Graph with_channels_last(const Graph& graph);

}  // namespace cermet
