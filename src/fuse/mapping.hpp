// What may be fused by mapping types alone, and what the whole then is: the table of DNNFusion (PLDI 2021), as printed.
#pragma once

#include <optional>
#include <string>

#include "op/schema/mapping.hpp"
#include "op/schema/region.hpp"

namespace cermet {

/// G, Y and X of the table.
enum class Verdict : std::uint8_t {
  fuse,     ///< always pays
  profile,  ///< may pay: where a kernel takes it
  no,       ///< not fused
};

struct Combination {
  Verdict verdict{};
  Mapping result{};  ///< of both together; of `no`, many_to_many
};

/// An operator of the second type after one of the first. A barrier is fused with nothing.
Combination combine(Mapping first, Mapping second);
/// The type of an operator as a whole: the strongest of its operands'.
Mapping mapping_of(const Problem& problem);

/// Two operators of a region between which the table has an X.
struct ForbiddenEdge {
  std::size_t producer = 0, consumer = 0;  ///< nodes of the region
  Mapping first{}, second{};               ///< of all that leads to the producer's result; of the consumer's operand
};
/// The first such edge; nothing where the table allows the region.
std::optional<ForbiddenEdge> forbidden_edge(const Region& region);
/// The type of a region as a whole: of its results, the strongest.
Mapping mapping_of(const Region& region);

/// Whether an operator has one result, each place of which reads one place of every operand.
bool is_one_to_one(OpKind op);

}  // namespace cermet
