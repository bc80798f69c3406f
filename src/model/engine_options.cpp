#include "model/engine_options.hpp"

#include "base/error.hpp"
#include "base/text.hpp"

namespace cermet {
namespace {

std::optional<DType> type_named(std::string_view option, std::string_view name, DTypeSet allowed) {
  if (name.empty()) return std::nullopt;
  const auto dtype = dtype_from_name(name);
  require(dtype && allowed.contains(*dtype), "{}: expected {}, found {}", option, allowed.to_string(), quote(name));
  return dtype;
}

}  // namespace

std::optional<DType> operand_type_named(std::string_view option, std::string_view name) {
  return type_named(option, name, dtypes::real);
}
std::optional<DType> weight_type_named(std::string_view option, std::string_view name) {
  return type_named(option, name, dtypes::real | load_quantized_types);
}
std::optional<DType> head_type_named(std::string_view option, std::string_view name) {
  return type_named(option, name, load_quantized_types);
}
std::optional<DType> cache_type_named(std::string_view option, std::string_view name) {
  return type_named(option, name, load_quantized_types);
}

}  // namespace cermet
