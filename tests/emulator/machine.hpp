// Threads, warps, blocks and clusters of a launch, and the memory that they address.
#pragma once

#include <cstddef>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <span>
#include <vector>

#include "base/error.hpp"
#include "tests/emulator/program.hpp"
#include "tests/emulator/races.hpp"

namespace cermet::emulator {

/// How a launch is run: every way must give the same results.
struct Mode {
  bool late = false;                       ///< asynchronous work completes at the last moment, otherwise at once
  std::optional<std::uint64_t> seed = {};  ///< threads take turns in random order
  bool races = false;                      ///< faults at accesses to shared memory that nothing orders
  int multiprocessors = 132;               ///< few make blocks take several items
};

/// Host memory that launches may access.
class Memory {
 public:
  void add(const void* data, std::uint64_t bytes);
  void remove(const void* data);
  struct Region {
    std::uint64_t first = 1, last = 0;
  };
  /// The region with the address; empty where there is none.
  Region find(std::uint64_t address) const;

 private:
  std::map<std::uint64_t, std::uint64_t> regions_;  ///< end by begin
};

enum class State : std::uint8_t {
  running,
  yielding,  ///< runs again when others have had their turn
  waiting,   ///< for threads that are to execute `at`, too
  blocked,   ///< at a barrier
  exited,
};

struct Block;
struct Warp;
struct Launch;

/// A copy by cp.async.
struct AsyncCopy {
  std::byte* to = nullptr;
  const std::byte* from = nullptr;
  std::uint64_t address = 0;           ///< of `to`
  std::uint32_t bytes = 0, valid = 0;  ///< the rest is zero
};

struct Thread {
  std::uint64_t* registers = nullptr;
  std::uint32_t pc = 0;
  State state = State::running;
  std::uint8_t lane = 0;
  std::uint32_t index = 0;  ///< in its block
  std::uint32_t mask = 0;   ///< lanes that it waits for
  const Instruction* at = nullptr;
  Warp* warp = nullptr;
  Block* block = nullptr;
  std::vector<std::byte> local;
  std::vector<std::pair<std::uint32_t, const Call*>> calls;  ///< where they return
  std::vector<std::vector<AsyncCopy>> copies;                ///< groups that are not complete; the last is open
  std::vector<std::vector<std::function<void()>>> stores;    ///< the same of bulk stores
  const Instruction* polled = nullptr;                       ///< the last load that may poll
  std::uint64_t polled_address = 0, polled_value = 0;
  std::uint32_t polls = 0;

  template <class T>
  T get(std::uint32_t number) const {
    T value;
    std::memcpy(&value, &registers[number], sizeof value);
    return value;
  }
  /// Integers are extended as their type says.
  template <class T>
  void set(std::uint32_t number, T value) {
    if constexpr (std::is_integral_v<T>) {
      registers[number] = static_cast<std::uint64_t>(static_cast<std::int64_t>(value));
      if constexpr (std::is_unsigned_v<T>) registers[number] = static_cast<std::uint64_t>(value);
    } else {
      registers[number] = 0;
      std::memcpy(&registers[number], &value, sizeof value);
    }
  }
  bool predicate(std::uint32_t number) const { return registers[number] & 1; }
  Launch& launch() const;
};

struct Warp {
  Block* block = nullptr;
  std::vector<Thread*> lanes;
  std::uint32_t live = 0;
  std::uint32_t live_at_start = 0;
};

/// A named barrier of a block: threads that are there.
struct Barrier {
  std::uint32_t arrived = 0, expected = 0;
  std::vector<Thread*> waiting;
  bool any = false, all = true;
  std::uint32_t count = 0;  ///< of true conditions
  Order order;
};

/// Products that a warpgroup has started.
struct StartedProduct {
  const Instruction* instruction = nullptr;
  std::uint64_t a = 0, b = 0;  ///< descriptors
  bool accumulate = true;
  std::uint32_t group = 0;
};

struct WarpGroup {
  std::vector<StartedProduct> products;
  std::uint32_t group = 0;                                   ///< the open one
  std::map<std::uint32_t, std::vector<std::uint64_t>> held;  ///< what accumulators in use hold, of each thread
};

struct Cluster;

struct Block {
  Launch* launch = nullptr;
  Cluster* cluster = nullptr;
  std::uint32_t index = 0, rank = 0;  ///< in the grid, in the cluster
  std::uint32_t live = 0;
  std::vector<std::byte> shared;  ///< indexed by address
  std::vector<Thread> threads;
  std::vector<Warp> warps;
  std::vector<WarpGroup> groups;
  std::vector<std::uint64_t> registers;
  Barrier barriers[16];
};

struct Cluster {
  std::vector<std::unique_ptr<Block>> blocks;
  std::uint32_t live = 0;
  // The cluster's barrier: its phase, and threads that have arrived in it or ended.
  std::uint32_t phase = 0, arrived = 0, gone = 0, gone_after_arrival = 0;
  std::vector<std::uint32_t> arrivals;  ///< of each thread
  std::unique_ptr<Races> races;         ///< where they are looked for
};

struct LaunchSize {
  std::uint32_t blocks = 1, threads = 1, shared_bytes = 0, cluster = 1;
  std::uint32_t blocks_y = 1, blocks_z = 1, threads_y = 1, threads_z = 1;
};

struct Launch {
  const Program* program = nullptr;
  LaunchSize size;
  Memory* memory = nullptr;
  Mode mode;
  std::byte* parameters = nullptr;
  std::uint64_t events = 0;    ///< what threads did that others may wait for
  std::uint64_t executed = 0;  ///< instructions
  std::mt19937_64 random;
  std::deque<std::function<void()>> pending;  ///< asynchronous work that is not tied to a thread

  /// Does it now, or when nothing else can run.
  void start(std::function<void()> work) {
    if (mode.late) pending.push_back(std::move(work));
    else work();
  }
};

/// Threads that execute an instruction together, with their lanes or places in the warpgroup.
class Group {
 public:
  Group(std::span<Thread* const> threads, std::uint32_t mask) : threads_(threads), mask_(mask) {}
  std::span<Thread* const> threads() const { return threads_; }
  /// Null where the lane takes no part.
  Thread* lane(std::uint32_t i) const { return i < threads_.size() && (mask_ >> (i & 31) & 1) ? threads_[i] : nullptr; }
  std::uint32_t mask() const { return mask_; }
  template <class F>
  void each(F f) const {
    for (std::uint32_t i = 0; i < threads_.size(); ++i)
      if (Thread* t = lane(i)) f(*t, i);
  }

 private:
  std::span<Thread* const> threads_;
  std::uint32_t mask_;
};

inline Launch& Thread::launch() const { return *block->launch; }

/// Runs all blocks. Throws Error that names the kernel, the line of PTX and the thread.
void run_launch(const Program& program, const LaunchSize& size, std::span<const std::byte> parameters, Memory& memory,
                const Mode& mode);

/// Throws Error of what a thread does in the instruction that it executes.
[[noreturn]] void fault(const Thread& t, const std::string& what);
std::string describe(const Thread& t);

/// The thread waits for the lanes of `mask`, which must execute the same instruction.
void wait_for_lanes(Thread& t, const Instruction& in, std::uint32_t mask);
/// The same for the 128 threads of its warpgroup.
void wait_for_warpgroup(Thread& t, const Instruction& in);
/// Of a thread that ended: threads that wait for it need not any more.
void leave(Thread& t);
/// The same at barriers.
void leave_barriers(Thread& t);

// Addresses. Those of global memory are the host's; these windows are where no process has memory.
inline constexpr std::uint64_t shared_window = std::uint64_t{1} << 60, local_window = std::uint64_t{1} << 61;
/// Of the cluster's shared memory: the block's rank plus one, above the address; 0 is the own block.
inline constexpr unsigned rank_shift = 24;

/// Host memory of an access, which is checked.
std::byte* global_memory(Thread& t, std::uint64_t address, std::uint64_t bytes, const Instruction& in);
std::byte* shared_memory(Thread& t, std::uint64_t address, std::uint64_t bytes);
std::byte* local_memory(Thread& t, std::uint64_t address, std::uint64_t bytes);
std::byte* param_memory(Thread& t, std::uint64_t address, std::uint64_t bytes);
std::byte* generic_memory(Thread& t, std::uint64_t address, std::uint64_t bytes, const Instruction& in);
/// The block whose shared memory an address of the cluster's window names.
Block& block_of(Thread& t, std::uint64_t address);

/// For the search for races, where it is on: accesses to shared memory, and what orders them.
void note_read(const Thread& t, std::uint64_t address, std::uint64_t bytes, Proxy proxy = Proxy::generic);
void note_write(const Thread& t, std::uint64_t address, std::uint64_t bytes, Proxy proxy = Proxy::generic);
void note_release(const Thread& t, Order& order);
void note_acquire(const Thread& t, const Order& order);
/// Of an atomic, or an access like it: it orders whatever others do with such accesses.
void note_synchronization(const Thread& t);

/// Completes a thread's cp.async groups but the latest `pending`.
void complete_copies(Thread& t, std::size_t pending);
void complete_stores(Thread& t, std::size_t pending);

}  // namespace cermet::emulator
