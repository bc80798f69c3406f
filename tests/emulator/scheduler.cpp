// Runs the blocks of a launch: few at a time, more when those wait for what they do not do themselves.
#include <algorithm>
#include <numeric>

#include "tests/emulator/machine.hpp"

namespace cermet::emulator {
namespace {

/// Instructions of a thread before others have their turn.
constexpr std::uint32_t turn = 20000;
/// Rounds in which threads run and nothing happens, before they count as waiting for each other.
constexpr int most_idle_rounds = 2000;

std::uint64_t special_value(const Launch& launch, const Block& block, const Thread& t, Special special) {
  const LaunchSize& s = launch.size;
  const std::uint32_t x = s.threads, y = s.threads_y;
  switch (special) {
    case Special::tid_x: return t.index % x;
    case Special::tid_y: return t.index / x % y;
    case Special::tid_z: return t.index / x / y;
    case Special::ntid_x: return x;
    case Special::ntid_y: return y;
    case Special::ntid_z: return s.threads_z;
    case Special::ctaid_x: return block.index % s.blocks;
    case Special::ctaid_y: return block.index / s.blocks % s.blocks_y;
    case Special::ctaid_z: return block.index / s.blocks / s.blocks_y;
    case Special::nctaid_x: return s.blocks;
    case Special::nctaid_y: return s.blocks_y;
    case Special::nctaid_z: return s.blocks_z;
    case Special::laneid: return t.lane;
    case Special::warpid: return t.index / 32;
    case Special::smid: return block.index;
    case Special::nsmid: return 132;
    case Special::lanemask_eq: return 1u << t.lane;
    case Special::lanemask_le: return (2ull << t.lane) - 1;
    case Special::lanemask_lt: return (1u << t.lane) - 1;
    case Special::lanemask_ge: return 0xffffffffu << t.lane;
    case Special::lanemask_gt: return (0xfffffffeull << t.lane) & 0xffffffffu;
    case Special::clusterid_x: return block.index / s.cluster;
    case Special::nclusterid_x: return s.blocks / s.cluster;
    case Special::cluster_ctaid_x:
    case Special::cluster_ctarank: return block.rank;
    case Special::cluster_nctaid_x:
    case Special::cluster_nctarank: return s.cluster;
    case Special::dynamic_smem_size: return s.shared_bytes;
    case Special::total_smem_size: return block.shared.size() - shared_base;
    case Special::param: return reinterpret_cast<std::uint64_t>(launch.parameters);
  }
  return 0;
}

class Scheduler {
 public:
  explicit Scheduler(Launch& launch) : launch_(launch), program_(*launch.program) {
    total_ = launch.size.blocks * launch.size.blocks_y * launch.size.blocks_z;
  }

  void run() {
    admit();
    int idle = 0;
    while (!clusters_.empty() || next_ < total_) {
      if (clusters_.empty()) admit();
      const std::uint64_t before = launch_.events;
      preempted_ = false;
      round();
      remove_ended();
      if (launch_.events != before) idle = 0;
      else if (!launch_.pending.empty()) complete_one();
      else if (next_ < total_) admit();
      else if (!preempted_ || ++idle > most_idle_rounds) deadlock();
    }
    while (!launch_.pending.empty()) complete_one();
  }

 private:
  void admit() {
    auto cluster = std::make_unique<Cluster>();
    for (std::uint32_t rank = 0; rank < launch_.size.cluster; ++rank)
      cluster->blocks.push_back(make_block(*cluster, rank));
    const Block& block = *cluster->blocks[0];
    if (launch_.mode.races)
      cluster->races = std::make_unique<Races>(cluster->blocks.size(), block.warps.size(), block.shared.size());
    clusters_.push_back(std::move(cluster));
  }

  std::unique_ptr<Block> make_block(Cluster& cluster, std::uint32_t rank) {
    auto block = std::make_unique<Block>();
    const std::uint32_t threads = launch_.size.threads * launch_.size.threads_y * launch_.size.threads_z;
    block->launch = &launch_;
    block->cluster = &cluster;
    block->index = next_++;
    block->rank = rank;
    block->live = threads;
    cluster.arrivals.resize(cluster.arrivals.size() + threads);
    cluster.live += threads;
    block->shared.assign(shared_base + program_.module.shared_bytes + launch_.size.shared_bytes, std::byte{0xff});
    block->threads.resize(threads);
    block->groups.resize((threads + 127) / 128);
    const std::size_t count = program_.registers.size();
    if (!spare_.empty()) {
      block->registers = std::move(spare_.back());
      spare_.pop_back();
    }
    block->registers.resize(count * threads);
    block->warps.resize((threads + 31) / 32);
    for (std::uint32_t i = 0; i < threads; ++i) {
      Thread& t = block->threads[i];
      t.registers = block->registers.data() + i * count;
      std::ranges::copy(program_.registers, t.registers);
      t.pc = program_.entry;
      t.index = i;
      t.lane = static_cast<std::uint8_t>(i % 32);
      t.block = block.get();
      t.warp = &block->warps[i / 32];
      t.warp->block = block.get();
      t.warp->lanes.push_back(&t);
      t.warp->live |= 1u << t.lane;
      for (const SpecialRegister& s : program_.specials)
        t.registers[s.number] = special_value(launch_, *block, t, s.special) + s.offset;
    }
    return block;
  }

  void round() {
    std::vector<Warp*> warps;
    for (const auto& cluster : clusters_)
      for (const auto& block : cluster->blocks)
        for (Warp& warp : block->warps)
          if (warp.live != 0) warps.push_back(&warp);
    if (launch_.mode.seed) std::ranges::shuffle(warps, launch_.random);
    for (Warp* warp : warps) run_warp(*warp);
  }

  void run_warp(Warp& warp) {
    for (Thread* t : warp.lanes)
      if (t->state == State::yielding) t->state = State::running;
    // In random order a warp stops somewhere, so that others overtake it.
    std::uint64_t most = launch_.mode.seed ? 32 + launch_.random() % 4096 : ~std::uint64_t{0};
    for (bool ran = true; ran && most > 0;) {
      ran = false;
      for (Thread* t : warp.lanes) {
        if (t->state != State::running) continue;
        const std::uint64_t limit = std::min<std::uint64_t>(most, turn);
        const std::uint64_t used = run_thread(*t, static_cast<std::uint32_t>(limit));
        most -= std::min(most, used);
        if (t->state == State::running && used >= limit) {
          t->state = State::yielding;
          preempted_ = true;
        }
        ran = true;
        if (most == 0) {
          preempted_ = true;
          break;
        }
      }
    }
  }

  std::uint64_t run_thread(Thread& t, std::uint32_t limit) {
    const Instruction* const code = program_.code.data();
    std::uint32_t left = limit;
    do {
      const Instruction& in = code[t.pc++];
      if (t.predicate(in.guard) != in.guard_is_false) in.run(t, in);
    } while (--left != 0 && t.state == State::running);
    launch_.executed += limit - left;
    return limit - left;
  }

  void remove_ended() {
    const auto ended = [](const auto& c) { return c->live == 0; };
    if (std::ranges::none_of(clusters_, ended)) return;
    while (!launch_.pending.empty()) complete_one();  // it may refer to them
    for (const auto& cluster : clusters_)
      if (ended(cluster))
        for (const auto& block : cluster->blocks) spare_.push_back(std::move(block->registers));
    std::erase_if(clusters_, ended);
  }

  void complete_one() {
    std::size_t which = 0;
    if (launch_.mode.seed) which = launch_.random() % launch_.pending.size();
    const auto at = launch_.pending.begin() + static_cast<std::ptrdiff_t>(which);
    const std::function<void()> work = std::move(*at);
    launch_.pending.erase(at);
    work();
    ++launch_.events;
  }

  [[noreturn]] void deadlock() {
    std::string text;
    int listed = 0;
    std::map<std::pair<const Instruction*, const Block*>, std::vector<const Thread*>> places;
    for (const auto& cluster : clusters_)
      for (const auto& block : cluster->blocks)
        for (const Thread& t : block->threads)
          if (t.state != State::exited) places[{&program_.code[t.pc - 1], block.get()}].push_back(&t);
    for (const auto& [place, threads] : places)
      if (listed++ < 12) text += fmt::format("\n  {} threads, the first is {}", threads.size(), describe(*threads[0]));
    fail(Status::internal, "{}: deadlock: no thread can go on{}", program_.name, text);
  }

  Launch& launch_;
  const Program& program_;
  std::vector<std::unique_ptr<Cluster>> clusters_;
  std::vector<std::vector<std::uint64_t>> spare_;  ///< registers of blocks that ended: memory that is there already
  std::uint32_t next_ = 0, total_ = 0;
  bool preempted_ = false;
};

/// A program's variables are part of global memory while it runs.
class Variables {
 public:
  Variables(const Program& program, Memory& memory) : data_(program.module.globals.data()), memory_(memory) {
    memory_.add(data_, program.module.globals.size());
  }
  ~Variables() { memory_.remove(data_); }
  Variables(const Variables&) = delete;
  Variables& operator=(const Variables&) = delete;

 private:
  const void* data_;
  Memory& memory_;
};

}  // namespace

void run_launch(const Program& program, const LaunchSize& size, std::span<const std::byte> parameters, Memory& memory,
                const Mode& mode) {
  alignas(64) std::byte copy[1 << 15];
  if (parameters.size() > sizeof copy || parameters.size() < program.parameter_bytes)
    fail(Status::internal, "{}: expected {} bytes of parameters, found {}", program.name, program.parameter_bytes,
         parameters.size());
  std::ranges::copy(parameters, copy);
  for (const Instruction& in : program.code) in.first = 1, in.last = 0;
  Launch launch;
  launch.program = &program;
  launch.size = size;
  launch.memory = &memory;
  launch.mode = mode;
  launch.parameters = copy;
  if (mode.seed) launch.random.seed(*mode.seed);
  const Variables variables(program, memory);
  Scheduler(launch).run();
}

}  // namespace cermet::emulator
