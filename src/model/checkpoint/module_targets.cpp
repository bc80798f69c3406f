#include "model/checkpoint/module_targets.hpp"

#include "base/error.hpp"

namespace cermet {
namespace {

/// Real files have a handful; each is tried on every module, so that many would make loading quadratic.
constexpr std::size_t max_expressions = 1000;

}  // namespace

void ModuleTargets::add(Json list, std::size_t value) {
  for (Json target : list.as_array()) {
    const std::string_view text = target.as_string();
    if (text.starts_with("re:")) add_expression(target, text.substr(3), value);
    else if (text == "Linear") class_ = class_.value_or(value);
    else names_.emplace(text, value);
  }
}

std::optional<std::size_t> ModuleTargets::find(const std::vector<std::string>& names, RegexMemory& memory) const {
  for (const std::string& name : names)
    if (const auto named = names_.find(name); named != names_.end()) return named->second;
  for (const auto& [expression, value] : expressions_)
    for (const std::string& name : names)
      if (const std::optional<Regex::Match> match = expression.find(name, 0, memory); match && match->begin == 0)
        return value;
  return class_;
}

void ModuleTargets::add_expression(Json field, std::string_view text, std::size_t value) {
  if (expressions_.size() == max_expressions)
    field.refuse(fmt::format("expected at most {} expressions, found more", max_expressions), Status::unsupported);
  try {
    expressions_.emplace_back(Regex::python(text), value);
  } catch (const Error& error) {
    field.refuse(error.what(), error.status());
  }
}

}  // namespace cermet
