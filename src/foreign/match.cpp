#include "foreign/match.hpp"

#include <algorithm>
#include <charconv>

namespace cermet::foreign {
namespace {

/// Between what a dimension lies for symbols from 0 to their maximum.
Interval bounds_of(const Dim& dim, const SymbolValues& maximum) {
  if (dim.is_constant()) return Interval::exactly(dim.constant());
  SymbolRanges ranges;
  for (const Symbol& symbol : dim.symbols()) ranges.push_back({symbol, {0, maximum[symbol]}});
  const DimRange range = dim.bounds(ranges);
  return {std::max<std::int64_t>(range.least, 0), std::min(range.greatest, Interval::any)};
}

class Matcher {
 public:
  Matcher(const Manifest& manifest, const Problem& problem) : m_(manifest), p_(problem) {
    result_.types.assign(m_.types.size(), DType::f32);
    result_.values.assign(m_.variables.size(), Interval{});
    result_.reals.assign(m_.variables.size(), 0);
    dims_.resize(m_.dims);
    typed_.assign(m_.types.size(), false);
  }

  Match match() {
    for (std::size_t i = 0; i < p_.inputs.size() && !result_.reason; ++i) match_input(i);
    for (const ManifestOperand& operand : m_.operands)
      if (operand.is_result && !result_.reason) match_type(operand, p_.outputs[operand.index]);
    if (!result_.reason) match_attributes();
    if (!result_.reason) fill_values();
    return std::move(result_);
  }

 private:
  void decline(std::string reason) { result_.reason = std::move(reason); }

  void match_input(std::size_t i) {
    const auto known =
        std::ranges::find_if(m_.operands, [&](const ManifestOperand& o) { return !o.is_result && o.index == i; });
    if (known == m_.operands.end()) {
      if (p_.has(i)) decline(fmt::format("takes no {}", p_.input_name(i)));
    } else if (!p_.has(i)) {
      if (!known->optional) decline(fmt::format("needs {}", known->name));
    } else {
      match_type(*known, p_.input(i));
    }
  }

  void match_type(const ManifestOperand& operand, const TensorType& type) {
    const bool is_accepted = std::ranges::find(operand.dtypes, type.dtype) != operand.dtypes.end();
    if (!is_accepted) return decline(fmt::format("takes no {} of {}", operand.name, name_of(type.dtype)));
    if (operand.type >= 0) {
      const auto t = static_cast<std::size_t>(operand.type);
      if (typed_[t] && result_.types[t] != type.dtype)
        return decline(fmt::format("takes {} of {} where others have that type, found {}", operand.name,
                                   name_of(result_.types[t]), name_of(type.dtype)));
      result_.types[t] = type.dtype;
      typed_[t] = true;
    }
    match_dims(operand, type.dims);
  }

  void match_dims(const ManifestOperand& operand, const Dims& dims) {
    const bool leads = !operand.dims.empty() && operand.dims.front().leading;
    const std::size_t own = operand.dims.size() - (leads ? 1 : 0);
    if (leads ? dims.size() < own : dims.size() != own)
      return decline(fmt::format("takes {} of {}{} dimensions, found {}", operand.name, leads ? "at least " : "", own,
                                 dims.size()));
    const std::size_t before = dims.size() - own;
    for (std::size_t a = 0; a < operand.dims.size() && !result_.reason; ++a) {
      const PatternDim& pattern = operand.dims[a];
      const Dim found = pattern.leading
                            ? product(Dims(dims.begin(), dims.begin() + static_cast<std::ptrdiff_t>(before)))
                            : dims[before + a - (leads ? 1 : 0)];
      match_dim(operand, pattern, found);
    }
  }

  void match_dim(const ManifestOperand& operand, const PatternDim& pattern, const Dim& found) {
    if (pattern.name < 0) {
      if (found != Dim(pattern.constant))
        decline(fmt::format("takes {} with a dimension of {}, found {}", operand.name, pattern.constant,
                            found.to_string()));
      return;
    }
    std::optional<Dim>& known = dims_[static_cast<std::size_t>(pattern.name)];
    if (known && *known != found)
      return decline(fmt::format("takes {} with {} = {}, as before, found {}", operand.name,
                                 m_.variables[static_cast<std::size_t>(pattern.name)].name, known->to_string(),
                                 found.to_string()));
    known = found;
  }

  void match_attributes() {
    for (const AttributeSpec& spec : definition(p_).attributes) {
      const AttributeValue* const found = p_.attributes.find(spec.name);
      CERMET_ASSERT(found != nullptr);
      const auto known = std::ranges::find(m_.attributes, spec.name, &Attribute::name);
      const bool is_read = std::ranges::any_of(
          m_.variables, [&](const Variable& v) { return v.kind == Variable::Kind::attribute && v.name == spec.name; });
      if (spec.name == "out_dtype") continue;  // which the results' element types say
      if (known == m_.attributes.end()
              ? !is_read && *found != spec.fallback
              : !known->accepted.empty() && std::ranges::find(known->accepted, *found) == known->accepted.end())
        return decline(fmt::format("takes no {} = {}", spec.name, to_string(*found)));
    }
  }

  void fill_values() {
    for (std::size_t v = 0; v < m_.variables.size(); ++v) {
      const Variable& variable = m_.variables[v];
      switch (variable.kind) {
        case Variable::Kind::dim:
          if (dims_[v]) result_.values[v] = bounds_of(*dims_[v], p_.maximum);
          break;
        case Variable::Kind::tile: break;
        case Variable::Kind::attribute: fill_attribute(v); break;
        case Variable::Kind::stride: result_.values[v] = {0, Interval::any}; break;
        case Variable::Kind::has: {
          const ManifestOperand& operand = m_.operands[variable.operand];
          result_.values[v] = Interval::exactly(operand.is_result || p_.has(operand.index));
          break;
        }
        case Variable::Kind::size:
          result_.values[v] = Interval::exactly(byte_size(result_.types[variable.operand]));
          break;
      }
    }
  }

  void fill_attribute(std::size_t v) {
    const AttributeValue& value = *p_.attributes.find(m_.variables[v].name);
    if (const auto* const number = std::get_if<double>(&value)) result_.reals[v] = *number;
    else if (const auto* const flag = std::get_if<bool>(&value)) result_.values[v] = Interval::exactly(*flag);
    else result_.values[v] = Interval::exactly(std::get<std::int64_t>(value));
  }

  const Manifest& m_;
  const Problem& p_;
  Match result_;
  std::vector<std::optional<Dim>> dims_;
  std::vector<bool> typed_;
};

int number_in(std::string_view text) {
  int number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

/// The first condition that does not hold for all values; null where all do.
const Expression* broken_condition(const Manifest& manifest, std::span<const Interval> values) {
  const auto found =
      std::ranges::find_if(manifest.conditions, [&](const Expression& e) { return !e.bounds(values).always(); });
  return found == manifest.conditions.end() ? nullptr : &*found;
}

/// "N % 8 == 0 with N = 12", or for sizes that vary "M <= 64 with M from 0 to 128".
std::string condition_text(const Manifest& manifest, const Expression& condition, std::span<const Interval> values) {
  std::string text;
  for (std::size_t v = 0; v < manifest.variables.size(); ++v) {
    const Variable& variable = manifest.variables[v];
    if (!condition.uses(v) || variable.name.empty()) continue;
    const Interval& value = values[v];
    text += fmt::format("{}{}", text.empty() ? " with " : ", ", variable.name);
    text +=
        value.is_exact() ? fmt::format(" = {}", value.least) : fmt::format(" from {} to {}", value.least, value.most);
  }
  return fmt::format("needs {}{}", condition.text(), text);
}

}  // namespace

Match match(const Manifest& manifest, const Region& region) { return Matcher(manifest, region.problem()).match(); }

std::vector<Interval> with_config(const Manifest& manifest, const Match& match, const Config& config) {
  std::vector<Interval> values = match.values;
  for (std::size_t v = 0; v < values.size(); ++v)
    if (manifest.variables[v].kind == Variable::Kind::tile)
      values[v] = Interval::exactly(config.at(manifest.variables[v].name));
  return values;
}

const Instance* instance_of(const Manifest& manifest, const Config& config) {
  const auto fits = [&](const Instance& instance) {
    return std::ranges::all_of(instance.tile,
                               [&](const auto& field) { return config.find(field.first) == field.second; });
  };
  const auto found = std::ranges::find_if(manifest.instances, fits);
  return found == manifest.instances.end() ? nullptr : &*found;
}

std::vector<Config> configs(const Manifest& manifest, const Match& match, std::string* why) {
  std::vector<Config> list;
  std::vector<std::size_t> at(manifest.tile.size(), 0);
  for (bool more = true; more && list.size() < Manifest::most_configs;) {
    std::string text;
    for (std::size_t f = 0; f < at.size(); ++f)
      text += fmt::format(" {}={}", manifest.tile[f].name, manifest.tile[f].values[at[f]]);
    const Config config = at.empty() ? Config() : parse_config(text);
    const std::vector<Interval> values = with_config(manifest, match, config);
    const Expression* const broken = broken_condition(manifest, values);
    if (!broken && instance_of(manifest, config)) list.push_back(config);
    else if (why && why->empty())
      *why = broken ? condition_text(manifest, *broken, values) : fmt::format("has no code for {}", config.to_string());
    more = false;
    for (std::size_t f = at.size(); f-- > 0 && !more;) {  // the last field turns fastest
      more = ++at[f] < manifest.tile[f].values.size();
      if (!more) at[f] = 0;
    }
  }
  return list;
}

std::int64_t known_value(const Expression& expression, std::span<const Interval> values, std::string_view what) {
  const Interval bounds = expression.bounds(values);
  if (!bounds.is_exact())
    fail(Status::unsupported, "{} ({}) is not known before the first run: from {} to {}", what, expression.text(),
         bounds.least, bounds.most);
  return bounds.least;
}

bool runs_on(std::span<const std::string> architectures, int compute_capability) {
  return std::ranges::any_of(architectures, [&](const std::string& text) {
    const int number = number_in(std::string_view(text).substr(text.find('_') + 1));
    if (text.ends_with('a')) return number == compute_capability;
    return number <= compute_capability && (text.starts_with("compute_") || number / 10 == compute_capability / 10);
  });
}

}  // namespace cermet::foreign
