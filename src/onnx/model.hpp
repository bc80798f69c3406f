// What an ONNX file says, checked: nodes, attributes, tensors and subgraphs, without the file format. Source: the ONNX
// IR specification.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/tensor_data.hpp"

namespace cermet {
class PosixFile;
}

namespace cermet::onnx {

/// A tensor of the file: its elements are held, or read from a file beside the model when they are needed.
class Tensor {
 public:
  Tensor() = default;
  Tensor(std::string name, TensorType type, std::string bytes);
  Tensor(std::string name, TensorType type, std::shared_ptr<const PosixFile> file, std::int64_t offset);

  const std::string& name() const { return name_; }
  const TensorType& type() const { return type_; }
  std::int64_t bytes() const;
  int bits() const { return bits_; }  ///< of elements that the file packs, which are held in bytes; else 0
  void set_bits(int bits) { bits_ = bits; }
  /// Copies elements, those from byte `from` on; all where `destination` has bytes() bytes. Throws Error naming tensor
  /// and file where they cannot be read. Several threads may share one object.
  void read(std::span<std::byte> destination, std::int64_t from = 0) const;
  TensorData data() const;

 private:
  std::string name_;
  TensorType type_;
  std::shared_ptr<const std::string> held_;
  std::shared_ptr<const PosixFile> file_;
  std::int64_t offset_ = 0;
  int bits_ = 0;
};

/// A dimension as the file declares it: a number, a name, or nothing.
struct DeclaredDim {
  std::optional<std::int64_t> value;
  std::string name;
};

/// An input or a result of a graph.
struct ValueInfo {
  std::string name;
  std::optional<DType> dtype;                    ///< nothing where the file says none
  std::optional<std::vector<DeclaredDim>> dims;  ///< nothing where the rank is not declared
};

struct GraphDef;

/// Lists of tensors, graphs and types, which no operator that is imported has, are refused while reading.
using Attribute = std::variant<std::int64_t, double, std::string, std::vector<std::int64_t>, std::vector<double>,
                               std::vector<std::string>, Tensor, std::shared_ptr<const GraphDef>>;

struct Node {
  std::string op, domain, name;              ///< domain "" for ONNX's own
  std::vector<std::string> inputs, outputs;  ///< "" where an optional one is not given
  std::map<std::string, Attribute> attributes;
  std::map<std::string, std::string> references;  ///< in a function: attributes that stand for one of the call
};

struct GraphDef {
  std::string name;
  std::vector<Node> nodes;  ///< in an order in which they can run
  std::vector<Tensor> initializers;
  std::vector<ValueInfo> inputs, outputs;
};

/// A function of the model: nodes in place of an operator.
struct FunctionDef {
  std::string name, domain;
  std::vector<std::string> inputs, outputs;
  std::vector<Node> nodes;
  std::map<std::string, std::int64_t> opsets;
  std::map<std::string, Attribute> defaults = {};  ///< of attributes that a call may leave out
};

struct Model {
  std::filesystem::path path;
  std::string producer;
  std::int64_t ir_version = 0;
  std::map<std::string, std::int64_t> opsets;  ///< by domain
  std::shared_ptr<const GraphDef> graph;
  std::vector<FunctionDef> functions;
  std::int64_t tensor_bytes = 0;  ///< of all tensors, those of attributes and of graphs within included

  const FunctionDef* function(const Node& node) const;
};

/// Reads and checks a file. Throws Error(invalid_file) naming what breaks the format (a cycle, a tensor whose bytes are
/// not its type's, data outside its folder, ...), Error(unsupported) naming element types and attributes that nothing
/// here takes, before any memory that the file only claims to fill is taken.
Model read_model(const std::filesystem::path& path);

}  // namespace cermet::onnx
