// A collective call of GPUs that address each other's memory, as one launch.
#pragma once

#include "comm/call.hpp"
#include "kernel/cuda/device/peer/collective.hpp"
#include "kernel/cuda/device/peer/ragged.hpp"
#include "kernel/cuda/task.hpp"

namespace cermet::comm {

struct PeerLaunch {
  cuda::Program program;
  peer::Params params;  ///< `params.channels` thread blocks, one item each
};

/// `channels`: at most, alike on all ranks. Throws Error(invalid_argument) where operands are not aligned to the words
/// that their pieces consist of, 16 bytes at most.
PeerLaunch peer_launch(const peer::Link& link, int channels, const DenseCall& call, peer::Protocol protocol);

/// The same of an all_to_all with counts.
struct RaggedLaunch {
  cuda::Program program;
  peer::RaggedParams params;
};
RaggedLaunch ragged_launch(const peer::Link& link, int channels, const DenseCall& call);

/// What a call launches, without its operands.
cuda::Program peer_program(const DenseCall& call);

/// The program that reduces this type; for tests, which compile all.
cuda::Program peer_reduction(DType dtype, Reduction reduction, int ranks, int width);
cuda::Program peer_move();
cuda::Program peer_move_ragged();

}  // namespace cermet::comm
