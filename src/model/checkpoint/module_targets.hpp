// Lists of targets in the descriptors of compressed-tensors, and which modules they name.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "io/json_file.hpp"
#include "model/tokenizer/regex.hpp"

namespace cermet {

/// Which of several lists of targets names a module. "re:..." is an expression of Python that must match at the name's
/// start; else a module's own name, or the class of all linear modules.
class ModuleTargets {
 public:
  /// Adds the targets of list `value`. Throws Error naming the one that is no text, or no expression.
  void add(Json list, std::size_t value);

  /// The list that names the module most precisely: by name, then by an expression, then by class; the first among
  /// equals. Nothing where none does. A module may have several names.
  std::optional<std::size_t> find(const std::vector<std::string>& names, RegexMemory& memory) const;

 private:
  void add_expression(Json field, std::string_view text, std::size_t value);

  std::unordered_map<std::string, std::size_t> names_;
  std::vector<std::pair<Regex, std::size_t>> expressions_;
  std::optional<std::size_t> class_;
};

}  // namespace cermet
