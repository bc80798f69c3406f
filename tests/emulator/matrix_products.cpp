// Products of a warp (mma.sync), and the loads and stores of their fragments.
#include <array>
#include <charconv>

#include "tests/emulator/decode.hpp"
#include "tests/emulator/matrix_elements.hpp"

namespace cermet::emulator {
namespace {

constexpr std::uint32_t whole_warp = ~0u;

void run_whole_warp(Thread& t, const Instruction& in) { wait_for_lanes(t, in, whole_warp); }

/// r[0], r[1]: elements of a and b. bytes, count, option: registers of d, a and b; offset: columns of K. The list has
/// registers of d, a, b and c. Lane 4 g + t has, in register i of a, row g + 8 (i % 2) at the 4 bytes t + 4 (i / 2); of
/// b, column g at t + 4 i; of d, row g + 8 (i / 2), columns 2 t and 2 t + 1.
template <class Sum, class Wide>
void multiply(Group& group, const Instruction& in) {
  const unsigned nd = in.bytes, na = in.count, nb = in.option;
  const auto ea = static_cast<Element>(in.r[0]), eb = static_cast<Element>(in.r[1]);
  const unsigned row_bytes = na > 2 || nb > 1 ? 32 : 16;
  std::array<std::array<std::byte, 32>, 16> a{};
  std::array<std::array<std::byte, 32>, 8> b{};
  group.each([&](Thread& t, std::uint32_t lane) {
    const unsigned g = lane / 4, q = lane % 4;
    for (unsigned i = 0; i < na; ++i) {
      const auto word = t.get<std::uint32_t>(in.list[nd + i]);
      std::memcpy(&a[g + 8 * (i % 2)][4 * q + 16 * (i / 2)], &word, 4);
    }
    for (unsigned i = 0; i < nb; ++i) {
      const auto word = t.get<std::uint32_t>(in.list[nd + na + i]);
      std::memcpy(&b[g][4 * q + 16 * i], &word, 4);
    }
  });
  const unsigned k_count = row_bytes / bytes_of(ea);
  Wide product[16][8];
  for (unsigned row = 0; row < 16; ++row)
    for (unsigned column = 0; column < 8; ++column) {
      Wide sum = 0;
      for (unsigned k = 0; k < k_count; ++k)
        sum += static_cast<Wide>(element_at(a[row].data(), ea, k)) *
               static_cast<Wide>(element_at(b[column].data(), eb, k));
      product[row][column] = sum;
    }
  group.each([&](Thread& t, std::uint32_t lane) {
    const unsigned g = lane / 4, q = lane % 4;
    for (unsigned i = 0; i < nd; ++i) {
      const Sum c = t.get<Sum>(in.list[nd + na + nb + i]);
      t.set<Sum>(in.list[i], static_cast<Sum>(static_cast<Wide>(c) + product[g + 8 * (i / 2)][2 * q + i % 2]));
    }
  });
}

void product(Decoder& d, Instruction& in) {  // mma
  d.ignore({"sync", "aligned", "row", "col", "satfinite"});
  const std::string_view shape = d.word(), sum = d.word(), a = d.word(), b = d.word(), c = d.word();
  if (shape != "m16n8k16" && shape != "m16n8k8" && shape != "m16n8k32" && shape != "m8n8k16") d.unknown("shape");
  const Element ea = element_named(a), eb = element_named(b);
  const bool floats = sum == "f32" && c == "f32", integers = sum == "s32" && c == "s32";
  if (ea == Element::unknown || eb == Element::unknown || (!floats && !integers) || is_integer(ea) != integers)
    d.unknown("types");
  in.r[0] = static_cast<std::uint32_t>(ea);
  in.r[1] = static_cast<std::uint32_t>(eb);
  std::vector<std::uint32_t> list;
  std::size_t counts[4];
  for (std::size_t i = 0; i < 4; ++i) {
    const std::vector<std::uint32_t> part = d.regs(d.at(i));
    counts[i] = part.size();
    list.insert(list.end(), part.begin(), part.end());
  }
  in.bytes = static_cast<std::uint8_t>(counts[0]);
  in.count = static_cast<std::uint8_t>(counts[1]);
  in.option = static_cast<std::uint8_t>(counts[2]);
  in.list = d.keep(list);
  in.run = run_whole_warp;
  in.together = floats ? RunTogether(multiply<float, double>) : RunTogether(multiply<std::int32_t, std::int64_t>);
}

/// Moves 8 x 8 matrices of 16 bits: register i of lane l has bytes 4 (l % 4) of row l / 4 of matrix i, whose row
/// addresses are those of lanes 8 i to 8 i + 7. option: transposed.
template <bool Stores>
void move_matrices(Group& group, const Instruction& in) {
  for (unsigned m = 0; m < in.count; ++m) {
    std::uint16_t tile[8][8] = {};
    std::byte* rows[8];
    for (unsigned row = 0; row < 8; ++row) {
      Thread& t = *group.lane(8 * m + row);
      rows[row] =
          shared_memory(t, (t.get<std::uint32_t>(in.r[0]) + static_cast<std::uint64_t>(in.offset)) & 0xffffffffu, 16);
      if (!Stores) std::memcpy(tile[row], rows[row], 16);
    }
    group.each([&](Thread& t, std::uint32_t lane) {
      std::uint32_t word = Stores ? t.get<std::uint32_t>(in.list[m]) : 0;
      for (unsigned k = 0; k < 2; ++k) {
        std::uint16_t& at = in.option ? tile[2 * (lane % 4) + k][lane / 4] : tile[lane / 4][2 * (lane % 4) + k];
        if (Stores) at = static_cast<std::uint16_t>(word >> 16 * k);
        else word |= std::uint32_t{at} << 16 * k;
      }
      if (!Stores) t.set<std::uint32_t>(in.list[m], word);
    });
    if (Stores)
      for (unsigned row = 0; row < 8; ++row) std::memcpy(rows[row], tile[row], 16);
  }
}

template <bool Stores>
void matrices(Decoder& d, Instruction& in) {
  d.ignore({"sync", "aligned", "m8n8", "shared", "shared::cta"});
  in.option = d.has("trans");
  in.count = d.has("x4") ? 4 : d.has("x2") ? 2 : 1;
  d.ignore({"x1"});
  if (d.type() != Type::b16) d.unknown("type");
  in.list = d.keep(d.regs(d.at(Stores ? 1 : 0)));
  d.memory(d.at(Stores ? 0 : 1), in, 0);
  in.run = run_whole_warp;
  in.together = move_matrices<Stores>;
}

}  // namespace

void add_matrix_products(Table& table) {
  table["mma"] = product;
  table["ldmatrix"] = matrices<false>;
  table["stmatrix"] = matrices<true>;
}

}  // namespace cermet::emulator
