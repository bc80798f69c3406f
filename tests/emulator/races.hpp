// Accesses of a cluster's warps to shared memory that nothing orders, whichever order they came in here.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace cermet::emulator {

struct Thread;

/// How far the events of each warp are known somewhere: those that happened, and those that a fence.proxy.async orders
/// before asynchronous accesses. A vector clock.
struct Order {
  std::vector<std::uint32_t> seen, fenced;
  void join(const Order& other);
};

enum class Proxy : std::uint8_t { generic, async };

/// Warps are distinguished, their lanes are not. Words of 4 bytes remember their last write, and each warp's last read.
class Races {
 public:
  Races(std::size_t blocks, std::size_t warps_of_block, std::size_t shared_bytes);

  /// Of an access to an address of the cluster's window. Faults where a write and another access are not ordered, or
  /// where an asynchronous read follows an ordinary write without a fence.
  void read(const Thread& t, std::uint64_t address, std::uint64_t bytes, Proxy proxy);
  void write(const Thread& t, std::uint64_t address, std::uint64_t bytes, Proxy proxy);

  /// The same of a product of a warpgroup, of which `first` is the first thread: all of its warps must know what was
  /// written. It has read when one of them goes on.
  void begin_product(const Thread& first);
  void read_by_warpgroup(const Thread& first, std::uint64_t address, std::uint64_t bytes);

  /// What the thread did is known to those that acquire it.
  void release(const Thread& t, Order& order);
  void acquire(const Thread& t, const Order& order) { agents_[agent(t)].join(order); }
  void fence(const Thread& t);

  /// What arrived at an mbarrier in its phase, and in those that ended.
  struct Phases {
    Order arriving, ended;
  };
  std::unordered_map<const std::byte*, Phases> mbarriers;
  Phases cluster;  ///< the same of the cluster's barrier
  Order memory;    ///< what atomics and accesses like them order

 private:
  struct Word {
    std::uint32_t clock = 0, line = 0;
    std::uint16_t writer = 0;
    std::uint8_t bytes = 0;  ///< a mask
    Proxy proxy = Proxy::generic;
  };
  std::size_t agent(const Thread& t) const;
  std::size_t groups() const { return warps_ / 4; }
  void check_read(const Thread& t, const Order& order, const Word& w, std::uint64_t address, Proxy proxy) const;
  template <class F>
  void each_word(const Thread& t, std::uint64_t address, std::uint64_t bytes, F f);

  std::size_t warps_, words_;
  std::vector<Order> agents_;
  std::vector<Word> written_;        ///< of all blocks
  std::vector<std::uint32_t> read_;  ///< of each word and warp of its block: a clock, and a mask of bytes
  std::vector<std::array<std::uint32_t, 4>> products_{1};  ///< clocks of the warps, of each product
  std::vector<std::uint32_t> read_by_product_;             ///< of each word and warpgroup of its block
};

}  // namespace cermet::emulator
