// What every engine in host memory does alike: numbers and checks calls, packs strided operands, and turns what went
// wrong into one message on every rank.
#pragma once

#include <string>
#include <vector>

#include "base/buffer.hpp"
#include "base/thread_pool.hpp"
#include "comm/call.hpp"

namespace cermet::comm {

class HostCommunicator : public Communicator {
 public:
  void run(const CollectiveCall& call, Stream* stream) final;
  void barrier() final;
  std::vector<std::string> gather_text(std::string_view text) final;
  std::unique_ptr<Communicator> split(int color, int key) final;
  void abort(std::string_view reason) noexcept final;
  void check() final;
  void set_timeout(double seconds) final;

  static constexpr std::size_t longest_text = 4096;

 protected:
  HostCommunicator(int rank, int size);

  /// Ranks of a new group, as ranks of this one, in their new order.
  using Members = std::vector<int>;

  // What an engine does. Each throws Error, by fail_on_rank() where another rank is the cause.
  /// Begins a call: compares headers with every rank's. An engine may put it off until transfer(), before it uses
  /// anything of another rank.
  virtual void agree(const CallHeader& header) = 0;
  /// Moves and reduces. x and y are dense and may be the same memory.
  virtual void transfer(const DenseCall& call) = 0;
  virtual void do_barrier() = 0;
  /// `text` is of longest_text bytes at most.
  virtual std::vector<std::string> do_gather_text(std::string_view text) = 0;
  virtual std::unique_ptr<Communicator> do_split(const Members& members, int color) = 0;
  /// Tells the others that this rank has failed; the first reason stays.
  virtual void tell_failure(int culprit, std::string_view reason) noexcept = 0;

  double timeout() const { return timeout_; }
  const CallHeader& current() const { return current_; }  ///< the call that runs
  /// The call that a failure now is of: the next one where none runs, as those before were completed.
  std::uint64_t failing_call() const { return failed_ ? current_.number : calls_ + 1; }
  /// Throws what all ranks say of a failure: "rank 1 of 4: call 17, all_reduce of ..: rank 3 is gone: ...", and tells
  /// the others.
  [[noreturn]] void fail_on_rank(int culprit, std::string_view reason, Status status = Status::io);
  /// Throws unless another rank's header is this rank's.
  void compare(const CallHeader& theirs, int rank);
  /// to[0 .. count) = the reduction of `size()` rows, `stride` elements apart, in the order of ranks.
  void reduce_rows(Reduction reduction, DType dtype, const std::byte* rows, std::int64_t stride, std::int64_t count,
                   std::byte* to);
  /// Memory of this communicator that grows; of two kinds, so that an engine has some while operands are packed.
  std::byte* scratch(int which, std::int64_t bytes);

 private:
  template <class Body>
  void in_call(CallHeader header, Body body);

  ThreadPool alone_{1};
  AlignedBuffer scratch_[3];
  CallHeader current_{.what = what_none};
  double timeout_;
  std::uint64_t calls_ = 0;
  bool failed_ = false;  ///< or in a call, which may fail
};

}  // namespace cermet::comm
