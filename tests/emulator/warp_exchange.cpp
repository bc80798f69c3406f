// What the lanes of a warp exchange.
#include <algorithm>
#include <bit>

#include "tests/emulator/decode.hpp"

namespace cermet::emulator {
namespace {

/// Waits for the lanes that register r[5] names.
void run_masked(Thread& t, const Instruction& in) { wait_for_lanes(t, in, t.get<std::uint32_t>(in.r[5])); }

void collective(Instruction& in, RunTogether together) {
  in.run = run_masked;
  in.together = together;
}

// shfl: r[0] result, r[1] whether its source exists, r[2] value, r[3] distance or lane, r[4] bounds.
void shuffle(Decoder& d, Instruction& in) {
  d.ignore({"sync"});
  in.option = d.has("up") ? 0 : d.has("down") ? 1 : d.has("bfly") ? 2 : d.has("idx") ? 3 : 4;
  if (in.option == 4 || d.type() != Type::b32) d.unknown("shuffle");
  const std::vector<std::uint32_t> results = d.regs(d.at(0));
  in.r[0] = results[0];
  in.r[1] = results.size() > 1 ? results[1] : d.reg(Operand{});
  for (std::size_t k = 1; k < 5; ++k) in.r[k + 1] = d.reg(k);
  collective(in, [](Group& group, const Instruction& i) {
    std::uint32_t values[32] = {};
    group.each([&](Thread& t, std::uint32_t lane) { values[lane] = t.get<std::uint32_t>(i.r[2]); });
    group.each([&](Thread& t, std::uint32_t lane) {
      const std::uint32_t b = t.get<std::uint32_t>(i.r[3]) & 31, c = t.get<std::uint32_t>(i.r[4]);
      const std::uint32_t segment = c >> 8 & 31, clamp = c & 31;
      const std::uint32_t most = (lane & segment) | (clamp & ~segment), least = lane & segment;
      std::uint32_t source = 0;
      bool exists = false;
      switch (i.option) {
        case 0: source = lane - b, exists = lane >= b + most; break;
        case 1: source = lane + b, exists = source <= most; break;
        case 2: source = lane ^ b, exists = source <= most; break;
        default: source = least | (b & ~segment), exists = source <= most; break;
      }
      if (!exists) source = lane;
      if (!group.lane(source)) fault(t, fmt::format("expected lane {} to take part, as the lane that is read", source));
      t.set<std::uint32_t>(i.r[0], values[source]);
      t.set<std::uint8_t>(i.r[1], exists);
    });
  });
}

void vote(Decoder& d, Instruction& in) {
  d.ignore({"sync"});
  in.option = d.has("all") ? 0 : d.has("any") ? 1 : d.has("uni") ? 2 : d.has("ballot") ? 3 : 4;
  if (in.option == 4) d.unknown("vote");
  d.type();
  in.r[0] = d.reg(0);
  in.r[1] = d.reg(1);
  in.r[5] = d.reg(2);
  in.count = d.at(1).negated;
  collective(in, [](Group& group, const Instruction& i) {
    std::uint32_t ballot = 0;
    group.each([&](Thread& t, std::uint32_t lane) {
      ballot |= static_cast<std::uint32_t>(t.predicate(i.r[1]) != (i.count != 0)) << lane;
    });
    group.each([&](Thread& t, std::uint32_t) {
      const bool all = ballot == group.mask(), any = ballot != 0;
      if (i.option == 3) t.set<std::uint32_t>(i.r[0], ballot);
      else t.set<std::uint8_t>(i.r[0], i.option == 0 ? all : i.option == 1 ? any : all || !any);
    });
  });
}

void match(Decoder& d, Instruction& in) {
  d.ignore({"sync"});
  in.option = d.has("all");
  d.ignore({"any"});
  const Type type = d.type();
  in.bytes = type == Type::b64 ? 8 : 4;
  const std::vector<std::uint32_t> results = d.regs(d.at(0));
  in.r[0] = results[0];
  in.r[1] = results.size() > 1 ? results[1] : d.reg(Operand{});
  in.r[2] = d.reg(1);
  in.r[5] = d.reg(2);
  collective(in, [](Group& group, const Instruction& i) {
    const auto value = [&](const Thread& t) {
      return i.bytes == 8 ? t.registers[i.r[2]] : t.get<std::uint32_t>(i.r[2]);
    };
    group.each([&](Thread& t, std::uint32_t) {
      std::uint32_t same = 0;
      group.each([&](Thread& other, std::uint32_t lane) {
        same |= static_cast<std::uint32_t>(value(other) == value(t)) << lane;
      });
      const bool all = same == group.mask();
      t.registers[i.r[1]] = all;
      t.set<std::uint32_t>(i.r[0], i.option && !all ? 0 : same);
    });
  });
}

template <class T, auto F>
void reduce_together(Group& group, const Instruction& in) {
  bool first = true;
  T result{};
  group.each([&](Thread& t, std::uint32_t) {
    const T value = t.get<T>(in.r[1]);
    result = first ? value : static_cast<T>(F(result, value));
    first = false;
  });
  group.each([&](Thread& t, std::uint32_t) { t.set<T>(in.r[0], result); });
}

void reduce(Decoder& d, Instruction& in) {  // redux
  d.ignore({"sync"});
  const std::string_view operation = d.word();
  const bool is_signed = d.type() == Type::s32;
  in.r[0] = d.reg(0);
  in.r[1] = d.reg(1);
  in.r[5] = d.reg(2);
  using U = std::uint32_t;
  using S = std::int32_t;
  RunTogether run = nullptr;
  if (operation == "add") run = reduce_together<U, [](U a, U b) { return a + b; }>;
  if (operation == "min")
    run = is_signed ? reduce_together<S, [](S a, S b) { return std::min(a, b); }>
                    : reduce_together<U, [](U a, U b) { return std::min(a, b); }>;
  if (operation == "max")
    run = is_signed ? reduce_together<S, [](S a, S b) { return std::max(a, b); }>
                    : reduce_together<U, [](U a, U b) { return std::max(a, b); }>;
  if (operation == "and") run = reduce_together<U, [](U a, U b) { return a & b; }>;
  if (operation == "or") run = reduce_together<U, [](U a, U b) { return a | b; }>;
  if (operation == "xor") run = reduce_together<U, [](U a, U b) { return a ^ b; }>;
  if (!run) d.unknown("reduction");
  collective(in, run);
}

void elect(Decoder& d, Instruction& in) {
  d.ignore({"sync"});
  const std::vector<std::uint32_t> results = d.regs(d.at(0));
  in.r[0] = results[0];
  in.r[1] = results.at(1);
  in.r[5] = d.reg(1);
  collective(in, [](Group& group, const Instruction& i) {
    const auto leader = static_cast<std::uint32_t>(std::countr_zero(group.mask()));
    group.each([&](Thread& t, std::uint32_t lane) {
      t.set<std::uint32_t>(i.r[0], leader);
      t.set<std::uint8_t>(i.r[1], lane == leader);
    });
  });
}

void active_mask(Decoder& d, Instruction& in) {
  // Any set of lanes that are here is right; the lane alone always is.
  d.type();
  in.r[0] = d.reg(0);
  in.run = [](Thread& t, const Instruction& i) { t.set<std::uint32_t>(i.r[0], 1u << t.lane); };
}

}  // namespace

void add_warp_exchange(Table& table) {
  table["shfl"] = shuffle;
  table["vote"] = vote;
  table["match"] = match;
  table["redux"] = reduce;
  table["elect"] = elect;
  table["activemask"] = active_mask;
}

}  // namespace cermet::emulator
