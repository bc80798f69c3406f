#include "comm/window_communicator.hpp"

#include <unistd.h>

#include <chrono>
#include <exception>

namespace cermet::comm {
namespace {

using Clock = std::chrono::steady_clock;

/// Operands of an all_reduce up to this size are reduced by every rank for itself, which saves a barrier.
constexpr std::int64_t one_shot_bytes = 8 << 10;

class WindowCommunicator final : public HostCommunicator {
 public:
  WindowCommunicator(std::shared_ptr<Segment> segment, int rank, int cores)
      : HostCommunicator(rank, segment->board().ranks()),
        segment_(std::move(segment)),
        board_(segment_->board()),
        cores_(cores),
        spins_(cores >= size() ? 4000 : 0),
        exceptions_(std::uncaught_exceptions()) {
    Slot& own = board_.slot(rank);
    own.process = static_cast<std::int32_t>(getpid());
    own.state.store(1, std::memory_order_release);
  }
  ~WindowCommunicator() override {
    if (std::uncaught_exceptions() > exceptions_)
      board_.set_failure(rank(), "ended with an error of its own", failing_call());
    board_.slot(rank()).state.store(2, std::memory_order_release);
    board_.wake(rank());
  }

  std::string_view engine() const override { return segment_->engine(); }
  std::string failure() override { return segment_failure(*segment_, rank()); }

 protected:
  void agree(const CallHeader& header) override { board_.slot(rank()).headers[header.number % 2] = header; }
  void do_barrier() override { meet_first(); }
  void transfer(const DenseCall& call) override;
  std::vector<std::string> do_gather_text(std::string_view text) override;
  std::unique_ptr<Communicator> do_split(const Members& members, int color) override;
  void tell_failure(int culprit, std::string_view reason) noexcept override {
    board_.set_failure(culprit, reason, failing_call());
  }

 private:
  void meet();
  void meet_first();
  void meet_again() {
    meet();
    check_failure();
  }
  void check_failure();
  void check_on(int other, Clock::time_point since);
  /// The windows of the present step; the next step has the others.
  std::byte* window(int r) { return board_.window(r, parity_); }
  void next_windows() { parity_ ^= 1; }
  std::int64_t elements_at_once(const DenseCall& call, int pieces) const;

  void stage(const DenseCall& call, std::int64_t first, std::int64_t count);
  void take(const DenseCall& call, std::int64_t first, std::int64_t count);
  void reduce_in_two_steps(const DenseCall& call, std::int64_t first, std::int64_t count);
  void exchange_unevenly(const DenseCall& call);

  std::shared_ptr<Segment> segment_;
  Board& board_;
  int cores_, spins_, exceptions_, parity_ = 0;
  std::uint32_t point_ = 0;
};

/// Why `other` may never come: it failed, left, died, or takes too long.
void WindowCommunicator::check_on(int other, Clock::time_point since) {
  int culprit = 0;
  std::string reason;
  if (board_.failure(culprit, reason)) fail_on_rank(culprit, reason);
  const std::uint32_t state = board_.slot(other).state.load(std::memory_order_acquire);
  const bool alive = state == 0 || (state == 1 && segment_->is_alive(other));
  if (!alive && Board::is_reached(board_.slot(other).arrived.load(std::memory_order_acquire), point_))
    return;  // its last call was this one
  if (state == 2) fail_on_rank(other, "has left the group");
  if (!alive) fail_on_rank(other, fmt::format("is gone: process {} has ended", board_.slot(other).process));
  if (Clock::now() - since > std::chrono::duration<double>(timeout()))
    fail_on_rank(other, fmt::format("did not come within {} s", timeout()));
}

/// Returns when every rank has come as far.
void WindowCommunicator::meet() {
  board_.arrive(rank());
  ++point_;
  Clock::time_point since{};
  for (int other = 0; other < size(); ++other)
    while (!board_.wait_a_little(other, point_, spins_)) {
      if (since == Clock::time_point{}) since = Clock::now();
      check_on(other, since);
    }
}

/// A rank that has failed in this call came to the meeting, and will not go on.
void WindowCommunicator::check_failure() {
  if (board_.has_failed(current().number)) check_on(rank(), Clock::now());
}

/// The first meeting of a call: all ranks make the same one.
void WindowCommunicator::meet_first() {
  meet();
  for (int other = 0; other < size(); ++other) compare(board_.slot(other).headers[current().number % 2], other);
  check_failure();
}

std::int64_t WindowCommunicator::elements_at_once(const DenseCall& call, int pieces) const {
  const std::int64_t whole_lines = board_.window_bytes() / pieces / 64 * 64;
  return std::max<std::int64_t>(whole_lines / call.element_bytes(), 1);
}

/// Elements [first, first + count) of every piece of the operand go to the window, piece after piece.
void WindowCommunicator::stage(const DenseCall& call, std::int64_t first, std::int64_t count) {
  if (!call.gives()) return;
  const std::int64_t bytes = call.element_bytes();
  for (int p = 0; p < call.x_pieces; ++p)
    std::memcpy(window(rank()) + p * count * bytes, call.x + (p * call.piece + first) * bytes,
                static_cast<std::size_t>(count * bytes));
}

/// The same elements of every piece of the result, from all windows.
void WindowCommunicator::take(const DenseCall& call, std::int64_t first, std::int64_t count) {
  const std::int64_t bytes = call.element_bytes(), stride = board_.window_bytes() / bytes;
  for (int p = 0; p < call.y_pieces; ++p) {
    const PieceSource source = call.source(p);
    std::byte* to = call.y + (p * call.piece + first) * bytes;
    const std::int64_t at = source.piece * count * bytes;
    switch (source.kind) {
      case PieceSource::Kind::nothing: std::memset(to, 0, static_cast<std::size_t>(count * bytes)); break;
      case PieceSource::Kind::one_rank:
        std::memcpy(to, window(static_cast<int>(source.rank)) + at, static_cast<std::size_t>(count * bytes));
        break;
      case PieceSource::Kind::every_rank:
        reduce_rows(call.reduction, call.dtype, window(0) + at, stride, count, to);
        break;
    }
  }
}

/// Each rank reduces a share of the window, which no other rank reads until then; then all read all shares.
void WindowCommunicator::reduce_in_two_steps(const DenseCall& call, std::int64_t first, std::int64_t count) {
  const std::int64_t bytes = call.element_bytes(), share = (count + size() - 1) / size();
  const auto begin = [&](int r) { return std::min(r * share, count); };
  const std::int64_t own = begin(rank()), own_count = begin(rank() + 1) - own;
  if (own_count > 0) {
    std::byte* to = call.y + (first + own) * bytes;
    reduce_rows(call.reduction, call.dtype, window(0) + own * bytes, board_.window_bytes() / bytes, own_count, to);
    std::memcpy(window(rank()) + own * bytes, to, static_cast<std::size_t>(own_count * bytes));
  }
  meet_again();
  for (int r = 0; r < size(); ++r)
    if (r != rank())
      std::memcpy(call.y + (first + begin(r)) * bytes, window(r) + begin(r) * bytes,
                  static_cast<std::size_t>((begin(r + 1) - begin(r)) * bytes));
}

void WindowCommunicator::transfer(const DenseCall& call) {
  if (call.counts) return exchange_unevenly(call);
  const std::int64_t step = elements_at_once(call, call.x_pieces);
  const bool two_steps = call.kind == Collective::all_reduce && call.x_bytes() > one_shot_bytes && size() > 2;
  std::int64_t first = 0;
  do {
    const std::int64_t count = std::min(step, call.piece - first);
    stage(call, first, count);
    first == 0 ? meet_first() : meet_again();
    if (count > 0) two_steps ? reduce_in_two_steps(call, first, count) : take(call, first, count);
    next_windows();
    first += count;
  } while (first < call.piece);
}

/// Windows carry the rows of each sender in its own order; a receiver takes what of them is its own.
void WindowCommunicator::exchange_unevenly(const DenseCall& call) {
  const PairCounts& counts = *call.counts;
  const std::int64_t row = call.row_bytes();
  std::int64_t most = 0;  // bytes that any rank sends
  for (int s = 0; s < size(); ++s) most = std::max(most, counts.sent_before(s, size()) * row);
  std::int64_t filled = 0;
  for (int s = 0; s < size(); ++s) filled += counts.at(s, rank()) * row;
  const std::int64_t sent = counts.sent_before(rank(), size()) * row, step = board_.window_bytes();
  std::int64_t begin = 0;
  do {
    if (begin < sent)
      std::memcpy(window(rank()), call.x + begin, static_cast<std::size_t>(std::min(step, sent - begin)));
    begin == 0 ? meet_first() : meet_again();
    std::int64_t to = 0;
    for (int s = 0; s < size(); ++s) {
      const std::int64_t from = counts.sent_before(s, rank()) * row, bytes = counts.at(s, rank()) * row;
      const std::int64_t low = std::max(from, begin), high = std::min(from + bytes, begin + step);
      if (low < high)
        std::memcpy(call.y + to + (low - from), window(s) + (low - begin), static_cast<std::size_t>(high - low));
      to += bytes;
    }
    next_windows();
    begin += step;
  } while (begin < most);
  std::memset(call.y + filled, 0, static_cast<std::size_t>(call.y_bytes() - filled));
}

std::vector<std::string> WindowCommunicator::do_gather_text(std::string_view text) {
  const auto length = static_cast<std::uint32_t>(text.size());
  std::memcpy(window(rank()), &length, sizeof length);
  if (!text.empty()) std::memcpy(window(rank()) + sizeof length, text.data(), text.size());
  meet_first();
  std::vector<std::string> texts;
  for (int r = 0; r < size(); ++r) {
    std::uint32_t its_length = 0;
    std::memcpy(&its_length, window(r), sizeof its_length);
    texts.emplace_back(reinterpret_cast<const char*>(window(r)) + sizeof its_length,
                       std::min<std::size_t>(its_length, longest_text));
  }
  next_windows();
  return texts;
}

std::unique_ptr<Communicator> WindowCommunicator::do_split(const Members& members, int color) {
  const auto place = static_cast<int>(std::ranges::find(members, rank()) - members.begin());
  const auto since = Clock::now();
  const std::string name = fmt::format("{}.{}", current().number, color);
  std::shared_ptr<Segment> part = segment_->join(name, place, static_cast<int>(members.size()), [&] {
    for (const int member : members) check_on(member, since);
  });
  meet_first();
  part->settle();
  return make_window_communicator(std::move(part), place, cores_);
}

}  // namespace

std::string segment_failure(Segment& segment, int rank) {
  Board& board = segment.board();
  int culprit = 0;
  std::string reason;
  if (board.failure(culprit, reason)) return fmt::format("rank {} {}", culprit, reason);
  for (int other = 0; other < board.ranks(); ++other)
    if (other != rank && board.slot(other).state.load(std::memory_order_acquire) == 1 && !segment.is_alive(other))
      return fmt::format("rank {} is gone: process {} has ended", other, board.slot(other).process);
  return "";
}

std::unique_ptr<Communicator> make_window_communicator(std::shared_ptr<Segment> segment, int rank, int cores) {
  return std::make_unique<WindowCommunicator>(std::move(segment), rank, cores);
}

}  // namespace cermet::comm
