#include "runtime/capture_cache.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace cermet {

CapturedRun& CaptureCache::get(const SymbolValues& symbols, std::span<const Symbol> used, std::int64_t row) {
  constexpr std::size_t most = 64;
  auto found = std::ranges::find_if(runs_, [&](const CapturedRun& run) {
    return run.row == row &&
           std::ranges::all_of(used, [&](const Symbol& id) { return run.symbols[id] == symbols[id]; });
  });
  if (found == runs_.end()) {
    if (runs_.size() == most) runs_.erase(std::ranges::min_element(runs_, {}, &CapturedRun::last_used));
    runs_.push_back({symbols, row, {}, nullptr, false, 0});
    found = runs_.end() - 1;
  }
  found->last_used = ++uses_;
  return *found;
}

void CaptureCache::check_waits(Stream& stream) {
  for (const CapturedRun& run : runs_)
    for (const auto& region : run.regions) {
      const std::string stuck = region->take_stuck();
      if (stuck.empty()) continue;
      stream.synchronize();
      region->take_stuck();
      region->reset(stream);
      fail(Status::internal, "{}", stuck);
    }
}

}  // namespace cermet
