#include "comm/peer_launch.hpp"

#include "kernel/cuda/peer/call.hpp"

namespace cermet::comm {

PeerLaunch peer_launch(const peer::Link& link, int channels, const DenseCall& call, bool two_shot) {
  const cuda::PeerCall own{call.kind, call.rank, call.size, call.root, call.x, call.y, call.piece, call.element_bytes()};
  return {.program = has_reduction(call.kind) ? peer_reduction(call.dtype, call.reduction, call.size, own.width()) : peer_move(),
          .params = cuda::peer_params(link, own, channels, peer::threads, two_shot)};
}

cuda::Program peer_reduction(DType dtype, Reduction reduction, int ranks, int width) {
  return cuda::peer_reduction(dtype, reduction, ranks, width, peer::threads);
}

cuda::Program peer_move() { return cuda::peer_move(peer::threads); }

}  // namespace cermet::comm
