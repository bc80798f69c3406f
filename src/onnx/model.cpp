#include "onnx/model.hpp"

#include <algorithm>
#include <cstring>

#include "base/error.hpp"
#include "io/posix_file.hpp"

namespace cermet::onnx {

Tensor::Tensor(std::string name, TensorType type, std::string bytes)
    : name_(std::move(name)), type_(std::move(type)), held_(std::make_shared<const std::string>(std::move(bytes))) {}

Tensor::Tensor(std::string name, TensorType type, std::shared_ptr<const PosixFile> file, std::int64_t offset)
    : name_(std::move(name)), type_(std::move(type)), file_(std::move(file)), offset_(offset) {}

std::int64_t Tensor::bytes() const { return type_.bytes().constant(); }

void Tensor::read(std::span<std::byte> destination, std::int64_t from) const {
  CERMET_ASSERT(from >= 0 && from + static_cast<std::int64_t>(destination.size()) <= bytes());
  if (destination.empty()) return;
  if (!file_) {
    std::memcpy(destination.data(), held_->data() + from, destination.size());
  } else if (const std::size_t found = file_->read(offset_ + from, destination); found != destination.size()) {
    fail(Status::invalid_file, "tensor '{}': {}: expected {} bytes at {}, found {}", name_, file_->path().string(),
         destination.size(), offset_ + from, found);
  }
}

TensorData Tensor::data() const {
  std::vector<std::byte> copy(static_cast<std::size_t>(bytes()));
  read(copy);
  return {type_, copy};
}

const FunctionDef* Model::function(const Node& node) const {
  const auto found = std::ranges::find_if(
      functions, [&](const FunctionDef& f) { return f.name == node.op && f.domain == node.domain; });
  return found == functions.end() ? nullptr : &*found;
}

}  // namespace cermet::onnx
