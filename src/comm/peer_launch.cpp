#include "comm/peer_launch.hpp"

#include <algorithm>

#include "kernel/cuda/peer/reduction.hpp"

namespace cermet::comm {
namespace {

bool is_aligned_to(const void* data, std::int64_t bytes) { return reinterpret_cast<std::uintptr_t>(data) % static_cast<std::uintptr_t>(bytes) == 0; }

/// Bytes of the widest words, up to 16, that the pieces consist of. It follows from their size alone, because ranks share slots out by words: all memory of
/// devices that graphs use is aligned to 16 bytes, and what is not is refused.
std::int64_t word_bytes(const DenseCall& call) {
  const std::int64_t bytes = call.piece * call.element_bytes();
  std::int64_t word = 16;
  while (bytes % word != 0) word /= 2;
  return word;
}

/// Who gives what to whom; see op/collective.hpp.
void route(peer::Params& p, const DenseCall& call) {
  const std::uint32_t all = (1u << call.size) - 1, root = 1u << call.root;
  const bool is_root = call.rank == call.root;
  p.to = p.from = all;
  p.cuts = cuts_operand(call.kind);
  p.joins = joins_result(call.kind) || call.kind == Collective::all_to_all;
  switch (call.kind) {
    case Collective::reduce_to:
    case Collective::gather_to:
      p.to = root;
      if (!is_root) p.from = 0;
      break;
    case Collective::scatter_from:
    case Collective::broadcast_from:
      p.from = root;
      if (!is_root) p.to = 0;
      break;
    default: break;
  }
}

}  // namespace

cuda::Program peer_reduction(DType dtype, Reduction reduction, int ranks, int width) {
  return {.header = "kernel/cuda/device/peer/collective.cuh",
          .task = fmt::format("cermet::peer::Reduce<{}>", cuda::peer_reduction_config(dtype, reduction, ranks, width)),
          .threads = peer::threads};
}

cuda::Program peer_move() { return {.header = "kernel/cuda/device/peer/collective.cuh", .task = "cermet::peer::Move", .threads = peer::threads}; }

PeerLaunch peer_launch(const peer::Link& link, int channels, const DenseCall& call, bool two_shot) {
  PeerLaunch launch;
  peer::Params& p = launch.params;
  p = {.link = link,
       .x = call.x,
       .y = call.y,
       .piece = call.piece,
       .channels = 1,
       .to = 0,
       .from = 0,
       .cuts = 0,
       .joins = 0,
       .two_shot = two_shot,
       .word_bytes = 1};
  route(p, call);
  const std::int64_t word = word_bytes(call), words = call.piece * call.element_bytes() / word;
  for (const void* data : {static_cast<const void*>(call.x), static_cast<const void*>(call.y)})
    require(is_aligned_to(data, word), "{}: expected operands aligned to {} bytes, found {}", name_of(call.kind), word, data);
  if (has_reduction(call.kind)) {
    const auto width = static_cast<int>(std::max<std::int64_t>(1, word / call.element_bytes()));
    launch.program = peer_reduction(call.dtype, call.reduction, call.size, width);
  } else {
    launch.program = peer_move();
    p.word_bytes = static_cast<std::uint32_t>(word);
    p.piece = words;
  }
  // A word for each thread: more blocks shorten each one's way, up to as many as there are.
  p.channels = static_cast<std::uint32_t>(std::clamp<std::int64_t>((words + peer::threads - 1) / peer::threads, 1, channels));
  return launch;
}

}  // namespace cermet::comm
