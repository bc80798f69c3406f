// Ranks that share memory: operands go through windows of a board, of which each rank has two, so that one barrier a
// window is enough.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "comm/board.hpp"
#include "comm/host_communicator.hpp"

namespace cermet::comm {

/// Where a board lives: memory of this process, or of several.
class Segment {
 public:
  virtual ~Segment() = default;
  virtual Board& board() = 0;
  virtual std::string_view engine() const = 0;
  /// Whether the process of a rank that has joined and not left still runs.
  virtual bool is_alive(int rank) = 0;
  /// A segment for some of the ranks: `name` is the same for all of them and of no other segment. `rank` of `ranks` is
  /// this one's place in it. Returns when all have it; `wait` is called between two looks, and throws when there is no
  /// hope.
  virtual std::shared_ptr<Segment> join(const std::string& name, int rank, int ranks,
                                        const std::function<void()>& wait) = 0;
  /// All ranks have it: its name may go.
  virtual void settle() {}
};

inline constexpr std::int64_t default_window_bytes = 256 << 10;

/// In memory that processes of this host and user share by name; rank 0 makes it, the others wait for it, and `wait` is
/// called between two looks.
std::shared_ptr<Segment> make_shared_segment(const std::string& name, int rank, int ranks, std::int64_t window_bytes,
                                             const std::function<void()>& wait);

/// What a board shows of ranks that failed or died: "rank 2 is gone: process 123 has ended"; "" where none did. `rank`
/// is the caller's.
std::string segment_failure(Segment& segment, int rank);

/// Rank `rank` of the segment's board, as which it enters. `cores` that the ranks share: with less than one each, ranks
/// sleep rather than spin.
std::unique_ptr<Communicator> make_window_communicator(std::shared_ptr<Segment> segment, int rank, int cores);

}  // namespace cermet::comm
