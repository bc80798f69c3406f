// A product of fixed sizes by a primitive of oneDNN, over weights in the order that it prefers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/tensor.hpp"

namespace cermet::cpu {

/// sums[rows, columns] = x[rows, length] times w[columns, length] transposed, all dense: f32 and bf16 with sums of f32,
/// i8 with sums of i32.
struct OneDnnSizes {
  DType type;
  std::int64_t rows, columns, length;
};

/// Made on one thread, runs on any, and on several at a time; each product runs on the thread that asks for it. oneDNN
/// allocates what little a call needs.
class OneDnnProduct {
 public:
  /// Throws Error where oneDNN has no such product. The order of the weights depends on type, columns and length alone.
  explicit OneDnnProduct(const OneDnnSizes& sizes);
  ~OneDnnProduct();
  OneDnnProduct(const OneDnnProduct&) = delete;
  OneDnnProduct& operator=(const OneDnnProduct&) = delete;

  std::int64_t weight_bytes() const;
  std::int64_t scratch_bytes() const;
  /// Packs w[columns, length], whose rows are `step` elements apart.
  void pack(const std::byte* w, std::int64_t step, std::byte* packed) const;
  /// Generates the product's code, which takes milliseconds; before the first run.
  void prepare();
  void run(const std::byte* x, const std::byte* packed, std::byte* sums, std::byte* scratch) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace cermet::cpu
