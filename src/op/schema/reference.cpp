#include "op/schema/reference.hpp"

namespace cermet {

void check_index(std::string_view op, std::string_view operand, std::int64_t value, std::int64_t bound) {
  require(value >= 0 && value < bound, "{}: operand {}: expected an index in [0, {}), found {}", op, operand, bound,
          value);
}

std::int64_t checked_signed_index(std::string_view op, std::string_view operand, std::int64_t value,
                                  std::int64_t bound) {
  require(value >= -bound && value < bound, "{}: operand {}: expected an index in [{}, {}), found {}", op, operand,
          -bound, bound, value);
  return value < 0 ? value + bound : value;
}

}  // namespace cermet
