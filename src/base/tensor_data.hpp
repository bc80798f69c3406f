// The elements of a small tensor, held by what describes a computation: an attribute, a constant of a graph.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/tensor.hpp"

namespace cermet {

/// A dense tensor whose elements never change; copies share them.
class TensorData {
 public:
  /// Throws Error(invalid_argument) where the dimensions are not constants or take other than so many bytes.
  TensorData(TensorType type, std::span<const std::byte> bytes);
  template <class T>
  static TensorData of(TensorType type, const std::vector<T>& elements) {
    return {std::move(type), std::as_bytes(std::span(elements))};
  }

  const TensorType& type() const { return type_; }
  std::span<const std::byte> bytes() const { return *bytes_; }
  /// By type and bytes: a NaN equals itself, 0 and -0 differ.
  friend bool operator==(const TensorData& a, const TensorData& b);
  std::string to_string() const;  ///< "tensor f32[2] 0x0000803f00000040": the bytes in their order in memory

 private:
  TensorType type_;
  std::shared_ptr<const std::vector<std::byte>> bytes_;
};

}  // namespace cermet
