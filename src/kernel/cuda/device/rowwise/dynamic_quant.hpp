// Configuration and parameters of dynamic_quant.
#pragma once

#include "kernel/cuda/device/dtype.hpp"
#include "kernel/cuda/device/rowwise/row_params.hpp"

namespace cermet::dynamic_quant {

/// Which row of smooth[E, K] a row takes.
enum class Index : uint8_t { none, ids, offsets };
constexpr const char* name_of(Index index) {
  switch (index) {
    case Index::none: return "cermet::dynamic_quant::Index::none";
    case Index::ids: return "cermet::dynamic_quant::Index::ids";
    case Index::offsets: return "cermet::dynamic_quant::Index::offsets";
  }
  return "";
}

/// Passes of a per-tensor scale: find the range, then quantize.
enum class Pass : uint8_t { only, range, quantize };
constexpr const char* name_of(Pass pass) {
  switch (pass) {
    case Pass::only: return "cermet::dynamic_quant::Pass::only";
    case Pass::range: return "cermet::dynamic_quant::Pass::range";
    case Pass::quantize: return "cermet::dynamic_quant::Pass::quantize";
  }
  return "";
}

struct Config {
  RowLayout layout = {};
  DType x = {};
  bool smooths = false;
  DType smooth = {};
  Index indexed = Index::none;
  DType index = {};
  Pass pass = Pass::only;

  template <class Visit>
  constexpr void fields(Visit&& visit) const {
    visit("layout", layout), visit("x", x), visit("smooths", smooths), visit("smooth", smooth);
    visit("indexed", indexed), visit("index", index), visit("pass", pass);
  }
};

struct Params {
  RowOperand x;
  QuantizedRows out;
  RowDims dims;
  uint32_t rows;
  int32_t length;
  const void* smooth;  ///< [length], or [experts, length] with rows smooth_step elements apart
  int64_t smooth_step;
  RowOperand index;            ///< ids of the rows
  const void* offsets;         ///< [experts + 1], of dense row numbers
  int64_t first_row, experts;  ///< dense number of row 0
  uint32_t* range;             ///< per-tensor scale: bits of its high and low end
};

}  // namespace cermet::dynamic_quant
