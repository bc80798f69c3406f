#include "runtime/calls_beside.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace cermet {
namespace {

bool overlap(std::span<const ByteRange> left, std::span<const ByteRange> right) {
  return std::ranges::any_of(left, [&](const ByteRange& a) {
    return std::ranges::any_of(right, [&](const ByteRange& b) { return a.overlaps(b); });
  });
}

/// Whether one of the two writes what the other touches.
bool depends(const Plan& plan, const Launch& before, const Launch& after) {
  return overlap(plan.writes(before), plan.reads(after)) || overlap(plan.writes(before), plan.writes(after)) ||
         overlap(plan.reads(before), plan.writes(after));
}

}  // namespace

void CallsBeside::find(const Plan& plan, FunctionRef<bool(const Launch& launch)> communicates) {
  const std::span<const Launch> launches = plan.launches();
  needed_at_.assign(launches.size(), 0);
  calls_.clear();
  for (std::size_t i = 0; i < launches.size(); ++i) {
    if (launches[i].kind != Launch::Kind::call || !communicates(launches[i])) continue;
    std::size_t needed = i + 1;
    while (needed < launches.size() && !depends(plan, launches[i], launches[needed])) ++needed;
    if (needed == i + 1) continue;
    needed_at_[i] = needed;
    calls_.push_back({i, needed, nullptr});
  }
}

void CallsBeside::begin(Device& device, Stream& main) {
  main_ = &main;
  if (calls_.empty()) return;
  if (!side_) {
    side_ = device.make_stream();
    forked_ = side_->make_event();
  }
  for (Call& call : calls_) {
    if (!call.ended) call.ended = side_->make_event();
    call.under_way = false;
  }
}

void CallsBeside::join(Call& call) {
  if (!call.under_way) return;
  main_->wait(*call.ended);
  call.under_way = false;
}

Stream* CallsBeside::stream_for(std::size_t at) {
  CERMET_ASSERT(main_ && at < needed_at_.size());
  for (Call& call : calls_)
    if (call.needed_at <= at) join(call);
  if (needed_at_[at] == 0) return nullptr;
  main_->record(*forked_);
  side_->wait(*forked_);
  return side_.get();
}

void CallsBeside::made(std::size_t at) {
  Call& call = *std::ranges::find(calls_, at, &Call::at);
  side_->record(*call.ended);
  call.under_way = true;
}

void CallsBeside::end() {
  for (Call& call : calls_) join(call);
  main_ = nullptr;
}

}  // namespace cermet
