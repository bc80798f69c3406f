#include "base/tensor_data.hpp"

#include "base/error.hpp"

namespace cermet {

TensorData::TensorData(TensorType type, std::span<const std::byte> bytes) : type_(std::move(type)) {
  if (!type_.is_constant())
    fail(Status::invalid_argument, "tensor: expected constant dimensions, found {}", type_.to_string());
  const std::int64_t expected = dense_bytes(type_.dtype, cermet::bind(type_.dims, {}));
  if (static_cast<std::size_t>(expected) != bytes.size())
    fail(Status::invalid_argument, "tensor {}: expected {} bytes, found {}", type_.to_string(), expected, bytes.size());
  bytes_ = std::make_shared<const std::vector<std::byte>>(bytes.begin(), bytes.end());
}

bool operator==(const TensorData& a, const TensorData& b) {
  return a.type_ == b.type_ && (a.bytes_ == b.bytes_ || *a.bytes_ == *b.bytes_);
}

std::string TensorData::to_string() const {
  static constexpr char digits[] = "0123456789abcdef";
  std::string text = fmt::format("tensor {} 0x", type_.to_string());
  for (const std::byte b : *bytes_) {
    text += digits[std::to_integer<unsigned>(b) >> 4u];
    text += digits[std::to_integer<unsigned>(b) & 15u];
  }
  return text;
}

}  // namespace cermet
