#include "tests/emulator/machine.hpp"

#include <algorithm>

namespace cermet::emulator {

void Memory::add(const void* data, std::uint64_t bytes) {
  const auto first = reinterpret_cast<std::uint64_t>(data);
  if (bytes > 0) regions_[first] = first + bytes;
}

void Memory::remove(const void* data) { regions_.erase(reinterpret_cast<std::uint64_t>(data)); }

Memory::Region Memory::find(std::uint64_t address) const {
  auto after = regions_.upper_bound(address);
  if (after == regions_.begin()) return {};
  --after;
  if (address >= after->second) return {};
  return {after->first, after->second};
}

std::string describe(const Thread& t) {
  const Program& program = *t.launch().program;
  const Instruction& in = program.code[t.pc > 0 ? t.pc - 1 : 0];
  std::string_view text = program.line(in.line);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front()))) text.remove_prefix(1);
  if (text.size() > 160) text = text.substr(0, 160);
  return fmt::format("block {} thread {} at line {} of PTX: {}", t.block->index, t.index, in.line, text);
}

void fault(const Thread& t, const std::string& what) {
  fail(Status::internal, "{}: {}; {}", t.launch().program->name, what, describe(t));
}

namespace {

void check_alignment(const Thread& t, std::uint64_t address, std::uint64_t bytes) {
  if (bytes > 0 && (bytes & (bytes - 1)) == 0 && bytes <= 32 && address % bytes != 0)
    fault(t, fmt::format("expected an address that is a multiple of {}, found {:#x}", bytes, address));
}

}  // namespace

std::byte* global_memory(Thread& t, std::uint64_t address, std::uint64_t bytes, const Instruction& in) {
  check_alignment(t, address, bytes);
  if (address < in.first || address + bytes > in.last) {
    const Memory::Region region = t.launch().memory->find(address);
    if (address < region.first || address + bytes > region.last)
      fault(t, fmt::format("global address {:#x}: expected {} bytes inside an allocation, found {}", address, bytes,
                           region.first > region.last ? std::string("none")
                                                      : fmt::format("one that ends at {:#x}", region.last)));
    in.first = region.first;
    in.last = region.last;
  }
  return reinterpret_cast<std::byte*>(address);
}

Block& block_of(Thread& t, std::uint64_t address) {
  const std::uint64_t rank = address >> rank_shift;
  if (rank == 0) return *t.block;
  if (rank > t.block->cluster->blocks.size())
    fault(t, fmt::format("shared address {:#x}: expected a block of the cluster, found rank {}", address, rank - 1));
  return *t.block->cluster->blocks[rank - 1];
}

std::byte* shared_memory(Thread& t, std::uint64_t address, std::uint64_t bytes) {
  check_alignment(t, address, bytes);
  Block& block = block_of(t, address);
  const std::uint64_t offset = address & ((1u << rank_shift) - 1);
  if (offset < shared_base || offset + bytes > block.shared.size())
    fault(t, fmt::format("shared address {:#x}: expected {} bytes from {} to {}", offset, bytes, shared_base,
                         block.shared.size()));
  return block.shared.data() + offset;
}

std::byte* local_memory(Thread& t, std::uint64_t address, std::uint64_t bytes) {
  if (t.local.empty()) t.local.resize(t.launch().program->module.local_bytes);
  if (address + bytes > t.local.size())
    fault(t, fmt::format("local address {:#x}: expected {} bytes below {}", address, bytes, t.local.size()));
  return t.local.data() + address;
}

std::byte* param_memory(Thread& t, std::uint64_t address, std::uint64_t bytes) {
  if (address >= local_window) return local_memory(t, address - local_window, bytes);  // arguments of a call
  const auto first = reinterpret_cast<std::uint64_t>(t.launch().parameters);
  if (address < first || address + bytes > first + t.launch().program->parameter_bytes)
    fault(t, fmt::format("parameter {:+}: expected {} bytes below {}", static_cast<std::int64_t>(address - first),
                         bytes, t.launch().program->parameter_bytes));
  return reinterpret_cast<std::byte*>(address);
}

std::byte* generic_memory(Thread& t, std::uint64_t address, std::uint64_t bytes, const Instruction& in) {
  if (address & local_window) return local_memory(t, address & ~local_window, bytes);
  if (address & shared_window) return shared_memory(t, address & ~shared_window, bytes);
  const auto first = reinterpret_cast<std::uint64_t>(t.launch().parameters);
  if (address - first < t.launch().program->parameter_bytes) return param_memory(t, address, bytes);
  return global_memory(t, address, bytes, in);
}

namespace {

/// Whether all that an arrival waits for have come; runs the instruction then.
void try_together(Warp& warp, Thread& t) {
  const Instruction& in = *t.at;
  const std::uint32_t needed = t.mask & warp.live;
  for (std::uint32_t rest = needed; rest != 0; rest &= rest - 1) {
    const Thread& other = *warp.lanes[static_cast<std::size_t>(__builtin_ctz(rest))];
    // A barrier of a warp may stand in several places; what exchanges values may not.
    const bool same = other.at == &in || (in.option == 255 && other.at && other.at->together == in.together);
    if (other.state != State::waiting || !same || other.mask != t.mask) return;
  }
  for (std::uint32_t rest = needed; rest != 0; rest &= rest - 1)
    warp.lanes[static_cast<std::size_t>(__builtin_ctz(rest))]->state = State::running;
  ++t.launch().events;
  Group group(warp.lanes, needed);
  in.together(group, in);
}

std::span<Thread> warpgroup_of(Thread& t) {
  const std::size_t first = t.index / 128 * 128;
  return std::span(t.block->threads).subspan(first, std::min<std::size_t>(128, t.block->threads.size() - first));
}

}  // namespace

void wait_for_lanes(Thread& t, const Instruction& in, std::uint32_t mask) {
  if (!(mask >> t.lane & 1)) fault(t, fmt::format("expected a mask with the lane, found {:#x}", mask));
  t.state = State::waiting;
  t.at = &in;
  t.mask = mask;
  try_together(*t.warp, t);
}

void wait_for_warpgroup(Thread& t, const Instruction& in) {
  t.state = State::waiting;
  t.at = &in;
  t.mask = 0;
  const std::span<Thread> threads = warpgroup_of(t);
  if (threads.size() < 128) fault(t, "expected a warpgroup of 128 threads");
  for (const Thread& other : threads)
    if (other.state != State::waiting || other.at != &in) return;
  std::vector<Thread*> all;
  for (Thread& other : threads) {
    other.state = State::running;
    all.push_back(&other);
  }
  ++t.launch().events;
  Group group(all, ~0u);
  in.together(group, in);
}

void leave(Thread& t) {
  complete_copies(t, 0);
  complete_stores(t, 0);
  t.state = State::exited;
  t.warp->live &= ~(1u << t.lane);
  --t.block->live;
  --t.block->cluster->live;
  ++t.launch().events;
  leave_barriers(t);
  for (Thread* other : t.warp->lanes)
    if (other->state == State::waiting && other->mask != 0) try_together(*t.warp, *other);
}

}  // namespace cermet::emulator
