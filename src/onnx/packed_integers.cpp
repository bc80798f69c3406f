#include "onnx/packed_integers.hpp"

#include <array>

#include "base/checked.hpp"

namespace cermet::onnx {
namespace {

constexpr std::int64_t uint4 = 21, int4 = 22, float4e2m1 = 23, uint2 = 25, int2 = 26;

/// 0, 0.5, 1, 1.5, 2, 3, 4, 6 in f8_e4m3.
constexpr std::array<unsigned char, 8> e4m3_of_e2m1{0x00, 0x30, 0x38, 0x3c, 0x40, 0x44, 0x48, 0x4c};

}  // namespace

int packed_bits(std::int64_t code) {
  if (code == uint4 || code == int4 || code == float4e2m1) return 4;
  return code == uint2 || code == int2 ? 2 : 0;
}

std::int64_t packed_bytes(std::int64_t elements, int bits) { return div_up(elements, std::int64_t{8 / bits}); }

std::string unpacked(const std::string& packed, std::int64_t elements, std::int64_t code) {
  const int bits = packed_bits(code), per_byte = 8 / bits;
  const unsigned mask = (1u << bits) - 1u, sign = 1u << (bits - 1);
  std::string bytes(static_cast<std::size_t>(elements), '\0');
  for (std::int64_t i = 0; i < elements; ++i) {
    const unsigned value =
        (static_cast<unsigned char>(packed[static_cast<std::size_t>(i / per_byte)]) >> (i % per_byte * bits)) & mask;
    unsigned held = value;
    if (code == float4e2m1) held = e4m3_of_e2m1[value & 7u] | (value & 8u ? 0x80u : 0u);
    else if ((code == int4 || code == int2) && (value & sign)) held = value | ~mask;
    bytes[static_cast<std::size_t>(i)] = static_cast<char>(static_cast<unsigned char>(held));
  }
  return bytes;
}

}  // namespace cermet::onnx
