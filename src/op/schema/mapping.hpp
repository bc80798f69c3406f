// How a result's elements read an operand's, for the operand's actual dimensions.
#pragma once

#include <optional>

#include "op/schema/operator.hpp"

namespace cermet {

/// The schema's mapping of an operand, made exact by the dimensions (DNNFusion, PLDI 2021, table 1): an operand that
/// broadcasts is One-to-Many unless it is a constant, which needs no element of another node; a reshape, transposition,
/// expansion or slice that changes nothing is One-to-One, and a transposition that moves only axes of length 1
/// Reorganize. Nothing where the operand is not given, or where the result does not depend on it.
std::optional<Mapping> mapping_of(const Problem& problem, std::size_t operand, std::size_t output = 0);

}  // namespace cermet
