// Configuration and parameters of the task of lstm, gru and rnn.
#pragma once

#include "kernel/cuda/device/dtype.hpp"

namespace cermet::recurrent {

inline constexpr int threads = 512;

enum class Cell : uint8_t { lstm, gru, rnn };
constexpr const char* name_of(Cell cell) {
  if (cell == Cell::lstm) return "cermet::recurrent::Cell::lstm";
  return cell == Cell::gru ? "cermet::recurrent::Cell::gru" : "cermet::recurrent::Cell::rnn";
}

struct Config {
  Cell cell;
  DType type;

  template <class Visit>
  constexpr void fields(Visit&& visit) const {
    visit("cell", cell), visit("type", type);
  }
};

struct Activation {
  uint32_t function;  ///< a row of op/recurrent.inc
  float alpha, beta;
};

/// An operand or result by its leading strides, in elements; null where it is not given. The last dimension is
/// contiguous.
struct Strided {
  void* data;
  int64_t stride[3];
};

/// Floats of scratch for each direction and sequence: both sums of all gates, h, c and r * h.
constexpr int64_t scratch_floats(int64_t gates, int64_t hidden) { return (2 * gates + 3) * hidden; }

struct Params {
  Strided x, w, r, bias, initial_h, initial_c, peepholes;
  Strided y, y_h, y_c;
  const int32_t* lengths;
  float* scratch;
  int64_t steps, batch, input, hidden;
  float clip;
  uint32_t reverse;         ///< bit d: direction d runs backwards
  uint32_t coupled;         ///< lstm: forget is 1 - i
  uint32_t reset_after;     ///< gru: the reset gate comes after the product
  Activation functions[6];  ///< three for each direction
};

}  // namespace cermet::recurrent
