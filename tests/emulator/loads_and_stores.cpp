// Accesses of one thread to memory: loads, stores, atomics, prefetches.
#include <algorithm>

#include "tests/emulator/decode.hpp"
#include "tests/emulator/float_formats.hpp"

namespace cermet::emulator {
namespace {

template <Space S>
std::byte* place(Thread& t, const Instruction& in, std::uint64_t address, std::uint64_t bytes) {
  if constexpr (S == Space::global || S == Space::constant) return global_memory(t, address, bytes, in);
  else if constexpr (S == Space::shared) return shared_memory(t, address, bytes);
  else if constexpr (S == Space::local) return local_memory(t, address, bytes);
  else if constexpr (S == Space::param) return param_memory(t, address, bytes);
  else return generic_memory(t, address, bytes, in);
}

std::uint64_t address_of(const Thread& t, const Instruction& in, std::uint32_t base) {
  return t.registers[base] + static_cast<std::uint64_t>(in.offset);
}
/// Addresses of shared memory are 32 bits wide, whatever register they are in.
template <Space S>
std::uint64_t address(const Thread& t, const Instruction& in, std::uint32_t base) {
  const std::uint64_t full = address_of(t, in, base);
  return S == Space::shared ? full & 0xffffffffu : full;
}

/// A load that waits for others would never end: after some of the same address and value others have their turn.
void note_poll(Thread& t, const Instruction& in, std::uint64_t value) {
  const std::uint64_t from = address_of(t, in, in.r[1]);
  if (t.polled != &in || t.polled_address != from || t.polled_value != value) {
    t.polled = &in;
    t.polled_address = from;
    t.polled_value = value;
    t.polls = 0;
  } else if (++t.polls > 2) {
    t.state = State::yielding;
  }
}

template <Space S>
bool is_shared(const Thread& t, const Instruction& in) {
  return S == Space::shared || (S == Space::generic && (address_of(t, in, in.r[1]) & shared_window));
}

/// list or r[0] = [r[1] + offset]
template <Space S, class T>
void load(Thread& t, const Instruction& in) {
  const std::byte* from = place<S>(t, in, address<S>(t, in, in.r[1]), sizeof(T) * in.count);
  if (in.option) note_synchronization(t);
  else if (is_shared<S>(t, in)) note_read(t, address_of(t, in, in.r[1]), sizeof(T) * in.count);
  for (unsigned k = 0; k < in.count; ++k) {
    T value;
    std::memcpy(&value, from + k * sizeof(T), sizeof value);
    t.set<T>(in.list[k], value);
  }
  if (in.option) note_poll(t, in, t.registers[in.list[0]]);
}
template <Space S, class T>
void store(Thread& t, const Instruction& in) {
  std::byte* to = place<S>(t, in, address<S>(t, in, in.r[1]), sizeof(T) * in.count);
  if (in.option) note_synchronization(t);
  else if (is_shared<S>(t, in)) note_write(t, address_of(t, in, in.r[1]), sizeof(T) * in.count);
  for (unsigned k = 0; k < in.count; ++k) {
    const T value = t.get<T>(in.list[k]);
    std::memcpy(to + k * sizeof(T), &value, sizeof value);
  }
  if constexpr (S != Space::local && S != Space::param) ++t.launch().events;
}

Space space_of(Decoder& d) {
  for (const auto& [word, space] :
       {std::pair("global", Space::global), std::pair("shared", Space::shared), std::pair("shared::cta", Space::shared),
        std::pair("shared::cluster", Space::shared), std::pair("local", Space::local), std::pair("param", Space::param),
        std::pair("const", Space::constant), std::pair("param::entry", Space::param),
        std::pair("param::func", Space::param)})
    if (d.has(word)) return space;
  return Space::generic;
}

void ignore_hints(Decoder& d) {
  d.ignore({"weak", "gpu", "cta", "cluster", "sys", "ca", "cg", "cs", "lu", "cv", "wb", "wt", "nc", "unified"});
  d.ignore_prefix("L1::");
  d.ignore_prefix("L2::");
}

unsigned vector_of(Decoder& d) { return d.has("v2") ? 2 : d.has("v4") ? 4 : d.has("v8") ? 8 : 1; }

template <bool Stores>
void access(Decoder& d, Instruction& in) {
  ignore_hints(d);
  const bool acquires = d.has("acquire"), is_volatile = d.has("volatile"), relaxed = d.has("relaxed");
  in.option = d.has("release") || acquires || is_volatile || relaxed;
  Space space = space_of(d);
  in.count = static_cast<std::uint8_t>(vector_of(d));
  const Operand &values = d.at(Stores ? 1 : 0), &where = d.at(Stores ? 0 : 1);
  const std::vector<std::uint32_t> list = d.regs(values);
  if (list.size() != in.count) d.unknown("number of registers");
  in.list = d.keep(list);
  d.memory(where, in, 1);
  const Operand& base = where.parts[0];
  if (base.kind == Operand::Kind::address && base.variable.space == Space::local) space = Space::local;
  in.run = for_bits(d, d.type(), [&](auto zero) -> Run {
    using T = decltype(zero);
    switch (space) {
      case Space::global: return Stores ? store<Space::global, T> : load<Space::global, T>;
      case Space::shared: return Stores ? store<Space::shared, T> : load<Space::shared, T>;
      case Space::local: return Stores ? store<Space::local, T> : load<Space::local, T>;
      case Space::param: return Stores ? store<Space::param, T> : load<Space::param, T>;
      case Space::constant: return Stores ? nullptr : load<Space::constant, T>;
      case Space::generic: return Stores ? store<Space::generic, T> : load<Space::generic, T>;
    }
    return nullptr;
  });
}

// Atomics: one thread runs at a time, so that each is a load and a store.

enum class Change : std::uint8_t { add, exch, cas, min, max, bit_and, bit_or, bit_xor, inc, dec };

Change change_of(Decoder& d) {
  for (const auto& [word, change] :
       {std::pair("add", Change::add), std::pair("exch", Change::exch), std::pair("cas", Change::cas),
        std::pair("min", Change::min), std::pair("max", Change::max), std::pair("and", Change::bit_and),
        std::pair("or", Change::bit_or), std::pair("xor", Change::bit_xor), std::pair("inc", Change::inc),
        std::pair("dec", Change::dec)})
    if (d.has(word)) return change;
  d.unknown("operation");
}

template <class T>
T changed(Change change, T old, T b, T c) {
  switch (change) {
    case Change::add:
      if constexpr (std::is_integral_v<T>)
        return static_cast<T>(static_cast<std::make_unsigned_t<T>>(old) + static_cast<std::make_unsigned_t<T>>(b));
      else return old + b;
    case Change::exch: return b;
    case Change::cas: return old == b ? c : old;
    case Change::min: return std::min(old, b);
    case Change::max: return std::max(old, b);
    default: break;
  }
  if constexpr (std::is_integral_v<T>) switch (change) {
      case Change::bit_and: return static_cast<T>(old & b);
      case Change::bit_or: return static_cast<T>(old | b);
      case Change::bit_xor: return static_cast<T>(old ^ b);
      case Change::inc: return old >= b ? T{0} : static_cast<T>(old + 1);
      default: return old == 0 || old > b ? b : static_cast<T>(old - 1);
    }
  return old;
}

/// r[0] = [r[1] + offset], which becomes what r[2] and r[3] make of it.
template <Space S, class T>
void atomic(Thread& t, const Instruction& in) {
  std::byte* at = place<S>(t, in, address<S>(t, in, in.r[1]), sizeof(T));
  note_synchronization(t);
  T old;
  std::memcpy(&old, at, sizeof old);
  const auto change = static_cast<Change>(in.option);
  const T now = changed<T>(change, old, t.get<T>(in.r[2]), t.get<T>(in.r[3]));
  std::memcpy(at, &now, sizeof now);
  t.set<T>(in.r[0], old);
  if (std::memcmp(&old, &now, sizeof now) != 0) ++t.launch().events;
  else note_poll(t, in, t.registers[in.r[0]]);
}

/// Adds two numbers of 16 bits.
template <Space S, bool IsHalf>
void atomic_pair(Thread& t, const Instruction& in) {
  std::byte* at = place<S>(t, in, address<S>(t, in, in.r[1]), 4);
  std::uint16_t old[2];
  std::memcpy(old, at, sizeof old);
  const auto b = t.get<std::uint32_t>(in.r[2]);
  std::uint32_t before;
  std::memcpy(&before, old, sizeof before);
  for (unsigned k = 0; k < 2; ++k) {
    const auto part = static_cast<std::uint16_t>(b >> 16 * k);
    old[k] = IsHalf ? float_to_half(half_to_float(old[k]) + half_to_float(part))
                    : float_to_bfloat(bfloat_to_float(old[k]) + bfloat_to_float(part));
  }
  std::memcpy(at, old, sizeof old);
  t.set<std::uint32_t>(in.r[0], before);
  ++t.launch().events;
}

template <Space S>
Run atomic_run(Decoder& d, Type type) {
  switch (type) {
    case Type::b32:
    case Type::u32: return atomic<S, std::uint32_t>;
    case Type::s32: return atomic<S, std::int32_t>;
    case Type::b64:
    case Type::u64: return atomic<S, std::uint64_t>;
    case Type::s64: return atomic<S, std::int64_t>;
    case Type::b16: return atomic<S, std::uint16_t>;
    case Type::f32: return atomic<S, float>;
    case Type::f64: return atomic<S, double>;
    case Type::f16x2: return atomic_pair<S, true>;
    case Type::bf16x2: return atomic_pair<S, false>;
    default: d.unknown("type");
  }
}

template <bool Returns>
void atomic_access(Decoder& d, Instruction& in) {
  ignore_hints(d);
  d.ignore({"relaxed", "acquire", "release", "acq_rel", "noftz", "rn"});
  const Space space = space_of(d);
  in.option = static_cast<std::uint8_t>(change_of(d));
  in.r[0] = Returns ? d.reg(0) : d.reg(Operand{});
  d.memory(d.at(Returns), in, 1);
  in.r[2] = d.reg(Returns + 1u);
  in.r[3] = d.count() > Returns + 2u ? d.reg(Returns + 2u) : d.constant(0);
  const Type type = d.type();
  in.run = space == Space::shared   ? atomic_run<Space::shared>(d, type)
           : space == Space::global ? atomic_run<Space::global>(d, type)
                                    : atomic_run<Space::generic>(d, type);
}

void nothing(Decoder& d, Instruction& in) {
  while (!d.word().empty()) continue;
  in.run = [](Thread&, const Instruction&) {};
}

}  // namespace

void add_loads_and_stores(Table& table) {
  table["ld"] = access<false>;
  table["ldu"] = access<false>;
  table["st"] = [](Decoder& d, Instruction& in) {
    if (d.has("async")) return store_async(d, in);
    access<true>(d, in);
  };
  table["atom"] = atomic_access<true>;
  table["red"] = [](Decoder& d, Instruction& in) {
    if (d.has("async")) return add_async(d, in);
    atomic_access<false>(d, in);
  };
  // What only makes memory faster, or orders accesses that are in order here.
  for (const char* name : {"prefetch", "prefetchu", "membar", "discard", "applypriority"}) table[name] = nothing;
  table["fence"] = [](Decoder& d, Instruction& in) {
    const bool is_proxy = d.has("proxy") && d.has("async");
    nothing(d, in);
    if (is_proxy)
      in.run = [](Thread& t, const Instruction&) {
        if (Races* const races = t.block->cluster->races.get()) races->fence(t);
      };
  };
  table["createpolicy"] = [](Decoder& d, Instruction& in) {
    while (!d.word().empty()) continue;
    in.r[0] = d.reg(0);
    in.run = [](Thread& t, const Instruction& i) { t.registers[i.r[0]] = 0; };
  };
}

}  // namespace cermet::emulator
