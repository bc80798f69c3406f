// Memory that GPUs share to exchange small messages: where a rank's flags and windows are. Each rank has such memory,
// which all write to.
#pragma once

#include "kernel/cuda/device/integers.hpp"

namespace cermet::peer {

inline constexpr int most_ranks = 8;
/// A channel is the thread blocks of one number, one on each rank, which exchange data among themselves and wait for no
/// others.
inline constexpr int most_channels = 64;
inline constexpr int threads = 512;
/// Of one rank's part of an exchange: so many that the way of a flag is short beside that of the data.
inline constexpr int64_t slot_bytes = 128 << 10;
/// The same of data that is sent with its stamps, of small messages.
inline constexpr int64_t stamped_data_bytes = 32 << 10;

/// A line for each channel: how many exchanges this rank has begun, and the last one that each rank has written its
/// part of. Numbers grow and are never reset, so that a captured launch needs no other parameters in its next replay.
struct alignas(256) ChannelState {
  uint32_t exchanges;
  uint32_t unused[31];
  uint32_t arrived[32];  ///< by rank
};
static_assert(sizeof(ChannelState) == 256);

struct Header {
  ChannelState channels[most_channels];
  uint32_t failed;  ///< some rank did not arrive: later launches end at once
  uint32_t unused[63];
};

/// Two windows for each channel, with a slot for each rank's part. They alternate: who writes to a window for the
/// second time has seen all ranks arrive at the exchange between, and a rank arrives after it has read what came with
/// the one before.
CERMET_HOST_DEVICE constexpr int64_t slot_offset(int ranks, uint32_t channel, uint32_t window, int rank) {
  return static_cast<int64_t>(sizeof(Header)) +
         ((static_cast<int64_t>(channel) * 2 + window) * ranks + rank) * slot_bytes;
}

/// Behind them, two windows for each channel whose words say by themselves that they have come: of each 8 bytes 4 are
/// data, and 4 the number of the exchange (stamped.cuh). They begin as zeros, which is no exchange's number.
inline constexpr int64_t stamped_slot_bytes = 2 * stamped_data_bytes;
CERMET_HOST_DEVICE constexpr int64_t stamped_offset(int ranks, uint32_t channel, uint32_t window, int rank) {
  return slot_offset(ranks, most_channels, 0, 0) +
         ((static_cast<int64_t>(channel) * 2 + window) * ranks + rank) * stamped_slot_bytes;
}
constexpr int64_t memory_bytes(int ranks) { return stamped_offset(ranks, most_channels, 0, 0); }

/// In host memory: what ends launches that wait, and what one that gave up has to say.
struct Board {
  uint32_t end;    ///< set by the host
  uint32_t stuck;  ///< set after the rest
  uint32_t call, exchange, rank, channel;
};

/// A rank's place, by value in the parameters of a launch.
struct Link {
  char* memory[most_ranks];  ///< of each rank, as this one addresses it
  Board* board;
  uint64_t timeout;  ///< nanoseconds
  int32_t rank, ranks;
  uint32_t alone;  ///< on its GPU: no other rank's launch waits for thread blocks that the next launch would take
  uint32_t call;   ///< for the board: which of the host's calls this is
};

}  // namespace cermet::peer
