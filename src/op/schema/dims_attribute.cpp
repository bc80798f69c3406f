#include "op/schema/dims_attribute.hpp"

#include "op/schema/dim_text.hpp"
#include "op/schema/infer.hpp"

namespace cermet {

Dims dims_attribute(const Problem& problem, std::string_view name) {
  Dims dims;
  for (const std::string& text : problem.attributes.texts(name)) {
    try {
      dims.push_back(parse_dim(text));
    } catch (const Error&) {
      bad_attribute(problem, name, "dimensions such as \"16\" or \"B*T\"");
    }
    if (dims.back().is_constant() && dims.back().constant() < 0)
      bad_attribute(problem, name, "dimensions of 0 or more");
  }
  return dims;
}

}  // namespace cermet
