// What a kernel from outside says of itself: which calls of which operator it takes, how its code is launched, and in
// which configurations. docs/formats.md describes the file.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "foreign/expression.hpp"
#include "op/schema/operator.hpp"

namespace cermet::foreign {

enum class CodeKind : std::uint8_t { cuda, cubin, ptx, triton, shared_object };
std::string_view name_of(CodeKind kind);
/// Whether it runs on a GPU.
inline bool is_gpu(CodeKind kind) { return kind != CodeKind::shared_object; }

/// One dimension of an operand.
struct PatternDim {
  std::int32_t name = -1;     ///< place among the manifest's dimensions; -1: a number
  std::int64_t constant = 0;  ///< the number
  bool leading = false;       ///< all dimensions before those that follow, as one: "M..."
};

/// An operand or a result of the operator that the kernel takes.
struct ManifestOperand {
  std::string name;
  bool is_result = false;
  std::size_t index = 0;      ///< among the operands, or the results, of the schema
  std::int32_t type = -1;     ///< place among the manifest's types; -1: `dtypes` alone says which
  std::vector<DType> dtypes;  ///< accepted ones
  std::vector<PatternDim> dims;
  bool any_strides = false;    ///< of dimensions but the last; otherwise dense
  std::int64_t alignment = 1;  ///< bytes: of its address, and of the distance of rows
  bool optional = false;       ///< may not be given: its address is null then
};

/// Element types that vary together.
struct ManifestType {
  std::string name;
  std::vector<DType> dtypes;
};

/// What a variable of the manifest's expressions is.
struct Variable {
  enum class Kind : std::uint8_t { dim, tile, attribute, stride, has, size };
  Kind kind = Kind::dim;
  std::string name = {};    ///< of a dimension, tile field, attribute
  std::size_t operand = 0;  ///< place among `operands`; of size: among `types`
  int axis = 0;             ///< of stride: in the operand's pattern
  bool is_real = false;     ///< an attribute that is no integer
};

struct Parameter {
  enum class Kind : std::uint8_t { pointer, workspace, i32, u32, i64, u64, f32, f64 };
  Kind kind = Kind::pointer;
  std::size_t operand = 0;  ///< of a pointer: place among `operands`
  Expression value = {};    ///< of a number
};
std::uint32_t bytes_of(Parameter::Kind kind);

struct TileField {
  std::string name;
  std::vector<std::int64_t> values;
};

/// A macro of CUDA source: a number, or by element type a text.
struct Define {
  std::string name;
  Expression value = {};
  std::int32_t type = -1;
  std::map<DType, std::string> texts = {};
};

/// Code for some values of the tile's fields; the others are parameters or macros.
struct Instance {
  std::map<std::string, std::int64_t, std::less<>> tile;
  std::string file;  ///< a name beside the manifest
  std::string entry;
  std::string metadata = {};                          ///< of Triton: its file
  std::optional<std::int64_t> threads, shared_bytes;  ///< of Triton
  int scratch_pointers = 0;                           ///< of Triton: parameters that its compiler added
};

struct Attribute {
  std::string name;
  std::vector<AttributeValue> accepted;  ///< empty: any
};

struct Manifest {
  std::string name, summary, text;
  const OpDefinition* op = nullptr;
  CodeKind kind = CodeKind::cuda;
  std::vector<std::string> architectures, options;
  std::vector<Define> defines;
  std::vector<ManifestType> types;
  std::vector<ManifestOperand> operands;
  std::vector<Attribute> attributes;
  std::vector<TileField> tile;
  std::vector<Variable> variables;  ///< dimensions first, then fields of the tile, then what expressions use
  std::size_t dims = 0;             ///< how many of the variables are dimensions
  std::vector<Expression> conditions;
  std::vector<Parameter> parameters;
  std::vector<Expression> grid, block;
  Expression shared_bytes{0}, workspace_bytes{0};
  std::int64_t cluster = 1;
  std::vector<Instance> instances;
  std::vector<std::map<std::string, std::int64_t, std::less<>>> case_dims;  ///< of cases beside the operator's own

  static constexpr std::size_t most_variables = 96, most_parameters = 64, most_configs = 256;
  static constexpr std::int64_t most_file_bytes = std::int64_t{64} << 20, most_manifest_bytes = std::int64_t{1} << 20;

  /// Names of the files beside the manifest that belong to it.
  std::vector<std::string> files() const;
};

/// Reads and checks a manifest and, of Triton, its metadata. Throws Error that names file and field, what was expected
/// and what was found.
Manifest read_manifest(const std::filesystem::path& file);

}  // namespace cermet::foreign
