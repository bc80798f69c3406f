// Runs of some launches of a plan, and what their steps left.
#include <cstring>
#include <utility>

#include "op/schema/reference.hpp"
#include "runtime/executable_state.hpp"

namespace cermet {
namespace {

/// Regions up to a launch.
std::vector<SuperRegion> cut_at(std::vector<SuperRegion> regions, std::size_t end) {
  std::erase_if(regions, [&](const SuperRegion& region) { return region.first_launch >= end; });
  for (SuperRegion& region : regions) region.end_launch = std::min(region.end_launch, end);
  return regions;
}

/// Puts something back where it was, when it goes.
class Exchanged {
 public:
  Exchanged(std::vector<SuperRegion>& regions, std::vector<SuperRegion> other)
      : regions_(regions), kept_(std::exchange(regions, std::move(other))) {}
  ~Exchanged() { regions_ = std::move(kept_); }
  Exchanged(const Exchanged&) = delete;
  Exchanged& operator=(const Exchanged&) = delete;

 private:
  std::vector<SuperRegion>& regions_;
  std::vector<SuperRegion> kept_;
};

/// In the host's memory, with the same distances between elements.
TensorView downloaded(const TensorView& view, std::vector<std::byte>& memory, Stream* stream) {
  if (!stream || !view.present || view.elements() == 0) return view;
  const ByteRange range = byte_range(view);
  memory.resize(static_cast<std::size_t>(range.bytes));
  stream->download(memory.data(), range.begin, range.bytes);
  stream->synchronize();
  TensorView here = view;
  here.data = memory.data();
  return here;
}

}  // namespace

/// What an earlier run left in the memory of values would hide who reads too early: it becomes NaN, or -1.
void Executable::State::launch_selected() {
  DeviceBuffer& arena = memory.arena;
  const std::int64_t bytes = memory.workspace ? memory.workspace - arena.data() : arena.size();
  if (stream) stream->fill(arena.data(), 0xff, bytes);
  else std::memset(arena.data(), 0xff, static_cast<std::size_t>(bytes));
  if (selection.one_by_one || !super) {
    for (const Launch& launch : wanted_launches()) execute(launch);
    return;
  }
  if (stream && !ranges_planned) make_plan(true), plan_ranges();  // which forms all regions
  const Exchanged regions(super->formation.regions, cut_at(super->formation.regions, wanted_launches().size()));
  if (!stream) return launch_all();
  const std::vector<std::unique_ptr<DeviceRegion>> linked = make_device_regions();
  launch_regions(linked);
  stream->synchronize();
  for (const auto& region : linked)
    if (const std::string stuck = region->take_stuck(); !stuck.empty()) fail(Status::internal, "{}", stuck);
}

void Executable::select_launches(const LaunchSelection& selection) { state_->selection = selection; }

std::vector<OwnedTensor> Executable::step_results(std::size_t step) {
  std::vector<OwnedTensor> results;
  for (const TensorView& view : state_->operands_of(step).subspan(state_->steps.at(step).inputs)) {
    std::vector<std::byte> memory;
    const TensorView from = downloaded(view, memory, state_->queue.stream);
    OwnedTensor& to = results.emplace_back(view.dtype, view.shape);
    if (from.is_dense())
      std::memcpy(to.view.data, from.data, static_cast<std::size_t>(dense_bytes(view.dtype, view.shape)));
    else
      for (std::int64_t i = 0; i < from.elements(); ++i) store(to.view, i, load(from, i));
  }
  return results;
}

}  // namespace cermet
