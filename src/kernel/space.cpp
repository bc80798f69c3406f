#include "kernel/space.hpp"

#include <algorithm>
#include <map>

#include "base/error.hpp"

namespace cermet {
namespace {

std::string values_text(const std::vector<std::int64_t>& values) {
  return values.size() == 1 ? fmt::format("{}", values[0]) : fmt::format("one of {}", fmt::join(values, ", "));
}

/// A number below `bound`, each with the same probability, whatever the library: numbers past the last multiple of the
/// bound are drawn again.
std::uint64_t below(std::uint64_t bound, std::mt19937_64& random) {
  const std::uint64_t excess = (std::mt19937_64::max() % bound + 1) % bound;
  std::uint64_t drawn = random();
  while (drawn > std::mt19937_64::max() - excess) drawn = random();
  return drawn % bound;
}

/// The fields that configurations of a list have, with all their values.
std::vector<ConfigField> fields_of(const std::vector<Config>& list) {
  std::vector<std::string> names;
  std::map<std::string, std::vector<std::int64_t>> values;
  for (const Config& config : list)
    for (const auto& [name, value] : config.fields()) {
      if (!values.contains(name)) names.push_back(name);
      values[name].push_back(value);
    }
  std::vector<ConfigField> fields;
  for (const std::string& name : names) fields.push_back(ConfigField::set(name, values[name]));
  return fields;
}

}  // namespace

ConfigField ConfigField::fixed(std::string name, std::int64_t value) {
  return {std::move(name), {value}, fmt::format("{}", value)};
}

ConfigField ConfigField::range(std::string name, std::int64_t first, std::int64_t last, std::int64_t step) {
  CERMET_ASSERT(step > 0);
  ConfigField field{std::move(name),
                    {},
                    fmt::format("{} to {}{}", first, last, step == 1 ? "" : fmt::format(" in steps of {}", step))};
  for (std::int64_t value = first; value <= last; value += step) field.values.push_back(value);
  return field;
}

ConfigField ConfigField::powers(std::string name, std::int64_t first, std::int64_t last) {
  CERMET_ASSERT(first > 0 && (first & (first - 1)) == 0);
  ConfigField field{std::move(name), {}, fmt::format("powers of two from {} to {}", first, last)};
  for (std::int64_t value = first; value <= last; value *= 2) field.values.push_back(value);
  return field;
}

ConfigField ConfigField::set(std::string name, std::vector<std::int64_t> values) {
  std::ranges::sort(values);
  values.erase(std::unique(values.begin(), values.end()), values.end());
  std::string text = values_text(values);
  return {std::move(name), std::move(values), std::move(text)};
}

ConfigField ConfigField::with_usual(std::int64_t value) && {
  usual = value;
  if (const auto place = std::ranges::lower_bound(values, value); place == values.end() || *place != value) {
    values.insert(place, value);
    text = values_text(values);
  }
  return std::move(*this);
}

ConfigSpace ConfigSpace::listing(std::vector<Config> configs) {
  ConfigSpace space;
  space.listed_ = true;
  std::erase_if(configs, [](const Config& config) { return config.empty(); });
  space.fields_ = fields_of(configs);
  space.list_ = std::move(configs);
  return space;
}

ConfigSpace& ConfigSpace::add(ConfigField field) {
  CERMET_ASSERT(!listed_);
  CERMET_ASSERT(std::ranges::none_of(fields_, [&](const ConfigField& other) { return other.name == field.name; }));
  fields_.push_back(std::move(field));
  return *this;
}

ConfigSpace& ConfigSpace::constrain(std::string text, std::function<bool(const Config&)> holds) {
  CERMET_ASSERT(!listed_);
  constraints_.push_back({std::move(text), std::move(holds)});
  return *this;
}

std::int64_t ConfigSpace::combinations() const {
  if (listed_) return static_cast<std::int64_t>(list_.size());
  if (fields_.empty()) return 0;
  std::int64_t count = 1;
  for (const ConfigField& field : fields_) count *= static_cast<std::int64_t>(field.values.size());
  return count;
}

Config ConfigSpace::combination(std::int64_t index) const {
  std::vector<std::int64_t> chosen(fields_.size());
  for (std::size_t f = fields_.size(); f-- > 0;) {
    const auto size = static_cast<std::int64_t>(fields_[f].values.size());
    chosen[f] = fields_[f].values[static_cast<std::size_t>(index % size)];
    index /= size;
  }
  Config config;
  for (std::size_t f = 0; f < fields_.size(); ++f) config.set(fields_[f].name, chosen[f]);
  return config;
}

bool ConfigSpace::is_valid(const Config& complete) const {
  return std::ranges::all_of(constraints_,
                             [&](const ConfigConstraint& constraint) { return constraint.holds(complete); });
}

Config ConfigSpace::canonical(const Config& complete) const {
  if (listed_) return complete;
  Config config;
  for (const ConfigField& field : fields_)
    if (const std::int64_t value = complete.at(field.name); field.usual != value) config.set(field.name, value);
  return config;
}

Config ConfigSpace::complete(const Config& config) const {
  if (listed_) return config;
  Config complete;
  for (const ConfigField& field : fields_) {
    const auto value = config.find(field.name);
    CERMET_ASSERT(value || field.usual);
    complete.set(field.name, value ? *value : *field.usual);
  }
  return complete;
}

std::vector<Config> ConfigSpace::points() const {
  if (listed_) return list_;
  std::vector<Config> points;
  for (std::int64_t i = 0; i < combinations(); ++i)
    if (const Config complete = combination(i); is_valid(complete)) points.push_back(canonical(complete));
  return points;
}

std::optional<Config> ConfigSpace::sample(std::mt19937_64& random) const {
  constexpr int most_tries = 256;  // then points are rare, and are counted instead
  const std::int64_t count = combinations();
  if (count == 0) return std::nullopt;
  if (listed_) return list_[below(static_cast<std::uint64_t>(count), random)];
  for (int i = 0; i < most_tries; ++i)
    if (const Config complete =
            combination(static_cast<std::int64_t>(below(static_cast<std::uint64_t>(count), random)));
        is_valid(complete))
      return canonical(complete);
  const std::vector<Config> all = points();
  return all.empty() ? std::nullopt : std::optional(all[below(all.size(), random)]);
}

std::optional<std::string> ConfigSpace::fault_of(const Config& config) const {
  if (config.empty()) return std::nullopt;
  std::vector<std::string_view> names;
  for (const ConfigField& field : fields_) names.push_back(field.name);
  if (names.empty())
    return fmt::format("expected default, because it runs in one way here, found {}", config.to_string());
  for (const auto& [name, value] : config.fields()) {
    const auto field = std::ranges::find(fields_, name, &ConfigField::name);
    if (field == fields_.end()) return fmt::format("expected a field of {}, found {}", fmt::join(names, ", "), name);
    if (std::ranges::find(field->values, value) == field->values.end())
      return fmt::format("{}: expected {}, found {}", name, field->text, value);
  }
  if (listed_)
    return std::ranges::find(list_, config) != list_.end()
               ? std::nullopt
               : std::optional(fmt::format("expected another combination than {}", config.to_string()));
  for (const ConfigField& field : fields_)
    if (!config.find(field.name) && !field.usual)
      return fmt::format("{}: expected {}, found nothing", field.name, field.text);
  const Config whole = complete(config);
  for (const ConfigConstraint& constraint : constraints_)
    if (!constraint.holds(whole)) return fmt::format("expected that {}, found {}", constraint.text, config.to_string());
  if (const Config form = canonical(whole); form != config)
    return fmt::format("expected {}, found {}", form.to_string(), config.to_string());
  return std::nullopt;
}

}  // namespace cermet
