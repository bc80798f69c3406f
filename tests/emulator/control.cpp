// Branches, calls, barriers of threads, and what makes a thread wait without an address.
#include <utility>

#include "tests/emulator/decode.hpp"

namespace cermet::emulator {
namespace {

void branch(Decoder& d, Instruction& in) {
  d.ignore({"uni"});
  d.target(d.at(0), in);
  in.run = [](Thread& t, const Instruction& i) { t.pc = static_cast<std::uint32_t>(i.offset); };
}

void indexed_branch(Decoder& d, Instruction& in) {  // brx.idx
  d.ignore({"uni", "idx"});
  in.r[0] = d.reg(0);
  std::vector<std::uint32_t> targets;
  for (const std::string_view name : d.branch_targets(d.at(1)))
    targets.push_back(static_cast<std::uint32_t>(d.label(name)));
  in.offset = static_cast<std::int64_t>(targets.size());
  in.list = d.keep(targets);
  in.run = [](Thread& t, const Instruction& i) {
    const auto index = t.get<std::uint32_t>(i.r[0]);
    if (index >= static_cast<std::uint64_t>(i.offset))
      fault(t, fmt::format("expected a target below {}, found {}", i.offset, index));
    t.pc = i.list[index];
  };
}

void copy_local(Thread& t, const std::vector<Call::Copy>& copies) {
  for (const Call::Copy& c : copies)
    std::memmove(local_memory(t, c.to, c.bytes), local_memory(t, c.from, c.bytes), c.bytes);
}

void call(Decoder& d, Instruction& in) {
  d.ignore({"uni"});
  d.call(in);
  in.run = [](Thread& t, const Instruction& i) {
    const Call& c = t.launch().program->calls[static_cast<std::size_t>(i.offset)];
    copy_local(t, c.arguments);
    t.calls.emplace_back(t.pc, &c);
    t.pc = c.target;
  };
}

void end(Decoder& d, Instruction& in) {  // ret, exit
  d.ignore({"uni"});
  in.run = [](Thread& t, const Instruction&) {
    if (t.calls.empty()) return leave(t);
    const auto [pc, c] = t.calls.back();
    t.calls.pop_back();
    copy_local(t, c->results);
    t.pc = pc;
  };
}

// Barriers of a block.

/// What a barrier gives its threads: option 1 and, 2 or, 3 count of their conditions.
void release(Barrier& b) {
  for (Thread* t : b.waiting) {
    const Instruction& in = *t->at;
    if (in.option == 1) t->set<std::uint8_t>(in.r[0], b.all);
    if (in.option == 2) t->set<std::uint8_t>(in.r[0], b.any);
    if (in.option == 3) t->set<std::uint32_t>(in.r[0], b.count);
    t->state = State::running;
    ++t->launch().events;
  }
  b = Barrier{};
}

/// Threads of a warp come to a barrier together.
void check_warps(const Barrier& b) {
  for (const Thread* t : b.waiting)
    for (const Thread* other : t->warp->lanes)
      if (other->state != State::exited && t->at->bytes && (other->state != State::blocked || other->at != t->at))
        fault(*t, fmt::format("expected all threads of the warp at the barrier, found thread {} elsewhere; {}",
                              other->index, describe(*other)));
}

/// Where a barrier names no number of threads, it is for all that have not ended.
void try_release(Block& block, Barrier& b) {
  if (b.arrived == 0 || b.arrived < (b.expected ? b.expected : block.live)) return;
  check_warps(b);
  release(b);
}

/// r[1]: number, r[2]: threads (0: all), r[3]: condition.
template <bool Waits>
void arrive(Thread& t, const Instruction& in) {
  const auto id = t.get<std::uint32_t>(in.r[1]);
  if (id >= 16) fault(t, fmt::format("expected a barrier below 16, found {}", id));
  Barrier& b = t.block->barriers[id];
  const auto expected = t.get<std::uint32_t>(in.r[2]);
  if (expected % 32 != 0) fault(t, fmt::format("expected whole warps, found {} threads", expected));
  if (b.arrived > 0 && b.expected != expected)
    fault(t, fmt::format("barrier {}: expected {} threads, as others do, found {}", id, b.expected, expected));
  b.expected = expected;
  ++b.arrived;
  const bool condition = t.predicate(in.r[3]) != (in.count != 0);
  b.any = b.any || condition;
  b.all = b.all && condition;
  b.count += condition;
  ++t.launch().events;
  if (Waits) {
    t.state = State::blocked;
    t.at = &in;
    b.waiting.push_back(&t);
  }
  try_release(*t.block, b);
}

void warp_barrier(Decoder& d, Instruction& in) {
  d.ignore({"sync"});
  in.r[0] = d.reg(0);
  in.option = 255;
  in.run = [](Thread& t, const Instruction& i) { wait_for_lanes(t, i, t.get<std::uint32_t>(i.r[0])); };
  in.together = [](Group&, const Instruction&) {};
}

void cluster_barrier(Decoder& d, Instruction& in);

void barrier(Decoder& d, Instruction& in) {
  if (d.has("warp")) return warp_barrier(d, in);
  if (d.has("cluster")) return cluster_barrier(d, in);
  const bool aligned = d.has("aligned") || d.operation() == "bar";
  d.ignore({"cta", "sync"});
  const bool arrives = d.has("arrive");
  std::size_t first = 0;
  if (d.has("red")) {
    const bool popc = d.has("popc");
    in.option = d.has("and") ? 1 : d.has("or") ? 2 : 3;
    if (!popc && in.option == 3) d.unknown("operation");
    d.type();
    in.r[0] = d.reg(0);
    first = 1;
  }
  in.bytes = aligned;
  in.r[1] = d.reg(first);
  const std::size_t last = d.count() - 1;
  in.r[3] = in.option ? d.reg(last) : d.constant(0);
  in.count = in.option && d.at(last).negated;
  const bool has_threads = d.count() > first + 1 + (in.option ? 1 : 0);
  in.r[2] = has_threads ? d.reg(first + 1) : d.constant(0);
  in.run = arrives ? arrive<false> : arrive<true>;
}

std::size_t place_in_cluster(const Thread& t) { return t.block->rank * t.block->threads.size() + t.index; }

void try_advance(Cluster& c) {
  if (c.arrived + c.gone < c.arrivals.size()) return;
  ++c.phase;
  c.arrived = 0;
  c.gone += std::exchange(c.gone_after_arrival, 0);
}

/// A thread arrives in a phase and waits until all of the cluster have.
void cluster_arrive(Thread& t, const Instruction&) {
  Cluster& c = *t.block->cluster;
  std::uint32_t& own = c.arrivals[place_in_cluster(t)];
  if (own > c.phase) fault(t, "expected a wait between two arrivals at the cluster's barrier");
  ++own;
  ++c.arrived;
  ++t.launch().events;
  try_advance(c);
}
void cluster_wait(Thread& t, const Instruction&) {
  const Cluster& c = *t.block->cluster;
  const std::uint32_t own = c.arrivals[place_in_cluster(t)];
  if (own == 0) fault(t, "expected an arrival at the cluster's barrier before the wait");
  if (c.phase >= own) return;
  --t.pc;
  t.state = State::yielding;
}

void cluster_barrier(Decoder& d, Instruction& in) {
  d.ignore({"aligned", "release", "acquire", "relaxed"});
  if (d.has("arrive")) in.run = cluster_arrive;
  else if (d.has("wait")) in.run = cluster_wait;
  else d.unknown("barrier");
}

void yield(Thread& t, const Instruction&) { t.state = State::yielding; }

}  // namespace

void leave_barriers(Thread& t) {
  for (Barrier& b : t.block->barriers)
    if (b.expected == 0) try_release(*t.block, b);
  Cluster& c = *t.block->cluster;
  ++(c.arrivals[place_in_cluster(t)] > c.phase ? c.gone_after_arrival : c.gone);
  try_advance(c);
}

void add_control(Table& table) {
  table["bra"] = branch;
  table["brx"] = indexed_branch;
  table["call"] = call;
  table["ret"] = end;
  table["exit"] = end;
  table["bar"] = barrier;
  table["barrier"] = barrier;
  table["trap"] = [](Decoder&, Instruction& in) { in.run = [](Thread& t, const Instruction&) { fault(t, "trap"); }; };
  table["nanosleep"] = [](Decoder& d, Instruction& in) {
    d.type();
    in.run = yield;
  };
  for (const char* name : {"griddepcontrol", "setmaxnreg"})  // launches run one after the other
    table[name] = [](Decoder& d, Instruction& in) {
      while (!d.word().empty()) continue;
      in.run = [](Thread&, const Instruction&) {};
    };
}

}  // namespace cermet::emulator
