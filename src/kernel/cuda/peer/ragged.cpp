#include "kernel/cuda/peer/ragged.hpp"

#include <algorithm>

namespace cermet::cuda {

peer::RaggedParams ragged_params(const peer::Link& link, const RaggedCall& call, const PairCounts& counts, int channels,
                                 int threads) {
  std::int64_t word = 16;
  while (call.row_bytes % word != 0) word /= 2;
  for (const void* data : {call.x, static_cast<const void*>(call.y)})
    require(reinterpret_cast<std::uintptr_t>(data) % static_cast<std::uintptr_t>(word) == 0,
            "all_to_all with counts: expected operands aligned to {} bytes, found {}", word, data);
  const std::int64_t row_words = call.row_bytes / word;
  peer::RaggedParams p{
      .link = link, .x = call.x, .y = call.y, .sent = {}, .received = {}, .most = 0, .channels = 1, .word_bytes = 0};
  std::int64_t sent = 0, received = 0;
  for (int other = 0; other < call.size; ++other) {
    p.sent[other] = {sent, counts.at(call.rank, other) * row_words};
    p.received[other] = {received, counts.at(other, call.rank) * row_words};
    sent += p.sent[other].words;
    received += p.received[other].words;
    for (int to = 0; to < call.size; ++to)
      if (to != other) p.most = std::max(p.most, counts.at(other, to) * row_words);
  }
  p.word_bytes = static_cast<std::uint32_t>(word);
  // Alike on every rank: of what no other rank is to come for, too, because blocks of one number wait for each other.
  p.channels = static_cast<std::uint32_t>(std::clamp<std::int64_t>((p.most + threads - 1) / threads, 1, channels));
  return p;
}

Program peer_move_ragged(int threads) {
  return {.header = "kernel/cuda/device/peer/ragged.cuh", .task = "cermet::peer::MoveRagged", .threads = threads};
}

}  // namespace cermet::cuda
