// Operands of cases of products.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "op/schema/case.hpp"

namespace cermet {

inline CaseOperand real(DType t, std::vector<Dim> dims, std::int64_t padding = 0, bool constant = false) {
  return {{t, std::move(dims)}, normal(), padding, constant};
}
inline CaseOperand weight(DType t, std::vector<Dim> dims, std::int64_t padding = 0) {
  return {{t, std::move(dims)}, t == DType::i8 ? integers(-128, 127) : normal(), padding, true};
}
inline CaseOperand codes(std::vector<Dim> dims, bool constant = false) {
  return {{DType::i8, std::move(dims)}, integers(-128, 127), 0, constant};
}
inline CaseOperand scale(std::vector<Dim> dims) { return {{DType::f32, std::move(dims)}, uniform(0.001, 0.02)}; }
inline Attributes to(std::string_view dtype) { return {{"out_dtype", std::string(dtype)}}; }

}  // namespace cermet
