#include "kernel/cuda/peer/call.hpp"

#include <algorithm>

#include "kernel/cuda/peer/reduction.hpp"

namespace cermet::cuda {
namespace {

bool is_aligned_to(const void* data, std::int64_t bytes) {
  return reinterpret_cast<std::uintptr_t>(data) % static_cast<std::uintptr_t>(bytes) == 0;
}

/// Which rank sends what to which; see op/collective.hpp.
void route(peer::Params& p, const PeerCall& call) {
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

std::int64_t PeerCall::word_bytes() const {
  const std::int64_t bytes = piece * element_bytes;
  std::int64_t word = 16;
  while (bytes % word != 0) word /= 2;
  return word;
}

bool can_be_stamped(const PeerCall& call) { return !has_root(call.kind) && call.word_bytes() >= 8; }

peer::Params peer_params(const peer::Link& link, const PeerCall& call, int channels, int threads,
                         peer::Protocol protocol) {
  peer::Params p{
      .link = link,
      .x = call.x,
      .y = call.y,
      .piece = call.piece,
      .channels = 1,
      .to = 0,
      .from = 0,
      .cuts = 0,
      .joins = 0,
      .protocol = protocol == peer::Protocol::stamped && !can_be_stamped(call) ? peer::Protocol::once : protocol,
      .word_bytes = 1};
  route(p, call);
  const std::int64_t word = call.word_bytes(), words = call.piece * call.element_bytes / word;
  for (const void* data : {call.x, static_cast<const void*>(call.y)})
    require(is_aligned_to(data, word), "{}: expected operands aligned to {} bytes, found {}", name_of(call.kind), word,
            data);
  if (!has_reduction(call.kind)) {
    p.word_bytes = static_cast<std::uint32_t>(word);
    p.piece = words;
  }
  // A word for each thread: more blocks shorten each one's way, up to as many as there are.
  p.channels = static_cast<std::uint32_t>(std::clamp<std::int64_t>((words + threads - 1) / threads, 1, channels));
  return p;
}

Program peer_reduction(DType dtype, Reduction reduction, int ranks, int width, int threads) {
  return {.header = "kernel/cuda/device/peer/collective.cuh",
          .task = fmt::format("cermet::peer::Reduce<{}>", peer_reduction_config(dtype, reduction, ranks, width)),
          .threads = threads};
}

Program peer_move(int threads) {
  return {.header = "kernel/cuda/device/peer/collective.cuh", .task = "cermet::peer::Move", .threads = threads};
}

}  // namespace cermet::cuda
