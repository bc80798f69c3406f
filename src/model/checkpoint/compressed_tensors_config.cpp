// The descriptor that the quantizer writes.
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/error.hpp"
#include "model/checkpoint/compressed_tensors.hpp"

namespace cermet {
namespace {

constexpr const char* described_version = "0.20.0";  // of compressed-tensors, whose reader the tests run

const char* type_of(const LinearScheme& scheme) { return scheme.weight == LinearScheme::Weight::fp8 ? "float" : "int"; }
const char* format_of(const LinearScheme& scheme, bool packed) {
  if (packed) return "pack-quantized";
  return scheme.weight == LinearScheme::Weight::fp8 ? "float-quantized" : "int-quantized";
}

JsonValue arguments(const LinearScheme& scheme, const char* strategy, bool dynamic, const JsonValue& observer) {
  return {{"num_bits", 8},        {"type", type_of(scheme)},
          {"symmetric", true},    {"group_size", nullptr},
          {"strategy", strategy}, {"block_structure", nullptr},
          {"dynamic", dynamic},   {"actorder", nullptr},
          {"observer", observer}, {"observer_kwargs", JsonValue::object()}};
}

JsonValue input_arguments(const LinearScheme& scheme) {
  switch (scheme.input) {
    case LinearScheme::Input::real: return nullptr;
    case LinearScheme::Input::dynamic: return arguments(scheme, "token", true, nullptr);
    case LinearScheme::Input::fixed: return arguments(scheme, "tensor", false, "mse");
  }
  return nullptr;
}

/// A module's name as a regular expression. The first `open` of its numbers from the right stand for any number.
std::string pattern_of(const std::string& name, int open) {
  std::vector<std::pair<std::string, bool>> parts;  // text, and whether it is a number between dots
  for (std::size_t begin = 0; begin <= name.size();) {
    const std::size_t end = std::min(name.find('.', begin), name.size());
    std::string part = name.substr(begin, end - begin);
    const bool number =
        !part.empty() && std::all_of(part.begin(), part.end(), [](char c) { return c >= '0' && c <= '9'; });
    parts.emplace_back(std::move(part), number);
    begin = end + 1;
  }
  for (auto part = parts.rbegin(); part != parts.rend(); ++part)
    if (part->second && open-- > 0) part->first = "\\d+";
  std::string pattern = "re:";
  for (std::size_t i = 0; i < parts.size(); ++i) pattern += (i > 0 ? "\\." : "") + parts[i].first;
  return pattern + "$";
}

}  // namespace

// A pattern with open numbers is good where every module that it matches has one scheme: first all numbers are open,
// then the right one (experts of a layer).
std::vector<std::string> target_patterns(std::span<const LinearModule> modules, const SchemeMap& schemes,
                                         const LinearScheme& scheme) {
  std::map<std::string, std::set<std::string_view>> seen;  // schemes under a pattern
  for (const LinearModule& module : modules)
    for (const int open : {2, 1}) seen[pattern_of(module.name, open)].insert(name_of(scheme_of(schemes, module.name)));
  std::vector<std::string> patterns;
  for (const LinearModule& module : modules) {
    if (scheme_of(schemes, module.name) != scheme) continue;
    std::string pattern = pattern_of(module.name, 2);
    if (seen[pattern].size() > 1) pattern = pattern_of(module.name, 1);
    if (seen[pattern].size() > 1) pattern = module.name;
    if (std::find(patterns.begin(), patterns.end(), pattern) == patterns.end()) patterns.push_back(std::move(pattern));
  }
  return patterns;
}

bool is_written_packed(const LinearModule& module, const SchemeMap& schemes) {
  return module.expert >= 0 && module.columns % 4 == 0 &&
         scheme_of(schemes, module.name).weight == LinearScheme::Weight::int8;
}

JsonValue compressed_tensors_config(std::span<const LinearModule> modules, const SchemeMap& schemes,
                                    bool pack_experts) {
  struct Group {
    LinearScheme scheme;
    bool packed;
    SchemeMap members = {};  // its modules alone, so that patterns tell them from others of the same scheme
    bool operator==(const Group& other) const { return scheme == other.scheme && packed == other.packed; }
  };
  std::vector<Group> used;
  JsonValue ignore = JsonValue::array();
  bool head = false;
  for (const LinearModule& module : modules) {
    const LinearScheme scheme = scheme_of(schemes, module.name);
    head |= module.role == LinearModule::Role::head;
    if (scheme == LinearScheme{}) {
      ignore.push_back(module.name);
      continue;
    }
    const Group group{scheme, pack_experts && is_written_packed(module, schemes)};
    auto found = std::find(used.begin(), used.end(), group);
    if (found == used.end()) found = used.insert(used.end(), group);
    found->members.emplace(module.name, scheme);
  }
  require(!used.empty(), "policy: expected a scheme other than 16bit for some module, found none");
  if (!head) ignore.push_back("lm_head");  // tied to the embeddings: readers make a module of it nevertheless
  JsonValue groups = JsonValue::object();
  std::set<std::string> formats;
  for (std::size_t i = 0; i < used.size(); ++i) {
    const char* format = format_of(used[i].scheme, used[i].packed);
    formats.insert(format);
    groups[fmt::format("group_{}", i)] = {
        {"targets", used.size() == 1 ? std::vector<std::string>{"Linear"}
                                     : target_patterns(modules, used[i].members, used[i].scheme)},
        {"weights", arguments(used[i].scheme, "channel", false, "mse")},
        {"input_activations", input_arguments(used[i].scheme)},
        {"output_activations", nullptr},
        {"format", format}};
  }
  return {{"quant_method", "compressed-tensors"},
          {"format", formats.size() == 1 ? *formats.begin() : "mixed-precision"},
          {"quantization_status", "compressed"},
          {"config_groups", std::move(groups)},
          {"ignore", std::move(ignore)},
          {"kv_cache_scheme", nullptr},
          {"global_compression_ratio", nullptr},
          {"sparsity_config", JsonValue::object()},
          {"transform_config", JsonValue::object()},
          {"version", described_version}};
}

}  // namespace cermet
