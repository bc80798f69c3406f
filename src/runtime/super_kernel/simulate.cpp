#include "runtime/super_kernel/simulate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <random>

namespace cermet {
namespace {

class Simulator {
 public:
  Simulator(const SuperSchedule& schedule, const SuperSimulation& how)
      : schedule_(schedule),
        how_(how),
        random_(how.seed),
        blocks_(std::max(1u, how.blocks)),
        counters_(schedule.counters),
        arrived_(schedule.tasks.size()) {
    for (std::size_t b = 0; b < blocks_.size(); ++b) blocks_[b].chunk = b;
    if (!how.dealt)
      for (Block& block : blocks_) block.chunk = schedule.order.size();
  }

  std::optional<std::string> run() {
    std::vector<std::size_t> able;
    for (;;) {
      able.clear();
      for (std::size_t b = 0; b < blocks_.size(); ++b)
        if (can_go_on(blocks_[b])) able.push_back(b);
      if (able.empty()) return first_stuck();
      go_on(blocks_[able[random_() % able.size()]]);
    }
  }

 private:
  enum class Phase : std::uint8_t { free, waiting, running };
  struct Block {
    std::size_t chunk = 0;
    std::uint32_t at = 0;        ///< items of the chunk before this one
    std::uint32_t barriers = 0;  ///< at which it has arrived
    Phase phase = Phase::free;
  };

  const SuperChunk& chunk(const Block& block) const { return schedule_.order[block.chunk]; }
  const SuperTask& task(const Block& block) const { return schedule_.tasks[chunk(block).task]; }
  std::uint32_t item(const Block& block) const { return chunk(block).first + block.at; }
  bool is_idle(const Block& block) const { return item(block) >= task(block).items - task(block).idle; }

  const SuperCondition* unmet(const Block& block) const {
    for (const std::span<const SuperCondition> list :
         {schedule_.conditions_of(task(block)), schedule_.conditions_of(task(block), item(block))})
      for (const SuperCondition& condition : list)
        if (counters_[condition.counter] < condition.at_least) return &condition;
    return nullptr;
  }

  bool has_chunk(const Block& block) const {
    return how_.dealt ? block.chunk < schedule_.order.size() : next_ < schedule_.order.size();
  }
  /// Whether all have arrived where it waits.
  bool may_pass(const Block& block) const {
    return block.barriers == 0 || arrived_[chunk(block).task] >= std::uint64_t{block.barriers} * task(block).items;
  }

  bool can_go_on(const Block& block) const {
    switch (block.phase) {
      case Phase::free: return has_chunk(block);
      case Phase::waiting: return !unmet(block);
      case Phase::running: return may_pass(block);
    }
    return false;
  }

  void go_on(Block& block) {
    switch (block.phase) {
      case Phase::free:
        if (!how_.dealt) block.chunk = next_++;
        block.at = 0;
        block.phase = Phase::waiting;
        return;
      case Phase::waiting:
        block.phase = Phase::running;
        block.barriers = 0;
        if (how_.begins && !is_idle(block)) how_.begins(chunk(block).task, item(block));
        return;
      case Phase::running: break;
    }
    if (block.barriers < task(block).barriers) {
      ++block.barriers;
      ++arrived_[chunk(block).task];
      return;
    }
    end(block);
  }

  void end(Block& block) {
    if (how_.ends && !is_idle(block)) how_.ends(chunk(block).task, item(block));
    if (const std::uint32_t counter = schedule_.counter_of(task(block), item(block)); counter != SuperTask::none)
      ++counters_[counter];
    block.phase = Phase::waiting;
    if (++block.at < chunk(block).count) return;
    block.phase = Phase::free;
    if (how_.dealt) block.chunk += blocks_.size();
  }

  std::optional<std::string> first_stuck() const {
    for (const Block& block : blocks_) {
      if (block.phase == Phase::free) continue;
      const std::string who = fmt::format("task {} item {} waits for ", chunk(block).task, item(block));
      if (block.phase == Phase::running)
        return fmt::format("{}barrier {} of {} items: found {}", who, block.barriers, task(block).items,
                           arrived_[chunk(block).task]);
      const SuperCondition& condition = *unmet(block);
      return fmt::format("{}counter {}: expected {}, found {}", who, condition.counter, condition.at_least,
                         counters_[condition.counter]);
    }
    return {};
  }

  const SuperSchedule& schedule_;
  const SuperSimulation& how_;
  std::mt19937_64 random_;
  std::vector<Block> blocks_;
  std::size_t next_ = 0;
  std::vector<std::uint32_t> counters_;
  std::vector<std::uint64_t> arrived_;  ///< by task, over all of its barriers
};

}  // namespace

std::optional<std::string> simulate(const SuperSchedule& schedule, const SuperSimulation& simulation) {
  return Simulator(schedule, simulation).run();
}

}  // namespace cermet
