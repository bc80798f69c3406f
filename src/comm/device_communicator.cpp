#include "comm/device_communicator.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "base/log.hpp"
#include "comm/call.hpp"
#include "device/cuda/plugin.hpp"

namespace cermet::comm {
namespace {

/// Watches the group from a thread of its own: when a rank is gone, it says so, because the host may be waiting for the device, and ends what waits there.
class Watchdog {
 public:
  Watchdog(Communicator& host, DeviceGroup& group) : host_(host), group_(group), thread_([this] { watch(); }) {}
  ~Watchdog() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_all();
    thread_.join();
  }
  bool has_failed() const { return failed_.load(std::memory_order_acquire); }
  /// "rank 1 of 2: after call 17, all_reduce of ..: rank 0 is gone: ..".
  std::string reason() {
    const std::lock_guard lock(mutex_);
    return reason_;
  }
  void note_call(const CallHeader& call) {
    const std::lock_guard lock(mutex_);
    last_ = call;
  }

 private:
  void watch() {
    std::unique_lock lock(mutex_);
    while (!wake_.wait_for(lock, std::chrono::milliseconds(100), [&] { return stopping_; })) {
      std::string found = host_.failure();
      if (found.empty()) found = group_.failure();
      if (found.empty()) continue;
      reason_ = fmt::format("rank {} of {}: after {}: {}", host_.rank(), host_.size(), to_string(last_), found);
      failed_.store(true, std::memory_order_release);
      const std::string said = reason_;
      lock.unlock();  // abort() may wait for the device
      log().error("{}", said);
      group_.abort();
      return;
    }
  }

  Communicator& host_;
  DeviceGroup& group_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::string reason_;
  CallHeader last_{.what = what_none};
  std::atomic<bool> failed_{false};
  bool stopping_ = false;
  std::thread thread_;
};

/// NCCL's sums of integers wrap around where the operators clamp.
void require_reducible(const CollectiveCall& call) {
  if (!has_reduction(call.kind) || !is_integer(call.x.dtype) || call.reduction == Reduction::max || call.reduction == Reduction::min) return;
  fail(Status::unsupported, "{} of {}: expected max or min on a GPU, found a reduction that would wrap around where its definition clamps", name_of(call.kind),
       name_of(call.x.dtype));
}

GroupReduction reduction_of(Reduction reduction) {
  switch (reduction) {
    case Reduction::sum: return GroupReduction::sum;
    case Reduction::mean: return GroupReduction::avg;
    case Reduction::prod: return GroupReduction::prod;
    case Reduction::max: return GroupReduction::max;
    case Reduction::min: return GroupReduction::min;
  }
  return GroupReduction::sum;
}

class DeviceCommunicator final : public Communicator {
 public:
  DeviceCommunicator(Communicator& host, Device& device, std::unique_ptr<DeviceGroup> group, std::unique_ptr<Communicator> owned_host)
      : Communicator(host.rank(), host.size()),
        owned_host_(std::move(owned_host)),
        host_(host),
        device_(device),
        group_(std::move(group)),
        dog_(host, *group_) {}

  std::string_view engine() const override { return "nccl"; }
  bool on_device() const override { return true; }
  void run(const CollectiveCall& call, Stream* stream) override;
  void barrier() override {
    check();
    host_.barrier();
  }
  std::vector<std::string> gather_text(std::string_view text) override { return host_.gather_text(text); }
  std::unique_ptr<Communicator> split(int color, int key) override;
  void abort(std::string_view reason) noexcept override {
    host_.abort(reason);
    group_->abort();
  }
  void check() override {
    if (dog_.has_failed()) fail(Status::io, "{}", dog_.reason());
  }
  std::string failure() override { return dog_.has_failed() ? dog_.reason() : ""; }
  void set_timeout(double seconds) override { host_.set_timeout(seconds); }

 private:
  void enqueue(const CollectiveCall& call, const DenseCall& dense, Stream& stream);
  void exchange(const DenseCall& dense, const CollectiveCall& call, Stream& stream);

  std::unique_ptr<Communicator> owned_host_;  ///< of a group that was split off
  Communicator& host_;
  Device& device_;
  std::unique_ptr<DeviceGroup> group_;
  Watchdog dog_;
  std::uint64_t calls_ = 0;
  std::vector<CallHeader> agreed_;  ///< without their numbers: calls that all ranks are known to make
  std::vector<std::int64_t> sent_, received_;
};

/// The first call of each kind and size is compared on the host; later ones, and replays of captured graphs, rely on it.
void DeviceCommunicator::run(const CollectiveCall& call, Stream* stream) {
  check();
  const DenseCall dense = describe(call, rank(), size());
  require(stream != nullptr, "{}: expected a stream of the device, found none", name_of(call.kind));
  require(call.x.is_dense() && call.y.is_dense(), "{}: expected dense operands on a GPU, found {} and {} with strides", name_of(call.kind),
          call.x.type().to_string(), call.y.type().to_string());
  if (call.counts.present) fail(Status::unsupported, "{} with counts: expected engine mpi, shared or local, found nccl", name_of(call.kind));
  require_reducible(call);
  CallHeader header = header_of(dense);
  if (std::ranges::find(agreed_, header) == agreed_.end()) {
    host_.require_same(fmt::format("{} on GPUs", name_of(call.kind)), to_string(header));
    agreed_.push_back(header);
  }
  header.number = ++calls_;
  dog_.note_call(header);
  if (call.x.elements() > 0 || call.y.elements() > 0) enqueue(call, dense, *stream);
}

/// Parts of one sender or receiver, of `bytes` each; of root alone where `to_root` or `from_root`.
void DeviceCommunicator::exchange(const DenseCall& dense, const CollectiveCall& call, Stream& stream) {
  const std::int64_t bytes = dense.piece * dense.element_bytes();
  const bool to_all = call.kind == Collective::all_to_all, is_root = rank() == call.root;
  const bool gives_to_all = to_all || (call.kind == Collective::scatter_from && is_root),
             takes_from_all = to_all || (call.kind == Collective::gather_to && is_root);
  sent_.assign(static_cast<std::size_t>(size()), gives_to_all ? bytes : 0);
  received_.assign(static_cast<std::size_t>(size()), takes_from_all ? bytes : 0);
  const auto root = static_cast<std::size_t>(call.root);
  if (call.kind == Collective::gather_to) sent_[root] = bytes;
  if (call.kind == Collective::scatter_from) received_[root] = bytes;
  group_->exchange(call.x.data, sent_, call.y.data, received_, stream);
}

void DeviceCommunicator::enqueue(const CollectiveCall& call, const DenseCall& dense, Stream& stream) {
  const void* x = call.x.data;
  void* y = call.y.data;
  const GroupReduction reduction = reduction_of(call.reduction);
  const bool gets_nothing = (call.kind == Collective::reduce_to || call.kind == Collective::gather_to) && rank() != call.root;
  switch (call.kind) {
    case Collective::all_reduce: group_->all_reduce(x, y, dense.piece, dense.dtype, reduction, stream); break;
    case Collective::reduce_to: group_->reduce(x, y, dense.piece, dense.dtype, reduction, call.root, stream); break;
    case Collective::reduce_scatter: group_->reduce_scatter(x, y, dense.piece, dense.dtype, reduction, stream); break;
    case Collective::all_gather: group_->all_gather(x, y, dense.x_bytes(), stream); break;
    case Collective::broadcast_from: group_->broadcast(x, y, dense.x_bytes(), call.root, stream); break;
    case Collective::gather_to:
    case Collective::scatter_from:
    case Collective::all_to_all: exchange(dense, call, stream); break;
  }
  if (gets_nothing) stream.fill(y, 0, dense.y_bytes());
}

std::unique_ptr<DeviceGroup> join(Communicator& host, Device& device) {
  std::string own;
  if (host.rank() == 0) {
    const GroupIdentity identity = cuda::plugin().make_group_identity();
    own.assign(identity.data(), identity.size());
  }
  const std::string identity = host.gather_text(own)[0];
  GroupIdentity bytes{};
  CERMET_ASSERT(identity.size() == bytes.size());
  std::copy(identity.begin(), identity.end(), bytes.begin());
  return cuda::plugin().join_device_group(device, host.rank(), host.size(), bytes);
}

std::unique_ptr<Communicator> DeviceCommunicator::split(int color, int key) {
  std::unique_ptr<Communicator> host = host_.split(color, key);
  std::unique_ptr<DeviceGroup> group = join(*host, device_);
  Communicator& part = *host;
  return std::make_unique<DeviceCommunicator>(part, device_, std::move(group), std::move(host));
}

/// Checks calls and does nothing.
class NullCommunicator final : public Communicator {
 public:
  NullCommunicator(int rank, int size) : Communicator(rank, size) {}
  std::string_view engine() const override { return "null"; }
  bool on_device() const override { return true; }
  void run(const CollectiveCall& call, Stream*) override { describe(call, rank(), size()); }
  void barrier() override {}
  std::vector<std::string> gather_text(std::string_view text) override { return std::vector<std::string>(static_cast<std::size_t>(size()), std::string(text)); }
  std::unique_ptr<Communicator> split(int, int) override { fail(Status::unsupported, "split: expected a communicator of ranks that exist, found engine null"); }
  void abort(std::string_view) noexcept override {}
  void check() override {}
  std::string failure() override { return ""; }
  void set_timeout(double) override {}
};

}  // namespace

std::unique_ptr<Communicator> make_null_communicator(int rank, int size) {
  require(size >= 1 && rank >= 0 && rank < size, "communicator: expected a rank below the number of ranks, found rank {} of {}", rank, size);
  return std::make_unique<NullCommunicator>(rank, size);
}

std::unique_ptr<Communicator> make_device_communicator(Communicator& host, Device& device) {
  require(device.target() != nullptr, "communicator: expected a GPU, found {}", device.name());
  if (!device.computes()) return make_null_communicator(host.rank(), host.size());
  std::string problem;
  for (const std::string& text : host.gather_text(cuda::plugin().nccl_problem()))
    if (problem.empty()) problem = text;
  if (!problem.empty()) fail(Status::unsupported, "{}", problem);
  return std::make_unique<DeviceCommunicator>(host, device, join(host, device), nullptr);
}

}  // namespace cermet::comm
