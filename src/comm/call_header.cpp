// What every rank says of a call.
#include <array>
#include <string_view>

#include "comm/call.hpp"

namespace cermet::comm {
namespace {

/// FNV-1a over the counts: equal matrices have equal digests, and 0 stands for none.
std::uint64_t digest(const PairCounts& counts, int size) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (int from = 0; from < size; ++from)
    for (int to = 0; to < size; ++to) {
      auto value = static_cast<std::uint64_t>(counts.at(from, to));
      for (int byte = 0; byte < 8; ++byte, value >>= 8) hash = (hash ^ (value & 255u)) * 0x100000001b3u;
    }
  return hash == 0 ? 1 : hash;
}

}  // namespace

std::string to_string(const CallHeader& header) {
  if (header.what == what_none) return "none";
  if (header.what == what_barrier) return fmt::format("call {}, barrier", header.number);
  if (header.what == what_text) return fmt::format("call {}, exchange of text", header.number);
  const auto kind = static_cast<Collective>(header.what);
  if (header.dtype == no_dtype) return fmt::format("call {}, {}", header.number, name_of(kind));
  std::string text = fmt::format("call {}, {} of {}[{} x {}]", header.number, name_of(kind),
                                 name_of(static_cast<DType>(header.dtype)), header.rows, header.row_elements);
  constexpr std::array<std::string_view, 5> reductions{"sum", "avg", "prod", "max", "min"};
  if (has_reduction(kind)) text += fmt::format(" by {}", reductions[header.reduction]);
  if (has_root(kind)) text += fmt::format(" with root {}", header.root);
  if (header.counts != 0) text += fmt::format(" with counts of digest {:x}", header.counts);
  return text;
}

CallHeader header_of(const DenseCall& call) {
  return {.what = static_cast<std::uint8_t>(call.kind),
          .reduction = static_cast<std::uint8_t>(has_reduction(call.kind) ? call.reduction : Reduction::sum),
          .dtype = static_cast<std::uint8_t>(call.dtype),
          .root = call.root,
          .rows = call.rows,
          .row_elements = call.row_elements,
          .counts = call.counts ? digest(*call.counts, call.size) : 0};
}

}  // namespace cermet::comm
