#include "select/tuning_key.hpp"

#include <algorithm>
#include <bit>
#include <functional>

#include "op/schema/dim_text.hpp"

namespace cermet {
namespace {

/// Symbols of a region, each with its number's name.
class Numbered {
 public:
  /// The dimension with its symbols by their numbers.
  Dim operator()(const Dim& dim) {
    if (dim.is_constant()) return dim;
    const std::string text = dim.to_string();
    std::string renamed;
    for (std::size_t at = 0; at < text.size();) {
      std::size_t end = at;
      while (end < text.size() && (std::isalnum(static_cast<unsigned char>(text[end])) || text[end] == '_')) ++end;
      if (end == at) {
        renamed += text[at++];
        continue;
      }
      const std::string word = text.substr(at, end - at);
      const bool is_number = word[0] >= '0' && word[0] <= '9', is_function = end < text.size() && text[end] == '(';
      renamed += is_number || is_function ? word : name_of(word);
      at = end;
    }
    return parse_dim(renamed);
  }
  const std::vector<std::string>& names() const { return names_; }

 private:
  std::string name_of(const std::string& symbol) {
    const auto found = std::ranges::find(names_, symbol);
    const auto number = found - names_.begin();
    if (found == names_.end()) names_.push_back(symbol);
    return fmt::format("s{}", number);
  }
  std::vector<std::string> names_;  ///< by number
};

}  // namespace

std::size_t hash_of(const TuningKey& key) {
  const std::hash<std::string> hash;
  return (hash(key.region) * 31 + hash(key.device)) * 31 + hash(key.versions);
}

std::int64_t size_bucket(std::int64_t maximum) {
  constexpr std::uint64_t largest = std::uint64_t{1} << 62;
  return static_cast<std::int64_t>(std::min(
      std::bit_ceil(std::min(static_cast<std::uint64_t>(std::max<std::int64_t>(maximum, 1)), largest)), largest));
}

std::string constants_text(const Region& region) {
  std::string text;
  for (std::size_t i = 0; i < region.operands.size(); ++i)
    if (region.has(i) && region.is_constant(i)) text += fmt::format("; constant ${}", i);
  return text;
}

std::set<Symbol> symbols_of(const Region& region) {
  std::set<Symbol> symbols;
  for (const RegionNode& node : region.nodes)
    for (const auto& type : node.problem.inputs)
      if (type)
        for (const Dim& dim : type->dims)
          for (const Symbol& symbol : dim.symbols()) symbols.insert(symbol);
  return symbols;
}

std::string tuning_text(const Region& region) {
  if (symbols_of(region).empty()) return region.to_string() + constants_text(region);
  Region numbered = region;
  Numbered number;
  for (RegionNode& node : numbered.nodes)
    for (std::optional<TensorType>& type : node.problem.inputs)
      if (type) std::ranges::transform(type->dims, type->dims.begin(), std::ref(number));
  std::string text = numbered.to_string() + constants_text(region);
  for (std::size_t i = 0; i < number.names().size(); ++i)
    text += fmt::format("; s{} <= {}", i, size_bucket(region.maximum()[Symbol(number.names()[i])]));
  return text;
}

TuningKey tuning_key(const Region& region, const DeviceIdentity& device) {
  return {tuning_text(region), device.device, device.versions};
}

}  // namespace cermet
