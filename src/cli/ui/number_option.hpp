// The checks of an option that takes a number: the whole of its text is one, in range.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>

namespace cermet::cli {

struct NumberBounds {
  bool is_whole = true, is_ranged = false;  ///< ranged: by the verb, not by the type alone
  std::int64_t least = std::numeric_limits<std::int64_t>::min(), most = std::numeric_limits<std::int64_t>::max();
  bool is_unsigned = false;  ///< up to 2^64 - 1, as seeds are
  double least_real = std::numeric_limits<double>::lowest(), most_real = std::numeric_limits<double>::max();
  bool is_open = false;  ///< least_real itself is refused
};

/// CLI11 takes "-1" for 2^64 - 1, the largest number for a larger one, and "010" for 8: this refuses the first two, and
/// passes on plain decimals. `bounds` may change until the command line is parsed. Returns the error, or nothing.
std::function<std::string(std::string&)> number_check(std::shared_ptr<const NumberBounds> bounds);

}  // namespace cermet::cli
