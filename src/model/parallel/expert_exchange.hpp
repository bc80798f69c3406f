// How ranks that have tokens of their own and share the experts of a mixture give them each other's tokens.
#pragma once

#include <cstdint>
#include <string_view>

namespace cermet {

enum class ExpertExchange : std::uint8_t {
  rows,    ///< each row goes to the ranks of its experts alone, as many as there are: counts are read on the host. The
           ///< CPU's way
  gather,  ///< every rank gets all ranks' rows, as many of each, and computes those of its experts: nothing is read on
           ///< the host. The way of GPUs
};

std::string_view name_of(ExpertExchange exchange);

}  // namespace cermet
