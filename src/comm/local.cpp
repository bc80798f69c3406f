#include "comm/local.hpp"

#include <map>
#include <mutex>

#include "base/buffer.hpp"
#include "base/cores.hpp"
#include "comm/window_communicator.hpp"

namespace cermet::comm {
namespace {

class LocalSegment final : public Segment {
 public:
  explicit LocalSegment(int ranks) : memory_(Board::bytes(ranks, default_window_bytes) + alignof(Slot)) {
    const std::int64_t address = reinterpret_cast<std::intptr_t>(memory_.data());
    std::byte* begin = memory_.data() + (round_up(address, static_cast<std::int64_t>(alignof(Slot))) - address);
    std::memset(begin, 0, static_cast<std::size_t>(Board::bytes(ranks, 0)));
    board_ = reinterpret_cast<Board*>(begin);
    board_->initialize(ranks, default_window_bytes);
  }

  Board& board() override { return *board_; }
  std::string_view engine() const override { return "local"; }
  bool is_alive(int) override { return true; }  // threads that end destroy their communicator
  std::shared_ptr<Segment> join(const std::string& name, int, int ranks, const std::function<void()>&) override {
    const std::lock_guard lock(mutex_);
    std::weak_ptr<Segment>& known = parts_[name];
    std::shared_ptr<Segment> part = known.lock();
    if (!part) known = part = std::make_shared<LocalSegment>(ranks);
    return part;
  }

 private:
  AlignedBuffer memory_;
  Board* board_;
  std::mutex mutex_;
  std::map<std::string, std::weak_ptr<Segment>> parts_;
};

}  // namespace

std::vector<std::unique_ptr<Communicator>> make_local_group(int ranks) {
  require(ranks >= 1 && ranks <= 1024, "local group: expected a number of ranks in [1, 1024], found {}", ranks);
  const auto segment = std::make_shared<LocalSegment>(ranks);
  const int cores = usable_cores();
  std::vector<std::unique_ptr<Communicator>> group;
  for (int r = 0; r < ranks; ++r) group.push_back(make_window_communicator(segment, r, cores));
  return group;
}

}  // namespace cermet::comm
