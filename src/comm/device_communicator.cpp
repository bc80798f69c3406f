#include "comm/device_communicator.hpp"

#include <algorithm>
#include <charconv>

#include "base/env.hpp"
#include "base/log.hpp"
#include "comm/call.hpp"
#include "comm/device_links.hpp"
#include "comm/watchdog.hpp"
#include "device/cuda/plugin.hpp"

namespace cermet::comm {
namespace {

/// NCCL's sums of integers wrap around where the operators clamp.
bool nccl_would_wrap(const CollectiveCall& call) {
  return has_reduction(call.kind) && is_integer(call.x.dtype) && call.reduction != Reduction::max &&
         call.reduction != Reduction::min;
}

void require_reducible(const CollectiveCall& call) {
  if (!nccl_would_wrap(call)) return;
  fail(Status::unsupported,
       "{} of {}: expected max or min on a GPU, found a reduction that would wrap around where its definition clamps",
       name_of(call.kind), name_of(call.x.dtype));
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
  DeviceCommunicator(Communicator& host, Device& device, Links links, DeviceEngine engine,
                     std::unique_ptr<Communicator> owned_host)
      : Communicator(host.rank(), host.size()),
        owned_host_(std::move(owned_host)),
        host_(host),
        device_(device),
        links_(std::move(links)),
        engine_(engine),
        dog_(
            host, [this] { return failure_of_links(); }, [this] { end_links(); }) {}

  std::string_view engine() const override { return !links_.peer ? "nccl" : links_.nccl ? "peer+nccl" : "peer"; }
  bool on_device() const override { return true; }
  cuda::PeerMemory* peer_memory() override { return links_.peer.get(); }
  void run(const CollectiveCall& call, Stream* stream) override;
  void prepare(std::span<const CollectiveCall> calls) override;
  void barrier() override {
    check();
    host_.barrier();
  }
  std::vector<std::string> gather_text(std::string_view text) override { return host_.gather_text(text); }
  std::unique_ptr<Communicator> split(int color, int key) override;
  void abort(std::string_view reason) noexcept override {
    host_.abort(reason);
    end_links();
  }
  void check() override;
  std::string failure() override { return dog_.has_failed() ? dog_.reason() : ""; }
  void set_timeout(double seconds) override {
    host_.set_timeout(seconds);
    if (links_.peer) links_.peer->set_timeout(seconds);
  }

 private:
  void enqueue(const CollectiveCall& call, const DenseCall& dense, Stream& stream);
  void exchange(const DenseCall& dense, const CollectiveCall& call, Stream& stream);
  void fill_behind(const DenseCall& dense, Stream& stream);
  std::string failure_of_links() {
    std::string found = links_.peer ? links_.peer->failure() : "";
    return found.empty() && links_.nccl ? links_.nccl->failure() : found;
  }
  void end_links() noexcept {
    if (links_.peer) links_.peer->abort();
    if (links_.nccl) links_.nccl->abort();
  }

  std::unique_ptr<Communicator> owned_host_;  ///< of a group that was split off
  Communicator& host_;
  Device& device_;
  Links links_;
  DeviceEngine engine_;
  Watchdog dog_;
  bool aborted_ = false;  ///< the others know that a launch gave up
  std::uint64_t calls_ = 0;
  std::vector<CallHeader> agreed_;  ///< without their numbers: calls that all ranks are known to make
  std::vector<std::int64_t> sent_, received_;
};

/// A launch that gave up has left its result as it was: the host looks for it before the watchdog does.
void DeviceCommunicator::check() {
  std::string reason = dog_.has_failed() ? dog_.reason() : "";
  if (const std::string stuck = links_.peer ? links_.peer->failure() : ""; !stuck.empty()) {
    reason = fmt::format("rank {} of {}: {}", rank(), size(), stuck);
    if (!aborted_) host_.abort(stuck);
    aborted_ = true;
  }
  if (!reason.empty()) fail(Status::io, "{}", reason);
}

void DeviceCommunicator::prepare(std::span<const CollectiveCall> calls) {
  if (!links_.peer) return;
  std::vector<DenseCall> list;
  for (const CollectiveCall& call : calls) list.push_back(describe(call, rank(), size()));  // without addresses
  links_.peer->prepare(list);
}

/// The first call of each kind and size is compared on the host; later ones, and replays of captured graphs, rely on
/// it. Those with counts are compared each time.
void DeviceCommunicator::run(const CollectiveCall& call, Stream* stream) {
  check();
  DenseCall dense = describe(call, rank(), size());
  dense.x = call.x.as<const std::byte>();
  dense.y = call.y.as<std::byte>();
  require(stream != nullptr, "{}: expected a stream of the device, found none", name_of(call.kind));
  require(call.x.is_dense() && call.y.is_dense(), "{}: expected dense operands on a GPU, found {} and {} with strides",
          name_of(call.kind), call.x.type().to_string(), call.y.type().to_string());
  if (dense.counts && stream->is_capturing())
    fail(Status::unsupported,
         "{} with counts: expected a call outside of captured graphs, which cannot read its counts, found one that is "
         "captured",
         name_of(call.kind));
  const bool by_peer =
      links_.peer && (!links_.nccl || nccl_would_wrap(call) || links_.peer->routes().takes_peer_memory(dense));
  if (!by_peer) require_reducible(call);
  CallHeader header = header_of(dense);
  if (dense.counts || std::ranges::find(agreed_, header) == agreed_.end()) {
    if (by_peer)
      links_.peer->prepare(dense);  // before another rank may wait on the same device, which a load would wait for
    host_.require_same(fmt::format("{} on GPUs", name_of(call.kind)), to_string(header));
    if (!dense.counts) agreed_.push_back(header);  // counts differ from call to call
  }
  header.number = ++calls_;
  dog_.note_call(header);
  if (dense.piece == 0) return;
  if (by_peer) links_.peer->run(dense, *stream);
  else enqueue(call, dense, *stream);
  if (dense.counts) fill_behind(dense, *stream);
}

/// Rows of an uneven exchange's result that no rank sent.
void DeviceCommunicator::fill_behind(const DenseCall& dense, Stream& stream) {
  const std::int64_t received = dense.counts->received(rank());
  if (received < dense.rows)
    stream.fill(dense.y + received * dense.row_bytes(), 0, (dense.rows - received) * dense.row_bytes());
}

/// Parts of one sender or receiver, of `bytes` each; of root alone where `to_root` or `from_root`.
void DeviceCommunicator::exchange(const DenseCall& dense, const CollectiveCall& call, Stream& stream) {
  const std::int64_t bytes = dense.piece * dense.element_bytes();
  const bool to_all = call.kind == Collective::all_to_all, is_root = rank() == call.root;
  const bool gives_to_all = to_all || (call.kind == Collective::scatter_from && is_root),
             takes_from_all = to_all || (call.kind == Collective::gather_to && is_root);
  sent_.assign(static_cast<std::size_t>(size()), gives_to_all ? bytes : 0);
  received_.assign(static_cast<std::size_t>(size()), takes_from_all ? bytes : 0);
  for (int other = 0; dense.counts && other < size(); ++other) {
    sent_[static_cast<std::size_t>(other)] = dense.counts->at(rank(), other) * dense.row_bytes();
    received_[static_cast<std::size_t>(other)] = dense.counts->at(other, rank()) * dense.row_bytes();
  }
  const auto root = static_cast<std::size_t>(call.root);
  if (call.kind == Collective::gather_to) sent_[root] = bytes;
  if (call.kind == Collective::scatter_from) received_[root] = bytes;
  links_.nccl->exchange(call.x.data, sent_, call.y.data, received_, stream);
}

void DeviceCommunicator::enqueue(const CollectiveCall& call, const DenseCall& dense, Stream& stream) {
  const void* x = call.x.data;
  void* y = call.y.data;
  const GroupReduction reduction = reduction_of(call.reduction);
  const bool gets_nothing =
      (call.kind == Collective::reduce_to || call.kind == Collective::gather_to) && rank() != call.root;
  switch (call.kind) {
    case Collective::all_reduce: links_.nccl->all_reduce(x, y, dense.piece, dense.dtype, reduction, stream); break;
    case Collective::reduce_to:
      links_.nccl->reduce(x, y, dense.piece, dense.dtype, reduction, call.root, stream);
      break;
    case Collective::reduce_scatter:
      links_.nccl->reduce_scatter(x, y, dense.piece, dense.dtype, reduction, stream);
      break;
    case Collective::all_gather: links_.nccl->all_gather(x, y, dense.x_bytes(), stream); break;
    case Collective::broadcast_from: links_.nccl->broadcast(x, y, dense.x_bytes(), call.root, stream); break;
    case Collective::gather_to:
    case Collective::scatter_from:
    case Collective::all_to_all: exchange(dense, call, stream); break;
  }
  if (gets_nothing) stream.fill(y, 0, dense.y_bytes());
}

std::unique_ptr<Communicator> DeviceCommunicator::split(int color, int key) {
  std::unique_ptr<Communicator> host = host_.split(color, key);
  Links links = joined_by(*host, device_, engine_);
  Communicator& part = *host;
  return std::make_unique<DeviceCommunicator>(part, device_, std::move(links), engine_, std::move(host));
}

/// Checks calls and does nothing.
class NullCommunicator final : public Communicator {
 public:
  NullCommunicator(int rank, int size) : Communicator(rank, size) {}
  std::string_view engine() const override { return "null"; }
  bool on_device() const override { return true; }
  void run(const CollectiveCall& call, Stream*) override { describe(call, rank(), size()); }
  void barrier() override {}
  std::vector<std::string> gather_text(std::string_view text) override {
    return std::vector<std::string>(static_cast<std::size_t>(size()), std::string(text));
  }
  std::unique_ptr<Communicator> split(int, int) override {
    fail(Status::unsupported, "split: expected a communicator of ranks that exist, found engine null");
  }
  void abort(std::string_view) noexcept override {}
  void check() override {}
  std::string failure() override { return ""; }
  void set_timeout(double) override {}
};

}  // namespace

std::unique_ptr<Communicator> make_null_communicator(int rank, int size) {
  require(size >= 1 && rank >= 0 && rank < size,
          "communicator: expected a rank below the number of ranks, found rank {} of {}", rank, size);
  return std::make_unique<NullCommunicator>(rank, size);
}

DeviceEngine device_engine_from(std::string_view name, std::string_view what) {
  static constexpr std::pair<std::string_view, DeviceEngine> known[] = {
      {"auto", DeviceEngine::automatic},  {"nccl", DeviceEngine::nccl},         {"peer", DeviceEngine::peer},
      {"stamped", DeviceEngine::stamped}, {"one-shot", DeviceEngine::one_shot}, {"two-shot", DeviceEngine::two_shot}};
  for (const auto& [known_name, engine] : known)
    if (name == known_name) return engine;
  fail(Status::invalid_argument, "{}: expected auto, nccl, peer, stamped, one-shot or two-shot, found '{}'", what,
       name);
}

std::unique_ptr<Communicator> make_device_communicator(Communicator& host, Device& device, DeviceEngine engine) {
  require(device.target() != nullptr, "communicator: expected a GPU, found {}", device.name());
  if (engine == DeviceEngine::automatic)
    engine = device_engine_from(env::value(env::Name::CERMET_COMM_ROUTE), "CERMET_COMM_ROUTE");
  if (!device.computes()) return make_null_communicator(host.rank(), host.size());
  return std::make_unique<DeviceCommunicator>(host, device, joined_by(host, device, engine), engine, nullptr);
}

bool devices_differ(Communicator& host, Device& device) {
  const GpuIdentity identity = cuda::plugin().identify(device);
  std::vector<std::string> all = host.gather_text({identity.uuid.data(), identity.uuid.size()});
  std::ranges::sort(all);
  return std::ranges::adjacent_find(all) == all.end();
}

std::string device_of_rank(std::string_view device, int local_rank) {
  int first = 0;
  if (device != "cuda")
    std::from_chars(device.data() + std::min<std::size_t>(5, device.size()), device.data() + device.size(), first);
  const int index = first + local_rank, count = std::max(1, cuda::plugin().device_count());
  if (index >= count)
    log().warn("rank {} shares cuda:{} with another one: there are {} GPUs; for checking, not for speed", local_rank,
               index % count, count);
  return fmt::format("cuda:{}", index % count);
}

}  // namespace cermet::comm
