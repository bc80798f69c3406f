// Stored tensors as one rank of several sees them: each cut to the rank's part, of which alone bytes are read.
#pragma once

#include "model/parallel/shard.hpp"
#include "model/weight_loader.hpp"

namespace cermet {

/// `reader`'s tensors, cut for the rank. Biases of modules whose columns are spread are those of rank 0, and zeros
/// elsewhere, because the ranks' results are added. Where bytes are asked for that belong to no stored row, they are
/// zeros.
TensorReader sharded_reader(TensorReader reader, const DecoderModel& whole, ModelShard shard);

}  // namespace cermet
