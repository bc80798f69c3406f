// Index operands (int32 or int64) read in dense order, whatever their leading strides.
#pragma once

#include <algorithm>
#include <cstring>

#include "base/tensor.hpp"

namespace cermet::cpu {

class IndexList {
 public:
  explicit IndexList(const TensorView& view) : rows_(view), wide_(view.dtype == DType::i64) {}
  std::int64_t count() const { return rows_.count() * rows_.length(); }
  /// Index at dense position i, 0 <= i < count().
  std::int64_t operator[](std::int64_t i) const {
    const std::byte* row = rows_.row(i / rows_.length());
    const std::int64_t column = i % rows_.length();
    if (wide_) return reinterpret_cast<const std::int64_t*>(row)[column];
    return reinterpret_cast<const std::int32_t*>(row)[column];
  }

 private:
  Rows rows_;
  bool wide_;
};

}  // namespace cermet::cpu
