// What work the steps of a run did.
#include <cstring>

#include "op/grouped_work.hpp"
#include "runtime/executable_state.hpp"

namespace cermet {
namespace {

/// Operations and bytes of a region with these symbols.
Cost cost_at(Region region, const SymbolValues& symbols) {
  region.set_maximum(symbols);
  return cost_of(region);
}

}  // namespace

void Executable::State::note_costs() {
  for (const StepInfo& info : infos) costs.push_back(cost_at(info.region, symbols));
}

/// Of a grouped product, notes which groups have rows: memory may be reused by the next step. On a device the copy is
/// enqueued.
void Executable::State::keep_offsets(std::size_t i) {
  constexpr std::size_t group_offsets = 2;
  if (infos[i].region.problem().op->kind != OpKind::grouped_linear) return;
  const std::optional<std::size_t> operand = infos[i].region.operand_of(group_offsets);
  if (!operand) return;
  const TensorView& source = operands[steps[i].first + *operand];
  offsets.resize(steps.size());
  if (offsets[i].memory.size() != dense_bytes(source.dtype, source.shape))
    offsets[i] = OwnedTensor(source.dtype, source.shape);
  const auto bytes = dense_bytes(source.dtype, source.shape);
  if (stream) stream->download(offsets[i].view.data, source.data, bytes);
  else std::memcpy(offsets[i].view.data, source.data, static_cast<std::size_t>(bytes));
}

/// The cost of a step that has run: only the weights of groups with rows were read.
Cost Executable::State::work_of(std::size_t i) const {
  Cost cost = costs[i];
  if (!computes || i >= offsets.size() || offsets[i].memory.size() == 0) return cost;
  Problem problem = infos[i].region.problem();
  problem.maximum = symbols;
  const GroupedWork work = grouped_work(problem);
  cost.bytes +=
      work.bytes_per_group * static_cast<double>(used_groups(offsets[i].view, problem.size(1, 0)) - work.groups);
  return cost;
}

Cost Executable::work(std::size_t step) {
  if (state_->costs.empty()) state_->note_costs();
  return state_->work_of(step);
}

void Executable::State::add_work(std::size_t i, double start, double seconds) {
  const Cost work = work_of(i);
  launches.push_back({i, start, seconds, work});
  infos[i].seconds += seconds;
  infos[i].work.operations += work.operations;
  infos[i].work.bytes += work.bytes;
  ++infos[i].runs;
}

}  // namespace cermet
