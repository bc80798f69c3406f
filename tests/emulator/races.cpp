#include "tests/emulator/races.hpp"

#include <algorithm>

#include "tests/emulator/machine.hpp"

namespace cermet::emulator {

void Order::join(const Order& other) {
  seen.resize(std::max(seen.size(), other.seen.size()));
  fenced.resize(seen.size());
  for (std::size_t i = 0; i < other.seen.size(); ++i) {
    seen[i] = std::max(seen[i], other.seen[i]);
    fenced[i] = std::max(fenced[i], other.fenced[i]);
  }
}

Races::Races(std::size_t blocks, std::size_t warps_of_block, std::size_t shared_bytes)
    : warps_(warps_of_block), words_((shared_bytes + 3) / 4) {
  const std::size_t count = blocks * warps_;
  agents_.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    agents_[i].seen.resize(count);
    agents_[i].fenced.resize(count);
    agents_[i].seen[i] = 1;
  }
  written_.resize(blocks * words_);
  read_.resize(blocks * words_ * warps_);
  read_by_product_.resize(blocks * words_ * groups());
}

std::size_t Races::agent(const Thread& t) const { return t.block->rank * warps_ + t.index / 32; }

/// f(number of the word, mask of its bytes) of an access.
template <class F>
void Races::each_word(const Thread& t, std::uint64_t address, std::uint64_t bytes, F f) {
  const std::uint64_t rank = address >> rank_shift, block = rank ? rank - 1 : t.block->rank;
  const std::uint64_t first = address & ((1u << rank_shift) - 1), last = first + bytes;
  for (std::uint64_t word = first / 4; word * 4 < last; ++word) {
    std::uint8_t mask = 15;
    if (word * 4 < first) mask &= static_cast<std::uint8_t>(15 << (first - word * 4));
    if (word * 4 + 4 > last) mask &= static_cast<std::uint8_t>(15 >> (word * 4 + 4 - last));
    f(block * words_ + word, mask);
  }
}

void Races::check_read(const Thread& t, const Order& order, const Word& w, std::uint64_t address, Proxy proxy) const {
  if (w.clock > order.seen[w.writer])
    fault(t, fmt::format("shared address {:#x}: reads what warp {} writes in line {} of PTX{}, and nothing orders them",
                         address, w.writer, w.line, t.launch().program->source_of(w.line)));
  if (proxy == Proxy::async && w.proxy == Proxy::generic && w.clock > order.fenced[w.writer])
    fault(t, fmt::format("shared address {:#x}: reads asynchronously what warp {} wrote in line {} of PTX{}, without a "
                         "fence.proxy.async between",
                         address, w.writer, w.line, t.launch().program->source_of(w.line)));
}

void Races::begin_product(const Thread& first) {
  std::array<std::uint32_t, 4> clocks{};
  for (std::size_t i = 0; i < 4; ++i) clocks[i] = agents_[agent(first) + i].seen[agent(first) + i];
  products_.push_back(clocks);
}

void Races::read_by_warpgroup(const Thread& first, std::uint64_t address, std::uint64_t bytes) {
  each_word(first, address, bytes, [&](std::size_t word, std::uint8_t mask) {
    const Word& w = written_[word];
    if (w.bytes & mask)
      for (std::size_t i = 0; i < 4; ++i) check_read(first, agents_[agent(first) + i], w, address, Proxy::async);
    read_by_product_[word * groups() + first.index / 128] = static_cast<std::uint32_t>(products_.size() - 1);
  });
}

void Races::read(const Thread& t, std::uint64_t address, std::uint64_t bytes, Proxy proxy) {
  const std::size_t own = agent(t);
  const Order& order = agents_[own];
  each_word(t, address, bytes, [&](std::size_t word, std::uint8_t mask) {
    if (const Word& w = written_[word]; w.bytes & mask) check_read(t, order, w, address, proxy);
    if (word / words_ != t.block->rank) return;  // reads of other blocks are not remembered
    std::uint32_t& r = read_[word * warps_ + t.index / 32];
    const std::uint32_t clock = order.seen[own];
    r = clock << 4 | (r >> 4 == clock ? r & 15 : 0) | mask;
  });
}

void Races::write(const Thread& t, std::uint64_t address, std::uint64_t bytes, Proxy proxy) {
  const std::size_t own = agent(t);
  const Order& order = agents_[own];
  const std::uint32_t line = t.launch().program->code[t.pc - 1].line;
  each_word(t, address, bytes, [&](std::size_t word, std::uint8_t mask) {
    Word& w = written_[word];
    if ((w.bytes & mask) && w.clock > order.seen[w.writer])
      fault(t,
            fmt::format("shared address {:#x}: writes what warp {} writes in line {} of PTX{}, and nothing orders them",
                        address, w.writer, w.line, t.launch().program->source_of(w.line)));
    const std::size_t first = word / words_ * warps_;
    for (std::size_t i = 0; i < warps_; ++i) {
      const std::uint32_t r = read_[word * warps_ + i];
      if ((r & mask) && r >> 4 > order.seen[first + i])
        fault(t, fmt::format("shared address {:#x}: writes what warp {} reads, and nothing orders them", address,
                             first + i));
    }
    for (std::size_t g = 0; g < groups(); ++g) {
      std::uint32_t& product = read_by_product_[word * groups() + g];
      bool ordered = product == 0;
      for (std::size_t i = 0; i < 4 && !ordered; ++i) ordered = products_[product][i] <= order.seen[first + 4 * g + i];
      if (!ordered)
        fault(t, fmt::format(
                     "shared address {:#x}: writes what a product of warps {} to {} reads, and nothing orders them",
                     address, first + 4 * g, first + 4 * g + 3));
      product = 0;
    }
    const bool same = w.writer == own && w.clock == order.seen[own] && w.proxy == proxy;
    w = {order.seen[own], line, static_cast<std::uint16_t>(own),
         static_cast<std::uint8_t>(same ? w.bytes | mask : mask), proxy};
  });
}

void Races::release(const Thread& t, Order& order) {
  Order& own = agents_[agent(t)];
  order.join(own);
  ++own.seen[agent(t)];
}

void Races::fence(const Thread& t) {
  Order& own = agents_[agent(t)];
  own.fenced = own.seen;
  ++own.seen[agent(t)];
}

void note_read(const Thread& t, std::uint64_t address, std::uint64_t bytes, Proxy proxy) {
  if (Races* const races = t.block->cluster->races.get()) races->read(t, address & 0xffffffffu, bytes, proxy);
}
void note_write(const Thread& t, std::uint64_t address, std::uint64_t bytes, Proxy proxy) {
  if (Races* const races = t.block->cluster->races.get()) races->write(t, address & 0xffffffffu, bytes, proxy);
}
void note_release(const Thread& t, Order& order) {
  if (Races* const races = t.block->cluster->races.get()) races->release(t, order);
}
void note_acquire(const Thread& t, const Order& order) {
  if (Races* const races = t.block->cluster->races.get()) races->acquire(t, order);
}
void note_synchronization(const Thread& t) {
  if (Races* const races = t.block->cluster->races.get()) {
    races->acquire(t, races->memory);
    races->release(t, races->memory);
  }
}

}  // namespace cermet::emulator
