#include "comm/peer_group.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <fstream>
#include <map>
#include <random>
#include <set>

#include "comm/peer_launch.hpp"
#include "device/cuda/plugin.hpp"

namespace cermet::comm {

/// Memory of a rank of this process, or of another one.
struct PeerGroup::Memory {
  DeviceBuffer buffer;
};

namespace {

/// What each rank sends to the others, as bytes.
struct Offer {
  std::array<char, 40> host{};            ///< identifies the running system
  std::uint64_t process = 0, number = 0;  ///< of the memory, in its process
  GpuIdentity device;
  SharedMemoryHandle handle{};
};

/// Ranks on one device: blocks of all of them are resident beside the other kernels' only where they are few.
constexpr int shared_channels = 8;

std::uint64_t this_process() {
  static const std::uint64_t number = (std::uint64_t{std::random_device()()} << 32) | std::random_device()();
  return number;
}

/// Memory of the ranks of this process, by number: threads share pointers, because a process cannot open its own
/// handles.
template <class Memory>
class Shelf {
 public:
  std::uint64_t put(const std::shared_ptr<Memory>& memory) {
    const std::lock_guard lock(mutex_);
    kept_[++last_] = memory;
    return last_;
  }
  std::shared_ptr<Memory> get(std::uint64_t number) {
    const std::lock_guard lock(mutex_);
    const auto found = kept_.find(number);
    return found == kept_.end() ? nullptr : found->second.lock();
  }

 private:
  std::mutex mutex_;
  std::uint64_t last_ = 0;
  std::map<std::uint64_t, std::weak_ptr<Memory>> kept_;
};

std::array<char, 40> this_host() {
  std::array<char, 40> id{};
  std::ifstream("/proc/sys/kernel/random/boot_id").read(id.data(), 36);
  return id;
}

std::string text_of(const Offer& offer) {
  static_assert(std::is_trivially_copyable_v<Offer>);
  return {reinterpret_cast<const char*>(&offer), sizeof(offer)};
}

Offer offer_of(std::string_view text) {
  Offer offer;
  CERMET_ASSERT(text.size() == sizeof(offer));
  std::memcpy(&offer, text.data(), sizeof(offer));
  return offer;
}

peer::Protocol protocol_of(Route route) {
  return route == Route::stamped    ? peer::Protocol::stamped
         : route == Route::two_shot ? peer::Protocol::shares
                                    : peer::Protocol::once;
}

/// Throws on every rank where body() threw on one.
template <class Body>
void together(Communicator& host, Body body) {
  std::string own;
  try {
    body();
  } catch (const std::exception& error) {
    own = error.what();
  }
  const std::vector<std::string> all = host.gather_text(std::string_view(own).substr(0, 1000));
  for (std::size_t r = 0; r < all.size(); ++r)
    if (!all[r].empty()) fail(Status::unsupported, "GPUs that address each other's memory: rank {}: {}", r, all[r]);
}

}  // namespace

PeerGroup::PeerGroup(Communicator& host, Device& device, double timeout)
    : host_(host), rank_(host.rank()), size_(host.size()), timeout_(timeout), programs_(device) {
  if (size_ > peer::most_ranks)
    fail(Status::unsupported, "GPUs that address each other's memory: expected at most {} ranks, found {}",
         peer::most_ranks, size_);
  static Shelf<Memory> shelf;
  const auto own = std::make_shared<Memory>();
  Offer offer{this_host(), this_process(), 0, {}, {}};
  together(host, [&] {
    own->buffer = device.allocate(peer::memory_bytes(size_));
    board_ = device.allocate_host(sizeof(peer::Board));
    std::memset(board_.data(), 0, sizeof(peer::Board));
    const std::unique_ptr<Stream> stream = device.make_stream();
    stream->fill(own->buffer.data(), 0, own->buffer.size());
    stream->synchronize();
    offer.device = cuda::plugin().identify(device);
    offer.number = shelf.put(own);
  });
  // Handles are made only where processes differ: some containers refuse them.
  std::vector<Offer> offers;
  for (const std::string& text : host.gather_text(text_of(offer))) offers.push_back(offer_of(text));
  const bool one_process =
      std::ranges::all_of(offers, [&](const Offer& each) { return each.process == offer.process; });
  if (!one_process) {
    together(host, [&] { offer.handle = cuda::plugin().share_memory(device, own->buffer); });
    offers.clear();
    for (const std::string& text : host.gather_text(text_of(offer))) offers.push_back(offer_of(text));
  }
  together(host, [&] {
    std::set<std::array<char, 16>> devices;
    int most_on_one = 1;
    for (int r = 0; r < size_; ++r) {
      const Offer& each = offers[static_cast<std::size_t>(r)];
      devices.insert(each.device.uuid);
      most_on_one = std::max(most_on_one, static_cast<int>(std::ranges::count(
                                              offers, each.device.uuid, [](const Offer& o) { return o.device.uuid; })));
      if (r == rank_) {
        memory_.push_back(own);
      } else if (each.host != offer.host) {
        fail(Status::unsupported, "expected all ranks on one host, found rank {} on another", r);
      } else if (each.process == offer.process) {
        cuda::plugin().reach_device(device, each.device.index);
        memory_.push_back(shelf.get(each.number));
        require(memory_.back() != nullptr, "expected the memory of rank {}, found that it has gone", r);
      } else {
        memory_.push_back(
            std::make_shared<Memory>(Memory{cuda::plugin().open_memory(device, each.handle, own->buffer.size())}));
      }
    }
    shares_device_ = devices.size() < offers.size();
    ranks_on_device_ = most_on_one;
  });
  if (shares_device_) channels_ = shared_channels;
}

peer::Link PeerGroup::link_of(std::uint32_t call) const {
  peer::Link link{};
  for (int r = 0; r < size_; ++r)
    link.memory[r] = reinterpret_cast<char*>(memory_[static_cast<std::size_t>(r)]->buffer.data());
  link.board = reinterpret_cast<peer::Board*>(board_.data());
  link.timeout = static_cast<std::uint64_t>(timeout_ * 1e9);
  link.rank = rank_;
  link.ranks = size_;
  link.alone = !shares_device_;
  link.call = call;
  return link;
}

peer::Link PeerGroup::link(std::string_view what) {
  const std::lock_guard lock(mutex_);
  const auto known = std::ranges::find(names_, what);
  const auto number = static_cast<std::uint32_t>(known - names_.begin());
  if (known == names_.end()) names_.emplace_back(what);
  return link_of(number);
}

std::uint32_t PeerGroup::number_of(const CallHeader& header) {
  const std::lock_guard lock(mutex_);
  for (const auto& [known, number] : calls_)
    if (known == header) return number;
  const auto number = static_cast<std::uint32_t>(names_.size());
  const std::string text = to_string(header);
  names_.push_back(text.substr(std::min(text.find(", ") + 2, text.size())));  // without "call 0, "
  calls_.emplace_back(header, number);
  return number;
}

void PeerGroup::prepare(std::span<const DenseCall> calls) {
  std::vector<cuda::Program> programs;
  for (const DenseCall& call : calls) programs.push_back(peer_program(call));
  programs_.prepare(programs);
}

void PeerGroup::run(const DenseCall& call, Stream& stream) {
  if (call.counts) {  // sizes differ from call to call, and so many names would be kept
    const RaggedLaunch launch =
        ragged_launch(link(fmt::format("all_to_all of {}[.., {}] with counts", name_of(call.dtype), call.row_elements)),
                      channels_, call);
    return enqueue(call, launch.program, &launch.params, launch.params.channels, stream);
  }
  const PeerLaunch launch =
      peer_launch(link_of(number_of(header_of(call))), channels_, call, protocol_of(routes_.over_peer_memory(call)));
  enqueue(call, launch.program, &launch.params, launch.params.channels, stream);
}

void PeerGroup::enqueue(const DenseCall& call, const cuda::Program& task, const void* params, std::uint32_t items,
                        Stream& stream) {
  const cuda::LoadedProgram program = programs_.get(std::span(&task, 1)).front();
  void* arguments[] = {const_cast<void*>(params), &items};
  const bool overlaps = programs_.device().target()->compute_capability >= 90;
  const LaunchShape shape{
      .blocks = items, .threads = static_cast<std::uint32_t>(program.threads), .overlaps_previous = overlaps};
  try {
    line_up();
    stream.launch(shape, program.loaded.function, arguments);
    line_up();
  } catch (const Error& error) {  // of the hosts' barrier, which does not know for what it waited
    throw Error(error.status(), fmt::format("{}: {}", to_string(header_of(call)), error.what()));
  }
}

void PeerGroup::line_up() {
  if (shares_device_) host_.barrier();
}

std::string PeerGroup::failure() {
  auto& board = *reinterpret_cast<peer::Board*>(board_.data());
  if (std::atomic_ref(board.stuck).load(std::memory_order_acquire) == 0) return "";
  const std::lock_guard lock(mutex_);
  return fmt::format("{}: exchange {}: rank {} did not arrive within {} s",
                     board.call < names_.size() ? names_[board.call] : "a launch", board.exchange, board.rank,
                     timeout_);
}

void PeerGroup::abort() noexcept {
  auto& board = *reinterpret_cast<peer::Board*>(board_.data());
  std::atomic_ref(board.end).store(1, std::memory_order_release);
}

}  // namespace cermet::comm
