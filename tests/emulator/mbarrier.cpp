#include "tests/emulator/mbarrier.hpp"

#include "tests/emulator/decode.hpp"

namespace cermet::emulator {
namespace {

struct Counts {
  std::uint32_t pending = 0, expected = 0;  ///< arrivals
  std::int64_t bytes = 0;                   ///< announced that have not come
  bool phase = false;
};
constexpr std::int64_t most_bytes = 1 << 20;

// The 8 bytes: 20 bits of each number of arrivals, 21 of the bytes, the phase, and a mark of what was initialised.
constexpr std::uint64_t mark = 2;

Counts unpack(std::uint64_t word) {
  constexpr std::uint64_t twenty = (1 << 20) - 1, twenty_one = (1 << 21) - 1;
  return {static_cast<std::uint32_t>(word & twenty), static_cast<std::uint32_t>(word >> 20 & twenty),
          static_cast<std::int64_t>(word >> 40 & twenty_one) - most_bytes, (word >> 61 & 1) != 0};
}
void write(std::byte* barrier, const Counts& c) {
  const std::uint64_t word = c.pending | std::uint64_t{c.expected} << 20 |
                             static_cast<std::uint64_t>(c.bytes + most_bytes) << 40 | std::uint64_t{c.phase} << 61 |
                             mark << 62;
  std::memcpy(barrier, &word, sizeof word);
}
Counts read(Thread& t, const std::byte* barrier) {
  std::uint64_t word;
  std::memcpy(&word, barrier, sizeof word);
  const Counts c = unpack(word);
  if (word >> 62 != mark || c.expected == 0) fault(t, "expected an initialised mbarrier");
  return c;
}

std::uint64_t address(const Thread& t, const Instruction& in) {
  return (t.registers[in.r[1]] + static_cast<std::uint64_t>(in.offset)) & 0xffffffffu;
}

constexpr std::uint8_t expects = 1, arrives = 2, completes = 4;

/// r[0]: the state before, r[1]: address, r[2]: arrivals, r[3]: bytes.
void change(Thread& t, const Instruction& in) {
  std::byte* const barrier = mbarrier_memory(t, address(t, in));
  std::memcpy(&t.registers[in.r[0]], barrier, 8);
  const std::uint32_t arrivals = in.option & arrives ? t.get<std::uint32_t>(in.r[2]) : 0;
  const std::int64_t bytes = t.get<std::uint32_t>(in.r[3]);
  change_mbarrier(t, barrier, arrivals, in.option & expects ? bytes : in.option & completes ? -bytes : 0);
}

void wait_parity(Thread& t, const Instruction& in) {
  const Counts c = read(t, mbarrier_memory(t, address(t, in)));
  const bool done = c.phase != ((t.get<std::uint32_t>(in.r[2]) & 1) != 0);
  t.set<std::uint8_t>(in.r[0], done);
  if (!done) t.state = State::yielding;
}
void wait_state(Thread& t, const Instruction& in) {
  const Counts c = read(t, mbarrier_memory(t, address(t, in)));
  const bool done = c.phase != unpack(t.registers[in.r[2]]).phase;
  t.set<std::uint8_t>(in.r[0], done);
  if (!done) t.state = State::yielding;
}

void mbarrier(Decoder& d, Instruction& in) {
  d.ignore({"shared", "shared::cta", "shared::cluster", "release", "acquire", "relaxed", "cta", "cluster", "b64",
            "noComplete"});
  if (d.has("init")) {
    d.memory(d.at(0), in, 1);
    in.r[2] = d.reg(1);
    in.run = [](Thread& t, const Instruction& i) {
      const auto count = t.get<std::uint32_t>(i.r[2]);
      if (count == 0 || count >= 1u << 20) fault(t, fmt::format("expected 1 to 2^20 - 1 arrivals, found {}", count));
      write(mbarrier_memory(t, address(t, i)), {count, count, 0, false});
      ++t.launch().events;
    };
  } else if (d.has("inval")) {
    d.memory(d.at(0), in, 1);
    in.run = [](Thread& t, const Instruction& i) {
      std::byte* const barrier = mbarrier_memory(t, address(t, i));
      read(t, barrier);
      std::memset(barrier, 0xff, 8);
    };
  } else if (d.has("test_wait") || d.has("try_wait")) {
    in.r[0] = d.reg(0);
    d.memory(d.at(1), in, 1);
    in.r[2] = d.reg(2);
    in.run = d.has("parity") ? wait_parity : wait_state;
  } else {
    in.option = static_cast<std::uint8_t>((d.has("arrive") ? arrives : 0) | (d.has("expect_tx") ? expects : 0) |
                                          (d.has("complete_tx") ? completes : 0));
    if (in.option == 0) d.unknown("operation");
    std::size_t next = 0;
    in.r[0] = d.at(0).kind == Operand::Kind::memory ? d.reg(Operand{}) : d.reg(next++);
    d.memory(d.at(next++), in, 1);
    in.r[2] = d.constant(1);
    in.r[3] = d.constant(0);
    if (d.count() > next) (in.option & arrives && !(in.option & expects) ? in.r[2] : in.r[3]) = d.reg(next);
    in.run = change;
  }
}

}  // namespace

std::byte* mbarrier_memory(Thread& t, std::uint64_t address) { return shared_memory(t, address, 8); }

void change_mbarrier(Thread& t, std::byte* barrier, std::uint32_t arrivals, std::int64_t bytes) {
  Counts c = read(t, barrier);
  if (c.pending < arrivals)
    fault(t, fmt::format("mbarrier: expected at most {} arrivals, found {}", c.pending, arrivals));
  c.pending -= arrivals;
  c.bytes += bytes;
  if (c.bytes >= most_bytes || c.bytes < -most_bytes)
    fault(t, fmt::format("mbarrier: expected less than {} bytes, found {}", most_bytes, c.bytes));
  if (c.pending == 0 && c.bytes == 0) {
    c.phase = !c.phase;
    c.pending = c.expected;
  }
  write(barrier, c);
  ++t.launch().events;
}

void add_mbarriers(Table& table) { table["mbarrier"] = mbarrier; }

}  // namespace cermet::emulator
