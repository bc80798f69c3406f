// Copies that complete later: cp.async, bulk copies, tensor copies, and stores that count at an mbarrier.
#include <algorithm>

#include "tests/emulator/decode.hpp"
#include "tests/emulator/mbarrier.hpp"
#include "tests/emulator/tensor_map.hpp"

namespace cermet::emulator {
namespace {

void copy_now(const AsyncCopy& c) {
  if (c.valid > 0) std::memcpy(c.to, c.from, c.valid);
  std::memset(c.to + c.valid, 0, c.bytes - c.valid);
}

void plain_address(Decoder& d, std::size_t operand, Instruction& in, std::size_t r) {
  d.memory(d.at(operand), in, r);
  if (in.offset != 0) d.unknown("offset");
}

template <class T>
std::vector<T>& open_group(std::deque<std::vector<T>>& groups) {
  if (groups.empty()) groups.emplace_back();
  return groups.back();
}

// cp.async: r[0] to, r[1] from, r[2] bytes, r[3] bytes that are read.

void copy_some(Thread& t, const Instruction& in) {
  const std::uint32_t bytes = in.bytes, valid = std::min(t.get<std::uint32_t>(in.r[3]), bytes);
  std::byte* const to = shared_memory(t, t.registers[in.r[0]] & 0xffffffffu, bytes);
  const std::uint64_t from = t.registers[in.r[1]];
  if (from % bytes != 0)
    fault(t, fmt::format("expected an address that is a multiple of {}, found {:#x}", bytes, from));
  for (std::uint32_t at = 0; at < valid; ++at) global_memory(t, from + at, 1, in);
  const AsyncCopy copy{to, reinterpret_cast<const std::byte*>(from), bytes, valid};
  if (t.launch().mode.late) open_group(t.copies).push_back(copy);
  else copy_now(copy);
}

/// Counts at a barrier when this thread's copies so far have ended.
void arrive_after_copies(Thread& t, const Instruction& in) {
  std::byte* const barrier = mbarrier_memory(t, t.registers[in.r[0]] & 0xffffffffu);
  if (!in.option) fault(t, "cp.async.mbarrier.arrive without .noinc");
  std::vector<AsyncCopy> copies;
  for (std::vector<AsyncCopy>& group : t.copies) {
    copies.insert(copies.end(), group.begin(), group.end());
    group.clear();
  }
  t.launch().start([&t, barrier, copies = std::move(copies)] {
    std::ranges::for_each(copies, copy_now);
    change_mbarrier(t, barrier, 1, 0);
  });
}

void small_copy(Decoder& d, Instruction& in) {
  d.ignore({"ca", "cg", "shared", "shared::cta", "global"});
  d.ignore_prefix("L2::");
  if (d.has("commit_group")) {
    in.run = [](Thread& t, const Instruction&) {
      open_group(t.copies);
      t.copies.emplace_back();
    };
  } else if (d.has("wait_group")) {
    in.offset = static_cast<std::int64_t>(d.number(0));
    in.run = [](Thread& t, const Instruction& i) { complete_copies(t, static_cast<std::size_t>(i.offset)); };
  } else if (d.has("wait_all")) {
    in.run = [](Thread& t, const Instruction&) {
      open_group(t.copies);
      t.copies.emplace_back();
      complete_copies(t, 0);
    };
  } else if (d.has("mbarrier")) {
    d.ignore({"arrive", "b64"});
    in.option = d.has("noinc");
    plain_address(d, 0, in, 0);
    in.run = arrive_after_copies;
  } else {
    plain_address(d, 0, in, 0);
    plain_address(d, 1, in, 1);
    in.bytes = static_cast<std::uint8_t>(d.number(2));
    in.r[3] = d.count() > 3 ? d.reg(3) : d.constant(in.bytes);
    in.run = copy_some;
  }
}

// Bulk copies.

/// Work of a thread that is done now or later; faults name the instruction that started it.
template <class F>
void start(Thread& t, F work) {
  t.launch().start([&t, pc = t.pc, work = std::move(work)] {
    const std::uint32_t now = std::exchange(t.pc, pc);
    work();
    t.pc = now;
  });
}

std::uint64_t bulk_size(Thread& t, std::uint32_t r) {
  const auto bytes = t.get<std::uint32_t>(r);
  if (bytes % 16 != 0) fault(t, fmt::format("expected a size that is a multiple of 16, found {}", bytes));
  return bytes;
}
void check_16(Thread& t, std::uint64_t address) {
  if (address % 16 != 0) fault(t, fmt::format("expected an address that is a multiple of 16, found {:#x}", address));
}

/// Blocks that a copy goes to: those of a mask, or the one of the address.
template <class F>
void each_destination(Thread& t, const Instruction& in, std::uint64_t to, std::uint64_t barrier, F f) {
  if (in.option == 0) return f(to, barrier);
  const auto mask = t.get<std::uint32_t>(in.r[4]);
  constexpr std::uint64_t offset = (1u << rank_shift) - 1;
  for (std::uint64_t rank = 0; rank < 16; ++rank)
    if (mask >> rank & 1) f((to & offset) | (rank + 1) << rank_shift, (barrier & offset) | (rank + 1) << rank_shift);
}

/// r[0] to, r[1] from, r[2] bytes, r[3] barrier, r[4] blocks. bytes: from shared memory.
void bulk_load(Thread& t, const Instruction& in) {
  const std::uint64_t bytes = bulk_size(t, in.r[2]), source = t.registers[in.r[1]];
  check_16(t, source);
  if (bytes == 0) return;
  const std::byte* const from =
      in.bytes ? shared_memory(t, source & 0xffffffffu, bytes) : global_memory(t, source, bytes, in);
  const auto load = [&](std::uint64_t address, std::uint64_t barrier_address) {
    check_16(t, address);
    std::byte* const to = shared_memory(t, address, bytes);
    std::byte* const barrier = mbarrier_memory(t, barrier_address);
    start(t, [&t, from, to, bytes, barrier] {
      std::memcpy(to, from, bytes);
      change_mbarrier(t, barrier, 0, -static_cast<std::int64_t>(bytes));
    });
  };
  each_destination(t, in, t.registers[in.r[0]] & 0xffffffffu, t.registers[in.r[3]] & 0xffffffffu, load);
}

void add_store(Thread& t, std::function<void()> work) {
  if (t.launch().mode.late) open_group(t.stores).push_back(std::move(work));
  else work();
  ++t.launch().events;
}

/// r[0] to, r[1] from, r[2] bytes.
void bulk_store(Thread& t, const Instruction& in) {
  const std::uint64_t bytes = bulk_size(t, in.r[2]), target = t.registers[in.r[0]],
                      source = t.registers[in.r[1]] & 0xffffffffu;
  check_16(t, target);
  check_16(t, source);
  if (bytes == 0) return;
  std::byte* const to = global_memory(t, target, bytes, in);
  const std::byte* const from = shared_memory(t, source, bytes);
  add_store(t, [to, from, bytes] { std::memcpy(to, from, bytes); });
}

TensorMapContent map_at(Thread& t, const Instruction& in, std::uint64_t address) {
  if (address % 64 != 0) fault(t, fmt::format("expected a tensor map at a multiple of 64, found {:#x}", address));
  const std::byte* const bytes = generic_memory(t, address, 128, in);
  try {
    return decode_tensor_map(bytes);
  } catch (const Error& error) {
    fault(t, error.what());
  }
}

std::vector<std::int32_t> coordinates_of(const Thread& t, const Instruction& in) {
  std::vector<std::int32_t> list;
  for (unsigned k = 0; k < in.count; ++k) list.push_back(t.get<std::int32_t>(in.list[k]));
  return list;
}

void check_tile(Thread& t, const TensorMapContent& map, const Instruction& in, std::uint64_t address) {
  if (map.rank != in.count) fault(t, fmt::format("expected a tensor map of rank {}, found {}", in.count, map.rank));
  const std::uint64_t alignment = map.swizzle_bytes ? 8 * map.swizzle_bytes : 128;
  if (address % alignment != 0)
    fault(t, fmt::format("expected a tile at a multiple of {}, found {:#x}", alignment, address));
}

/// r[0] to, r[1] map, r[3] barrier, r[4] blocks; the list has the coordinates.
void tensor_load(Thread& t, const Instruction& in) {
  const TensorMapContent map = map_at(t, in, t.registers[in.r[1]]);
  const std::vector<std::int32_t> at = coordinates_of(t, in);
  const std::uint64_t bytes = tile_bytes(map);
  const auto load = [&](std::uint64_t address, std::uint64_t barrier_address) {
    check_tile(t, map, in, address & ((1u << rank_shift) - 1));
    shared_memory(t, address, bytes);
    std::byte* const barrier = mbarrier_memory(t, barrier_address);
    start(t, [&t, &in, map, at, bytes, address, barrier] {
      each_row(map, at, [&](const TileRow& row) {
        const std::uint64_t row_bytes = map.box[0] * std::uint64_t{map.element_bytes};
        const std::byte* const from = row.bytes > 0 ? global_memory(t, row.from, row.bytes, in) : nullptr;
        for (std::uint64_t b = 0; b < row_bytes; ++b) {
          std::byte* const to = shared_memory(t, swizzled(map, address + row.offset + b), 1);
          *to = b >= row.first && b < row.first + row.bytes ? from[b - row.first] : std::byte{0};
        }
      });
      change_mbarrier(t, barrier, 0, -static_cast<std::int64_t>(bytes));
    });
  };
  each_destination(t, in, t.registers[in.r[0]] & 0xffffffffu, t.registers[in.r[3]] & 0xffffffffu, load);
}

/// r[0] map, r[1] from.
void tensor_store(Thread& t, const Instruction& in) {
  const TensorMapContent map = map_at(t, in, t.registers[in.r[0]]);
  const std::uint64_t address = t.registers[in.r[1]] & 0xffffffffu;
  check_tile(t, map, in, address);
  const std::vector<std::int32_t> at = coordinates_of(t, in);
  add_store(t, [&t, &in, map, at, address] {
    each_row(map, at, [&](const TileRow& row) {
      if (row.bytes == 0) return;
      std::byte* const to = global_memory(t, row.from, row.bytes, in);
      for (std::uint64_t b = 0; b < row.bytes; ++b)
        to[b] = *shared_memory(t, swizzled(map, address + row.offset + row.first + b), 1);
    });
  });
}

void load_to_barrier(Decoder& d, Instruction& in, std::size_t barrier) {
  plain_address(d, barrier, in, 3);
  std::size_t next = barrier + 1;
  if (d.has("multicast::cluster")) {
    in.option = 1;
    in.r[4] = d.reg(next++);
  }
  d.ignore({"mbarrier::complete_tx::bytes", "cta_group::1"});
  d.ignore_prefix("L2::");  // whose operand follows
}

void tensor_copy(Decoder& d, Instruction& in) {
  d.ignore({"tile", "global"});
  d.word();  // 2d: as many as there are coordinates
  const bool loads = d.has("shared::cluster") || d.at(0).parts.size() == 1;
  d.ignore({"shared::cta"});
  const Operand& map = d.at(loads ? 1 : 0);
  plain_address(d, loads ? 1 : 0, in, loads ? 1 : 0);
  const std::vector<std::uint32_t> coordinates = d.regs(map.parts.at(1));
  in.count = static_cast<std::uint8_t>(coordinates.size());
  in.list = d.keep(coordinates);
  plain_address(d, loads ? 0 : 1, in, loads ? 0 : 1);
  if (loads) load_to_barrier(d, in, 2);
  d.ignore({"bulk_group"});
  in.run = loads ? tensor_load : tensor_store;
}

void bulk(Decoder& d, Instruction& in) {
  if (d.has("commit_group")) {
    in.run = [](Thread& t, const Instruction&) {
      open_group(t.stores);
      t.stores.emplace_back();
    };
  } else if (d.has("wait_group")) {
    d.ignore({"read"});
    in.offset = static_cast<std::int64_t>(d.number(0));
    in.run = [](Thread& t, const Instruction& i) { complete_stores(t, static_cast<std::size_t>(i.offset)); };
  } else if (d.has("prefetch")) {
    while (!d.word().empty()) continue;
    in.run = [](Thread&, const Instruction&) {};
  } else if (d.has("tensor")) {
    tensor_copy(d, in);
  } else {
    const bool loads = d.has("shared::cluster");
    in.bytes = d.has("shared::cta") && loads;
    d.ignore({"shared::cta", "global"});
    plain_address(d, 0, in, 0);
    plain_address(d, 1, in, 1);
    in.r[2] = d.reg(2);
    if (loads) load_to_barrier(d, in, 3);
    d.ignore({"bulk_group"});
    d.ignore_prefix("L2::");
    in.run = loads ? bulk_load : bulk_store;
  }
}

/// mapa: the place in another block of the cluster that corresponds to an own one.
void map_address(Decoder& d, Instruction& in) {
  d.all(in);
  const bool shared = d.has("shared::cluster");
  in.bytes = shared;
  d.type();
  in.run = [](Thread& t, const Instruction& i) {
    const std::uint64_t window = i.bytes ? 0 : shared_window, offset = t.registers[i.r[1]] & ((1u << rank_shift) - 1);
    const auto rank = t.get<std::uint32_t>(i.r[2]);
    if (rank >= t.block->cluster->blocks.size())
      fault(t, fmt::format("expected a block of the cluster, found rank {}", rank));
    t.registers[i.r[0]] = window | offset | std::uint64_t{rank + 1} << rank_shift;
  };
}

/// [r[0]] = list, counted at [r[1]].
template <bool Adds>
void store_and_count(Thread& t, const Instruction& in) {
  std::vector<std::uint64_t> values;
  for (unsigned k = 0; k < in.count; ++k) values.push_back(t.registers[in.list[k]]);
  const std::uint64_t bytes = std::uint64_t{in.bytes} * in.count;
  std::byte* const to = shared_memory(t, t.registers[in.r[0]] & 0xffffffffu, bytes);
  std::byte* const barrier = mbarrier_memory(t, t.registers[in.r[1]] & 0xffffffffu);
  start(t, [&t, values, to, barrier, bytes, element = in.bytes] {
    for (std::size_t k = 0; k < values.size(); ++k) {
      std::uint64_t value = values[k];
      if (Adds) {
        std::uint64_t old = 0;
        std::memcpy(&old, to, element);
        value += old;
      }
      std::memcpy(to + k * element, &value, element);
    }
    change_mbarrier(t, barrier, 0, -static_cast<std::int64_t>(bytes));
  });
}

void asynchronous_store(Decoder& d, Instruction& in) {
  d.ignore({"weak", "relaxed", "cluster", "shared::cluster", "mbarrier::complete_tx::bytes"});
  in.count = d.has("v2") ? 2 : d.has("v4") ? 4 : 1;
  plain_address(d, 0, in, 0);
  plain_address(d, 2, in, 1);
  in.list = d.keep(d.regs(d.at(1)));
  const Type type = d.type();
  in.bytes = type >= Type::b64 && type <= Type::s64 ? 8 : 4;
}

}  // namespace

void store_async(Decoder& d, Instruction& in) {
  asynchronous_store(d, in);
  in.run = store_and_count<false>;
}

void add_async(Decoder& d, Instruction& in) {
  if (!d.has("add")) d.unknown("operation");
  asynchronous_store(d, in);
  in.run = store_and_count<true>;
}

void complete_copies(Thread& t, std::size_t pending) {
  // The last group is open and not among those that are counted.
  while (t.copies.size() > pending + 1) {
    std::ranges::for_each(t.copies.front(), copy_now);
    t.copies.pop_front();
  }
}

void complete_stores(Thread& t, std::size_t pending) {
  while (t.stores.size() > pending + 1) {
    for (const std::function<void()>& store : t.stores.front()) store();
    t.stores.pop_front();
    ++t.launch().events;
  }
}

void add_asynchronous_copies(Table& table) {
  table["cp"] = [](Decoder& d, Instruction& in) {
    if (!d.has("async")) d.unknown("instruction");
    if (d.has("bulk")) bulk(d, in);
    else small_copy(d, in);
  };
  table["mapa"] = map_address;
}

}  // namespace cermet::emulator
