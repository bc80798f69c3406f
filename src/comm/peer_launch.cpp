#include "comm/peer_launch.hpp"

#include "kernel/cuda/peer/call.hpp"
#include "kernel/cuda/peer/ragged.hpp"

namespace cermet::comm {

namespace {

cuda::PeerCall own_part(const DenseCall& call) {
  return {call.kind, call.rank, call.size, call.root, call.x, call.y, call.piece, call.element_bytes()};
}

}  // namespace

PeerLaunch peer_launch(const peer::Link& link, int channels, const DenseCall& call, peer::Protocol protocol) {
  return {.program = peer_program(call),
          .params = cuda::peer_params(link, own_part(call), channels, peer::threads, protocol)};
}

RaggedLaunch ragged_launch(const peer::Link& link, int channels, const DenseCall& call) {
  return {.program = peer_program(call),
          .params = cuda::ragged_params(link, {call.rank, call.size, call.x, call.y, call.row_bytes()}, *call.counts,
                                        channels, peer::threads)};
}

cuda::Program peer_program(const DenseCall& call) {
  if (call.counts) return peer_move_ragged();
  return has_reduction(call.kind) ? peer_reduction(call.dtype, call.reduction, call.size, own_part(call).width())
                                  : peer_move();
}

cuda::Program peer_reduction(DType dtype, Reduction reduction, int ranks, int width) {
  return cuda::peer_reduction(dtype, reduction, ranks, width, peer::threads);
}

cuda::Program peer_move_ragged() { return cuda::peer_move_ragged(peer::threads); }

cuda::Program peer_move() { return cuda::peer_move(peer::threads); }

}  // namespace cermet::comm
