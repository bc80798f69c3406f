#include "runtime/timing.hpp"

#include <cstring>

#include "op/grouped_work.hpp"

namespace cermet {
namespace {

/// Operations and bytes of a region with these symbols.
Cost cost_at(Region region, const SymbolValues& symbols) {
  region.set_maximum(symbols);
  return cost_of(region);
}

}  // namespace

void Timing::note_costs(std::span<const StepInfo> infos, const SymbolValues& symbols) {
  for (const StepInfo& info : infos) costs.push_back(cost_at(info.region, symbols));
}

void Timing::keep_offsets(std::size_t step, std::size_t steps, const Region& region,
                          std::span<const TensorView> operands, Stream* stream) {
  constexpr std::size_t group_offsets = 2;
  if (region.problem().op->kind != OpKind::grouped_linear) return;
  const std::optional<std::size_t> operand = region.operand_of(group_offsets);
  if (!operand) return;
  const TensorView& source = operands[*operand];
  offsets_.resize(steps);
  const std::int64_t bytes = dense_bytes(source.dtype, source.shape);
  if (offsets_[step].memory.size() != bytes) offsets_[step] = OwnedTensor(source.dtype, source.shape);
  if (stream) stream->download(offsets_[step].view.data, source.data, bytes);
  else std::memcpy(offsets_[step].view.data, source.data, static_cast<std::size_t>(bytes));
}

Cost Timing::work_of(std::size_t step, const Region& region, const SymbolValues& symbols) const {
  Cost cost = costs[step];
  if (step >= offsets_.size() || offsets_[step].memory.size() == 0) return cost;
  Problem problem = region.problem();
  problem.maximum = symbols;
  const GroupedWork work = grouped_work(problem);
  cost.bytes +=
      work.bytes_per_group * static_cast<double>(used_groups(offsets_[step].view, problem.size(1, 0)) - work.groups);
  return cost;
}

void Timing::add(std::size_t step, StepInfo& info, const SymbolValues& symbols, double start, double seconds) {
  const Cost work = work_of(step, info.region, symbols);
  launches.push_back({step, start, seconds, work});
  info.seconds += seconds;
  info.work.operations += work.operations;
  info.work.bytes += work.bytes;
  ++info.runs;
}

}  // namespace cermet
