#include "comm/mpi_communicator.hpp"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "base/log.hpp"
#include "comm/host_communicator.hpp"
#include "comm/window_communicator.hpp"

namespace cermet::comm {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int exchange_scratch = 2;
/// Operands up to this size are gathered by every rank, and reduced by each for itself: one exchange in place of two.
constexpr std::int64_t gathered_bytes = 8 << 10;

std::atomic<int> end_requests{0};  ///< how often
static_assert(std::atomic<int>::is_always_lock_free, "a signal handler writes it");

/// mpirun sends SIGTERM more than once.
constexpr int patient_with_signals = 4;

/// mpirun ends all processes when one of them is gone: with SIGTERM, and a second later with SIGKILL. In between there
/// is time to say why.
void notice_termination() {
  struct sigaction present {};
  if (sigaction(SIGTERM, nullptr, &present) != 0 || present.sa_handler != SIG_DFL) return;
  struct sigaction action {};
  action.sa_handler = [](int signal) {
    if (++end_requests < patient_with_signals) return;
    std::signal(signal, SIG_DFL);
    raise(signal);
  };
  action.sa_flags = SA_RESTART;
  sigaction(SIGTERM, &action, nullptr);
}

/// Equal on processes that see the same shared memory, mostly: join() of the board copes with the rest.
std::string host_identity() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string boot;
  file >> boot;
  return fmt::format("{}/{}", name.data(), boot);
}

class MpiCommunicator final : public HostCommunicator {
 public:
  explicit MpiCommunicator(std::unique_ptr<MpiTransport> transport)
      : HostCommunicator(transport->rank(), transport->size()), transport_(std::move(transport)) {
    notice_termination();
    join_host();
  }
  ~MpiCommunicator() override {
    if (std::uncaught_exceptions() > exceptions_) tell_failure(rank(), "ended with an error of its own");
    if (!host_) return;
    host_->board().slot(place_).state.store(2, std::memory_order_release);
    if (host_->board().has_failed(~std::uint64_t{0})) let_neighbours_notice();
  }

  std::string_view engine() const override { return "mpi"; }
  std::string failure() override {
    if (end_requests > 0) return "the launcher has told it to end, which it does when another rank is gone";
    return host_ ? segment_failure(*host_, place_) : "";
  }

 protected:
  void agree(const CallHeader& header) override;
  void transfer(const DenseCall& call) override;
  void do_barrier() override {}  // agreeing is one
  std::vector<std::string> do_gather_text(std::string_view text) override;
  std::unique_ptr<Communicator> do_split(const Members& members, int color) override;
  void tell_failure(int culprit, std::string_view reason) noexcept override {
    transport_->abandon();
    if (host_) host_->board().set_failure(culprit, reason, failing_call());
  }

 private:
  void join_host();
  void let_neighbours_notice() noexcept;
  void look_around(Clock::time_point since);
  void reduce_everywhere(const DenseCall& call);
  void reduce_by_shares(const DenseCall& call);
  void exchange_unevenly(const DenseCall& call);
  template <class Body>
  void move(Body body);

  std::unique_ptr<MpiTransport> transport_;
  std::shared_ptr<Segment> host_;  ///< a board without windows, of the ranks on this host; null where there is no other
  std::vector<int> neighbours_;    ///< those ranks, in the board's order
  int place_ = 0;                  ///< this rank's among them
  int exceptions_ = std::uncaught_exceptions();
  std::vector<CallHeader> headers_;
};

/// mpirun ends the others as soon as this process ends with an error, so they are given half a second to find one of
/// their own.
void MpiCommunicator::let_neighbours_notice() noexcept {
  const auto here = [&](int i) {
    return host_->board().slot(i).state.load(std::memory_order_acquire) == 1 && host_->is_alive(i);
  };
  const Clock::time_point since = Clock::now();
  for (int i = 0; i < host_->board().ranks(); ++i)
    while (i != place_ && here(i) && Clock::now() - since < std::chrono::milliseconds(500))
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
  static const int registered =
      std::atexit([] { std::this_thread::sleep_for(std::chrono::milliseconds(100)); });  // they are printing it
  (void)registered;
}

/// While an exchange runs: whether it can end. Of ranks on other hosts only their launcher knows.
void MpiCommunicator::look_around(Clock::time_point since) {
  for (std::size_t i = 0; host_ && i < neighbours_.size(); ++i) {
    int culprit = 0;
    std::string reason;
    if (host_->board().failure(culprit, reason)) fail_on_rank(culprit, reason);
    const Slot& slot = host_->board().slot(static_cast<int>(i));
    const std::uint32_t state = slot.state.load(std::memory_order_acquire);
    const int other = neighbours_[i];
    if (other == rank() || state != 1) continue;
    if (!host_->is_alive(static_cast<int>(i)))
      fail_on_rank(other, fmt::format("is gone: process {} has ended", slot.process));
  }
  if (end_requests > 0) fail(Status::io, "told to end by the launcher, which does so when another rank is gone");
  if (Clock::now() - since > std::chrono::duration<double>(timeout()))
    fail(Status::io, "expected every rank within {} s, found that some did not come", timeout());
}

/// Runs one exchange of the transport.
template <class Body>
void MpiCommunicator::move(Body body) {
  const Clock::time_point since = Clock::now();
  const auto wait = [&] { look_around(since); };
  body(MpiTransport::Wait(wait));
}

void MpiCommunicator::join_host() {
  static std::atomic<int> boards{0};
  const std::string own = host_identity();
  const std::vector<std::string> all = do_gather_text(fmt::format("{} {}.{}", own, getpid(), boards++));
  std::string name;
  for (int r = 0; r < size(); ++r) {
    const std::string& text = all[static_cast<std::size_t>(r)];
    const std::size_t space = text.rfind(' ');
    if (text.substr(0, space) != own) continue;
    if (name.empty()) name = "mpi-" + text.substr(space + 1);
    if (r == rank()) place_ = static_cast<int>(neighbours_.size());
    neighbours_.push_back(r);
  }
  const auto ranks = static_cast<int>(neighbours_.size());
  if (ranks == 1) return;
  try {
    const Clock::time_point since = Clock::now();
    host_ = make_shared_segment(name, place_, ranks, 0, [&] {
      if (Clock::now() - since > std::chrono::seconds(5))
        fail(Status::io, "no shared memory with the other processes of this host");
    });
    Slot& slot = host_->board().slot(place_);
    slot.process = static_cast<std::int32_t>(getpid());
    slot.state.store(1, std::memory_order_release);
  } catch (const Error& error) {
    log().warn("ranks that die are noticed by their launcher alone: {}", error.what());
  }
  do_gather_text("joined");
  if (host_) host_->settle();
}

void MpiCommunicator::agree(const CallHeader& header) {
  headers_.resize(static_cast<std::size_t>(size()));
  static_assert(sizeof(CallHeader) % 8 == 0);
  if (end_requests > 0) look_around(Clock::now());
  move([&](auto wait) { transport_->all_gather(&header, headers_.data(), sizeof(CallHeader) / 8, 8, wait); });
  for (int r = 0; r < size(); ++r) compare(headers_[static_cast<std::size_t>(r)], r);
}

std::vector<std::string> MpiCommunicator::do_gather_text(std::string_view text) {
  constexpr std::size_t room = longest_text + 8;
  std::vector<char> own(room), all(room * static_cast<std::size_t>(size()));
  const std::uint64_t length = text.size();
  std::memcpy(own.data(), &length, sizeof length);
  if (!text.empty()) std::memcpy(own.data() + 8, text.data(), text.size());
  move([&](auto wait) { transport_->all_gather(own.data(), all.data(), room, 1, wait); });
  std::vector<std::string> texts;
  for (std::size_t r = 0; r < static_cast<std::size_t>(size()); ++r) {
    std::uint64_t its_length = 0;
    std::memcpy(&its_length, all.data() + r * room, sizeof its_length);
    texts.emplace_back(all.data() + r * room + 8, std::min<std::size_t>(its_length, longest_text));
  }
  return texts;
}

std::unique_ptr<Communicator> MpiCommunicator::do_split(const Members& members, int color) {
  const auto place = static_cast<int>(std::ranges::find(members, rank()) - members.begin());
  const int first =
      *std::ranges::min_element(members);  // colors of MPI are not negative; a group's first rank is as good a name
  (void)color;
  return make_mpi_communicator(transport_->split(first, place));
}

/// Every rank has everything, and reduces it.
void MpiCommunicator::reduce_everywhere(const DenseCall& call) {
  std::byte* all = scratch(exchange_scratch, call.x_bytes() * size());
  const auto unit = static_cast<int>(call.element_bytes());
  const bool to_one = call.kind == Collective::reduce_to;
  move([&](auto wait) {
    to_one ? transport_->gather(call.x, all, call.piece, unit, call.root, wait)
           : transport_->all_gather(call.x, all, call.piece, unit, wait);
  });
  if (!to_one || rank() == call.root) reduce_rows(call.reduction, call.dtype, all, call.piece, call.piece, call.y);
}

/// Each rank gets a share of every operand, reduces it, and passes it on.
void MpiCommunicator::reduce_by_shares(const DenseCall& call) {
  const std::int64_t share = (call.piece + size() - 1) / size(), bytes = call.element_bytes();
  const auto unit = static_cast<int>(bytes);
  if (share > INT32_MAX)
    fail(Status::unsupported, "MPI: expected at most {} elements for a rank, found {}", INT32_MAX, share);
  const auto share_of = [&](int r) {
    return static_cast<int>(std::clamp<std::int64_t>(call.piece - r * share, 0, share));
  };
  std::vector<int> sent, received(static_cast<std::size_t>(size()), share_of(rank()));
  for (int r = 0; r < size(); ++r) sent.push_back(share_of(r));
  std::byte* shares = scratch(exchange_scratch, (2 * size() + 1) * share * bytes);
  std::byte *reduced = shares + size() * share * bytes, *all = reduced + share * bytes;
  move([&](auto wait) { transport_->all_to_all_uneven(call.x, sent.data(), shares, received.data(), unit, wait); });
  reduce_rows(call.reduction, call.dtype, shares, share_of(rank()), share_of(rank()), reduced);
  const bool to_one = call.kind == Collective::reduce_to;
  move([&](auto wait) {
    to_one ? transport_->gather(reduced, all, share, unit, call.root, wait)
           : transport_->all_gather(reduced, all, share, unit, wait);
  });
  if (!to_one || rank() == call.root) std::memcpy(call.y, all, static_cast<std::size_t>(call.y_bytes()));
}

void MpiCommunicator::exchange_unevenly(const DenseCall& call) {
  const PairCounts& counts = *call.counts;
  const std::int64_t words = call.row_elements;
  std::vector<int> sent, received;
  std::int64_t filled = 0;
  for (int r = 0; r < size(); ++r) {
    const std::int64_t to = counts.at(rank(), r) * words, from = counts.at(r, rank()) * words;
    if (std::max(to, from) > INT32_MAX)
      fail(Status::unsupported, "MPI: expected at most {} elements for a rank, found {}", INT32_MAX,
           std::max(to, from));
    sent.push_back(static_cast<int>(to));
    received.push_back(static_cast<int>(from));
    filled += from;
  }
  move([&](auto wait) {
    transport_->all_to_all_uneven(call.x, sent.data(), call.y, received.data(), static_cast<int>(call.element_bytes()),
                                  wait);
  });
  filled *= call.element_bytes();
  std::memset(call.y + filled, 0, static_cast<std::size_t>(call.y_bytes() - filled));
}

void MpiCommunicator::transfer(const DenseCall& call) {
  if (call.counts) return exchange_unevenly(call);
  if (call.piece == 0) return;
  const auto unit = static_cast<int>(call.element_bytes());
  const bool zeros = (call.kind == Collective::reduce_to || call.kind == Collective::gather_to) && rank() != call.root;
  switch (call.kind) {
    case Collective::all_reduce:
    case Collective::reduce_to:
      call.x_bytes() <= gathered_bytes || size() == 1 ? reduce_everywhere(call) : reduce_by_shares(call);
      break;
    case Collective::reduce_scatter: {
      std::byte* pieces = scratch(exchange_scratch, call.x_bytes());
      move([&](auto wait) { transport_->all_to_all(call.x, pieces, call.piece, unit, wait); });
      reduce_rows(call.reduction, call.dtype, pieces, call.piece, call.piece, call.y);
      break;
    }
    case Collective::all_gather:
      move([&](auto wait) { transport_->all_gather(call.x, call.y, call.piece, unit, wait); });
      break;
    case Collective::gather_to:
      move([&](auto wait) { transport_->gather(call.x, call.y, call.piece, unit, call.root, wait); });
      break;
    case Collective::scatter_from:
      move([&](auto wait) { transport_->scatter(call.x, call.y, call.piece, unit, call.root, wait); });
      break;
    case Collective::broadcast_from:
      if (rank() == call.root && call.x != call.y)
        std::memcpy(call.y, call.x, static_cast<std::size_t>(call.x_bytes()));
      move([&](auto wait) { transport_->broadcast(call.y, call.piece, unit, call.root, wait); });
      break;
    case Collective::all_to_all:
      move([&](auto wait) { transport_->all_to_all(call.x, call.y, call.piece, unit, wait); });
      break;
  }
  if (zeros) std::memset(call.y, 0, static_cast<std::size_t>(call.y_bytes()));
}

}  // namespace

std::unique_ptr<Communicator> make_mpi_communicator(std::unique_ptr<MpiTransport> transport) {
  return std::make_unique<MpiCommunicator>(std::move(transport));
}

}  // namespace cermet::comm
