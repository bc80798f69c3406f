// Products of a warpgroup (wgmma): started, grouped and waited for. In the late mode a product happens at the wait, and
// until then its accumulators hold poison.
#include <algorithm>
#include <charconv>

#include "tests/emulator/decode.hpp"
#include "tests/emulator/matrix_elements.hpp"

namespace cermet::emulator {
namespace {

/// Columns of a product; the list has accumulators, then registers of a. r[0], r[1]: descriptors of a (if it is in
/// shared memory) and b; r[2]: whether to accumulate; r[3], r[4]: elements of a and b. count: registers of a; option: 1
/// negates a, 2 negates b, 4 and 8: a and b have rows along K.
constexpr std::uint8_t negates_a = 1, negates_b = 2, columns_a = 4, columns_b = 8;

WarpGroup& group_of(const Thread& t) { return t.block->groups[t.index / 128]; }

void run_warpgroup(Thread& t, const Instruction& in) { wait_for_warpgroup(t, in); }

/// Where bytes of an operand in shared memory are.
struct Layout {
  std::uint64_t start, leading, stride;  ///< bytes
  unsigned span;                         ///< bytes of a swizzled row; 16: none
  bool along_k;                          ///< rows of the memory lie along K, elements of 16 bits

  Layout(std::uint64_t descriptor, bool columns)
      : start((descriptor & 0x3fff) << 4),
        leading((descriptor >> 16 & 0x3fff) << 4),
        stride((descriptor >> 32 & 0x3fff) << 4),
        along_k(columns) {
    constexpr unsigned spans[] = {16, 128, 64, 32};
    span = spans[descriptor >> 62];
  }

  /// Address of a row's byte of K.
  std::uint64_t at(unsigned row, unsigned byte) const {
    std::uint64_t address;
    if (along_k) {
      const unsigned k = byte / 2, wide = row * 2;
      address = span == 16 ? start + wide / 16 * stride + k / 8 * leading + k % 8 * 16 + wide % 16
                           : start + wide / span * leading + k / 8 * stride + k % 8 * span + wide % span + byte % 2;
    } else if (span == 16) {
      address = start + row / 8 * stride + byte / 16 * leading + row % 8 * 16 + byte % 16;
    } else {
      address = start + row / 8 * stride + row % 8 * span + byte;
    }
    return address ^ ((address >> 7 & (span / 16 - 1)) << 4);
  }
};

/// Reads an operand of `rows` rows and 32 bytes of K as floats, [K, rows].
void read_operand(Thread& t, const Layout& layout, Element e, unsigned rows, bool negates, std::vector<float>& out) {
  const unsigned bytes = bytes_of(e), count = 32 / bytes;
  out.resize(std::size_t{count} * rows);
  for (unsigned row = 0; row < rows; ++row)
    for (unsigned k = 0; k < count; ++k) {
      std::byte element[4];
      const std::uint64_t address = layout.at(row, k * bytes);
      std::memcpy(element, shared_memory(t, address, bytes), bytes);
      const float value = element_at(element, e, 0);
      out[std::size_t{k} * rows + row] = negates ? -value : value;
    }
}

/// a of 64 rows in registers: four warps of 16, as in mma.
void read_registers(std::span<Thread* const> threads, const Instruction& in, Element e, std::vector<float>& out) {
  const unsigned bytes = bytes_of(e), count = 32 / bytes, columns = in.bytes * 8u;
  out.resize(std::size_t{count} * 64);
  for (unsigned i = 0; i < 128; ++i) {
    const unsigned g = i % 32 / 4, q = i % 4;
    for (unsigned r = 0; r < 4; ++r) {
      const auto word = threads[i]->get<std::uint32_t>(in.list[columns / 2 + r]);
      std::byte raw[4];
      std::memcpy(raw, &word, 4);
      const unsigned row = i / 32 * 16 + g + 8 * (r % 2), first = (4 * q + 16 * (r / 2)) / bytes;
      for (unsigned k = 0; k < 4 / bytes; ++k)
        out[std::size_t{first + k} * 64 + row] = in.option & negates_a ? -element_at(raw, e, k) : element_at(raw, e, k);
    }
  }
}

template <class Sum>
void multiply(std::span<Thread* const> threads, const Instruction& in, const StartedProduct& product) {
  const unsigned columns = in.bytes * 8u;
  const auto ea = static_cast<Element>(in.r[3]), eb = static_cast<Element>(in.r[4]);
  static thread_local std::vector<float> a, b;
  static thread_local std::vector<Sum> sums;
  if (in.count) read_registers(threads, in, ea, a);
  else read_operand(*threads[0], Layout(product.a, in.option & columns_a), ea, 64, in.option & negates_a, a);
  read_operand(*threads[0], Layout(product.b, in.option & columns_b), eb, columns, in.option & negates_b, b);
  sums.assign(std::size_t{64} * columns, 0);
  for (unsigned row = 0; row < 64; ++row) {
    Sum* const sum = &sums[std::size_t{row} * columns];
    for (std::size_t k = 0; k < a.size() / 64; ++k) {
      const auto factor = static_cast<Sum>(a[k * 64 + row]);
      const float* const from = &b[k * columns];
      for (unsigned n = 0; n < columns; ++n) sum[n] += factor * static_cast<Sum>(from[n]);
    }
  }
  for (unsigned i = 0; i < 128; ++i) {
    Thread& t = *threads[i];
    for (unsigned j = 0; j < columns / 2; ++j) {
      const unsigned row = i / 32 * 16 + j % 4 / 2 * 8 + i % 32 / 4, column = j / 4 * 8 + i % 4 * 2 + j % 2;
      const Sum before = product.accumulate ? t.get<Sum>(in.list[j]) : Sum{0};
      t.set<Sum>(in.list[j], static_cast<Sum>(before + sums[std::size_t{row} * columns + column]));
    }
  }
}

void execute(std::span<Thread* const> threads, const StartedProduct& product) {
  const Instruction& in = *product.instruction;
  if (is_integer(static_cast<Element>(in.r[3]))) multiply<std::int32_t>(threads, in, product);
  else multiply<float>(threads, in, product);
}

/// Keeps what accumulators hold, which reads nothing but poison now.
void hold(WarpGroup& group, std::span<Thread* const> threads, const Instruction& in) {
  for (unsigned j = 0; j < in.bytes * 4u; ++j) {
    const auto [held, is_new] = group.held.try_emplace(in.list[j]);
    if (!is_new) continue;
    for (Thread* t : threads) held->second.push_back(std::exchange(t->registers[in.list[j]], poison));
  }
}
void restore(WarpGroup& group, std::span<Thread* const> threads, const Instruction& in) {
  for (unsigned j = 0; j < in.bytes * 4u; ++j) {
    const auto held = group.held.find(in.list[j]);
    if (held == group.held.end()) continue;
    for (std::size_t i = 0; i < threads.size(); ++i) {
      if (threads[i]->registers[in.list[j]] != poison)
        fault(*threads[i],
              fmt::format("wrote to an accumulator of the product in line {} of PTX before it ended", in.line));
      threads[i]->registers[in.list[j]] = held->second[i];
    }
    group.held.erase(held);
  }
}

void start(Group& group, const Instruction& in) {
  const std::span<Thread* const> threads = group.threads();
  Thread& first = *threads[0];
  StartedProduct product{&in, first.registers[in.r[0]], first.registers[in.r[1]], first.predicate(in.r[2])};
  for (Thread* t : threads)
    if ((!in.count && t->registers[in.r[0]] != product.a) || t->registers[in.r[1]] != product.b ||
        t->predicate(in.r[2]) != product.accumulate)
      fault(*t, "expected the same descriptors in all threads of the warpgroup");
  WarpGroup& own = group_of(first);
  product.group = own.group;
  if (!first.launch().mode.late) return execute(threads, product);
  hold(own, threads, in);
  own.products.push_back(product);
}

void commit(Group& group, const Instruction&) { ++group_of(*group.threads()[0]).group; }

/// Ends all groups but the latest in.offset.
void wait(Group& group, const Instruction& in) {
  WarpGroup& own = group_of(*group.threads()[0]);
  std::size_t ended = 0;
  for (; ended < own.products.size(); ++ended) {
    const StartedProduct& p = own.products[ended];
    if (p.group + in.offset >= own.group) break;
    restore(own, group.threads(), *p.instruction);
    execute(group.threads(), p);
  }
  own.products.erase(own.products.begin(), own.products.begin() + static_cast<std::ptrdiff_t>(ended));
  for (const StartedProduct& p : own.products) hold(own, group.threads(), *p.instruction);  // still in use
}

void product(Decoder& d, Instruction& in) {
  const std::string_view shape = d.word(), sum = d.word(), a = d.word(), b = d.word();
  unsigned columns = 0;
  const std::size_t n = shape.find('n');
  if (!shape.starts_with("m64n")) d.unknown("shape");
  std::from_chars(shape.data() + n + 1, shape.data() + shape.size(), columns);
  const Element ea = element_named(a), eb = element_named(b);
  const bool integers = sum == "s32";
  if (ea == Element::unknown || eb == Element::unknown || (sum != "f32" && !integers) || is_integer(ea) != integers)
    d.unknown("types");
  if (columns % 8 != 0 || columns < 8 || columns > 256) d.unknown("shape");
  in.bytes = static_cast<std::uint8_t>(columns / 8);
  std::vector<std::uint32_t> list = d.regs(d.at(0));
  if (list.size() != columns / 2) d.unknown("number of accumulators");
  const bool in_registers = d.at(1).kind == Operand::Kind::list;
  if (in_registers) {
    const std::vector<std::uint32_t> parts = d.regs(d.at(1));
    in.count = static_cast<std::uint8_t>(parts.size());
    list.insert(list.end(), parts.begin(), parts.end());
  } else {
    in.count = 0;
    in.r[0] = d.reg(1);
  }
  in.list = d.keep(list);
  in.r[1] = d.reg(2);
  in.r[2] = d.reg(3);
  in.r[3] = static_cast<std::uint32_t>(ea);
  in.r[4] = static_cast<std::uint32_t>(eb);
  if (in_registers) in.r[0] = in.r[1];
  if (d.count() > 5) {
    if (d.number(4) != 1) in.option |= negates_a;
    if (d.number(5) != 1) in.option |= negates_b;
  }
  std::size_t next = 6;
  if (!in_registers && d.count() > next + 1 && d.number(next++)) in.option |= columns_a;
  if (d.count() > next && d.number(next)) in.option |= columns_b;
  in.run = run_warpgroup;
  in.together = start;
}

void warpgroup(Decoder& d, Instruction& in) {
  d.ignore({"sync", "aligned"});
  if (d.has("mma_async")) return product(d, in);
  in.run = run_warpgroup;
  if (d.has("fence")) {
    in.together = [](Group&, const Instruction&) {};
  } else if (d.has("commit_group")) {
    in.together = commit;
  } else if (d.has("wait_group")) {
    in.offset = static_cast<std::int64_t>(d.number(0));
    in.together = wait;
  } else {
    d.unknown("instruction");
  }
}

}  // namespace

void add_warpgroup_products(Table& table) { table["wgmma"] = warpgroup; }

}  // namespace cermet::emulator
