#include "comm/host_communicator.hpp"

#include <algorithm>
#include <numeric>

#include "base/env.hpp"
#include "kernel/cpu/movement/copy.hpp"
#include "kernel/cpu/reduce/reduce.hpp"

namespace cermet::comm {
namespace {

constexpr int operand_scratch = 0, result_scratch = 1;

/// An error that began on another rank and is known to all.
class PeerFailure : public Error {
 public:
  using Error::Error;
};

}  // namespace

HostCommunicator::HostCommunicator(int rank, int size)
    : Communicator(rank, size), timeout_(static_cast<double>(env::integer(env::Name::CERMET_COMM_TIMEOUT))) {
  require(size >= 1 && size <= max_ranks && rank >= 0 && rank < size,
          "communicator: expected a rank below the number of ranks, found rank {} of {}", rank, size);
  set_timeout(timeout_);
}

void HostCommunicator::set_timeout(double seconds) {
  require(seconds > 0 && seconds <= 1e6, "timeout of a communicator: expected seconds in (0, 1e6], found {}", seconds);
  timeout_ = seconds;
}

std::byte* HostCommunicator::scratch(int which, std::int64_t bytes) {
  AlignedBuffer& buffer = scratch_[which];
  if (buffer.size() < bytes) buffer = AlignedBuffer(std::max(bytes, 2 * buffer.size()));
  return buffer.data();
}

void HostCommunicator::reduce_rows(Reduction reduction, DType dtype, const std::byte* rows, std::int64_t stride,
                                   std::int64_t count, std::byte* to) {
  const TensorView from(const_cast<std::byte*>(rows), dtype, {size(), count}, {stride, 1});
  cpu::reduce_axes(reduction, from, 1u, TensorView(to, dtype, {count}), alone_);
}

void HostCommunicator::fail_on_rank(int culprit, std::string_view reason, Status status) {
  tell_failure(culprit, reason);
  throw PeerFailure(status,
                    fmt::format("rank {} of {}: {}: rank {} {}", rank(), size(), to_string(current_), culprit, reason));
}

void HostCommunicator::compare(const CallHeader& theirs, int rank) {
  if (theirs == current_) return;
  tell_failure(this->rank(), fmt::format("makes {}, and rank {} {}", to_string(current_), rank, to_string(theirs)));
  fail_on_rank(rank, fmt::format("makes {}", to_string(theirs)), Status::invalid_argument);
}

/// Runs one call. Any failure is sent to the others, and no further call is made.
template <class Body>
void HostCommunicator::in_call(CallHeader header, Body body) {
  if (failed_)
    fail(Status::invalid_argument, "rank {} of {}: expected no call after one that failed, found {}", rank(), size(),
         to_string(header));
  header.number = ++calls_;
  current_ = header;
  failed_ = true;
  try {
    body();
  } catch (const PeerFailure&) {
    throw;
  } catch (const std::exception& error) {
    tell_failure(rank(), fmt::format("failed: {}", error.what()));
    const auto* user_error = dynamic_cast<const Error*>(&error);
    if (!user_error) throw;
    fail(user_error->status(), "rank {} of {}: {}: {}", rank(), size(), to_string(current_), error.what());
  }
  failed_ = false;
}

void HostCommunicator::run(const CollectiveCall& call, Stream*) {
  DenseCall dense;
  CallHeader header{.what = static_cast<std::uint8_t>(call.kind), .dtype = no_dtype};
  std::exception_ptr wrong;
  try {
    dense = describe(call, rank(), size());
    header = header_of(dense);
  } catch (const Error&) {
    wrong = std::current_exception();
  }
  in_call(header, [&] {
    if (wrong) std::rethrow_exception(wrong);
    const TensorView &x = call.x, &y = call.y;
    const auto bytes = static_cast<std::size_t>(dense.element_bytes());
    dense.x = x.as<const std::byte>();
    dense.y = y.as<std::byte>();
    if (dense.gives() && !x.is_dense()) {
      std::byte* packed = scratch(operand_scratch, dense.x_bytes());
      cpu::strided_copy(x.shape, x.data, x.strides, packed, dense_strides(x.shape), bytes, alone_);
      dense.x = packed;
    }
    if (!y.is_dense()) dense.y = scratch(result_scratch, dense.y_bytes());
    agree(current_);
    transfer(dense);
    if (!y.is_dense()) cpu::strided_copy(y.shape, dense.y, dense_strides(y.shape), y.data, y.strides, bytes, alone_);
  });
}

void HostCommunicator::barrier() {
  in_call({.what = what_barrier}, [&] {
    agree(current_);
    do_barrier();
  });
}

std::vector<std::string> HostCommunicator::gather_text(std::string_view text) {
  std::vector<std::string> texts;
  in_call({.what = what_text}, [&] {
    require(text.size() <= longest_text, "text for other ranks: expected at most {} bytes, found {}", longest_text,
            text.size());
    agree(current_);
    texts = do_gather_text(text);
  });
  return texts;
}

std::unique_ptr<Communicator> HostCommunicator::split(int color, int key) {
  const std::vector<std::string> texts = gather_text(fmt::format("{} {}", color, key));
  std::vector<std::pair<int, int>> members;  // key, rank
  for (int r = 0; r < size(); ++r) {
    int its_color = 0, its_key = 0;
    CERMET_ASSERT(std::sscanf(texts[static_cast<std::size_t>(r)].c_str(), "%d %d", &its_color, &its_key) == 2);
    if (its_color == color) members.emplace_back(its_key, r);
  }
  std::ranges::sort(members);
  Members ranks;
  for (const auto& member : members) ranks.push_back(member.second);
  std::unique_ptr<Communicator> group;
  in_call({.what = what_barrier}, [&] {
    agree(current_);
    group = do_split(ranks, color);
    group->set_timeout(timeout_);
  });
  return group;
}

void HostCommunicator::abort(std::string_view reason) noexcept {
  tell_failure(rank(), reason);
  failed_ = true;
}

void HostCommunicator::check() {
  const std::string reason = failure();
  if (!reason.empty()) fail(Status::io, "rank {} of {}: after {}: {}", rank(), size(), to_string(current_), reason);
}

}  // namespace cermet::comm
