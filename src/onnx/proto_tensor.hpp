// Tensors of an ONNX file.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "onnx/model.hpp"

namespace onnx {
class TensorProto;
}

namespace cermet::onnx {

/// Files beside a model, each opened once.
class ExternalFiles {
 public:
  explicit ExternalFiles(std::filesystem::path model) : model_(std::move(model)) {}
  /// A file by its path relative to the model's folder, which it must not leave. Throws Error naming the tensor.
  std::shared_ptr<const PosixFile> open(const std::string& location, const std::string& tensor);

 private:
  std::filesystem::path model_;
  std::map<std::string, std::shared_ptr<const PosixFile>> files_;
};

/// Element type of a TensorProto.DataType; throws Error(unsupported) naming `what` and the type.
DType dtype_of(std::int64_t code, const std::string& what);
/// Elements that a message lacks because they are left in the model's file.
struct ElementsInFile {
  std::shared_ptr<const PosixFile> file = {};  ///< null: the message has them
  std::int64_t offset = 0, bytes = 0;
};
/// Takes the elements out of the message. Throws Error naming the tensor where they are not what its type says.
Tensor take_tensor(::onnx::TensorProto& proto, ExternalFiles& files, const ElementsInFile& left = {});

}  // namespace cermet::onnx
