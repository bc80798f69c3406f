// The parts of a manifest, each read by a function of its own.
#pragma once

#include <initializer_list>
#include <string_view>

#include "foreign/manifest.hpp"
#include "io/json_file.hpp"

namespace cermet::foreign {

/// Throws unless every key of an object is one of these.
void require_keys(const Json& object, std::initializer_list<std::string_view> keys);
/// A letter or underscore, then letters, digits and underscores: what a macro, a dimension or a function may be called.
std::string read_identifier(const Json& value);
/// The name of a file in the manifest's own folder.
std::string read_file_name(const Json& value);

class ManifestReader {
 public:
  ManifestReader(const Json& root, std::filesystem::path folder) : root_(root), folder_(std::move(folder)) {}
  Manifest read();

 private:
  // manifest_reader.cpp
  void read_head();
  void read_code();
  void read_instances(const Json& code);
  Instance read_instance(const Json& object, const Json& code) const;
  void read_cases();
  // manifest_operands.cpp
  void read_types();
  void read_operands(std::string_view key, bool results);
  void read_operand(const Json& json, bool is_result);
  void read_dtypes(const Json& json, ManifestOperand& operand) const;
  void read_pattern(const Json& json, ManifestOperand& operand);
  void read_attributes();
  // manifest_launch.cpp
  void read_tile();
  void read_conditions();
  void read_parameters();
  void read_launch();
  void read_defines();
  /// An expression, or an integer; of `size` values where a list is expected.
  Expression read_expression(const Json& value, bool real = false);
  std::vector<Expression> read_shape(std::string_view key);
  std::optional<std::size_t> variable(std::string_view name, std::span<const std::string> arguments, bool real);
  std::optional<std::size_t> called_variable(std::string_view name, std::span<const std::string> arguments);
  std::size_t add(Variable wanted);
  std::size_t operand_named(const Json& name) const;

  Json root_;
  std::filesystem::path folder_;
  Manifest m_;
};

/// Sets entry, threads, shared memory and the compiler's own parameters from Triton's metadata. Throws Error naming the
/// field that does not fit.
void read_triton_metadata(const std::filesystem::path& file, Instance& instance,
                          std::vector<std::string>& architectures);

}  // namespace cermet::foreign
