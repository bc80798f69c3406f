#include "model/checkpoint/compressed_tensors.hpp"

#include <algorithm>
#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/error.hpp"
#include "model/tokenizer/regex.hpp"

namespace cermet {
namespace {

/// Fields that say nothing about the computation, or what the observers of the tool that made the file were.
constexpr std::string_view informative_fields[] = {"observer",     "observer_kwargs", "scale_dtype", "zp_dtype", "version", "global_compression_ratio",
                                                   "quant_method", "is_mx",           "format"};

bool is_empty(Json field) {
  const bool container = field.is(JsonKind::object) || field.is(JsonKind::array);
  return field.is(JsonKind::null) || (container && field.size() == 0);
}

/// Refuses fields that are neither known nor without effect: what they ask for would not be computed.
void check_fields(Json object, std::initializer_list<std::string_view> known) {
  for (Json field : object.as_object()) {
    const auto is_field = [&](std::string_view name) { return name == field.key(); };
    if (std::ranges::any_of(known, is_field) || std::ranges::any_of(informative_fields, is_field) || is_empty(field)) continue;
    field.unexpected("no such field, or null", Status::unsupported);
  }
}

/// A string that must be one of those listed. Returns its position.
std::size_t one_of(Json field, std::initializer_list<std::string_view> allowed) {
  const std::string_view found = field.as_string();
  std::string list;
  for (std::size_t i = 0; i < allowed.size(); ++i) {
    if (allowed.begin()[i] == found) return i;
    list += fmt::format("{}\"{}\"", i == 0 ? "" : i + 1 == allowed.size() ? " or " : ", ", allowed.begin()[i]);
  }
  field.unexpected(list, Status::unsupported);
}

void expect_flag(Json object, std::string_view key, bool expected, bool absent) {
  const std::optional<Json> field = object.find(key);
  if (field && !field->is(JsonKind::boolean)) field->unexpected(expected ? "true" : "false", Status::unsupported);
  if ((field ? field->as_bool() : absent) == expected) return;
  if (field) field->unexpected(expected ? "true" : "false", Status::unsupported);
  object.refuse(fmt::format("expected {} {}, found none", key, expected), Status::unsupported);
}

/// What weights and inputs have in common. Returns whether they are fp8.
bool parse_arguments(Json arguments) {
  check_fields(arguments, {"num_bits", "type", "symmetric", "strategy", "dynamic", "group_size", "block_structure", "actorder"});
  if (arguments.at("num_bits").as_integer() != 8) arguments.at("num_bits").unexpected("8", Status::unsupported);
  expect_flag(arguments, "symmetric", true, true);
  for (const char* key : {"group_size", "block_structure", "actorder"})
    if (const std::optional<Json> field = arguments.find(key)) field->unexpected("null", Status::unsupported);
  return one_of(arguments.at("type"), {"int", "float"}) == 1;
}

LinearScheme::Weight parse_weights(Json weights) {
  const bool fp8 = parse_arguments(weights);
  one_of(weights.at("strategy"), {"channel", "tensor"});
  expect_flag(weights, "dynamic", false, false);
  return fp8 ? LinearScheme::Weight::fp8 : LinearScheme::Weight::int8;
}

LinearScheme::Input parse_inputs(Json inputs, LinearScheme::Weight weight) {
  const bool fp8 = parse_arguments(inputs);
  if (fp8 != (weight == LinearScheme::Weight::fp8)) inputs.at("type").unexpected("that of the weights", Status::unsupported);
  const std::optional<Json> dynamic = inputs.find("dynamic");
  if (dynamic && !dynamic->is(JsonKind::boolean)) dynamic->unexpected("true or false", Status::unsupported);
  if (dynamic && dynamic->as_bool()) {
    one_of(inputs.at("strategy"), {"token"});
    return LinearScheme::Input::dynamic;
  }
  one_of(inputs.at("strategy"), {"tensor"});
  return LinearScheme::Input::fixed;
}

/// Real files have a handful; each is tried on every module, so that many would make loading quadratic.
constexpr std::size_t max_expressions = 1000;

/// Which of several lists of targets names a module. "re:..." is an expression that must match at the name's start; else a module's own name, or the
/// class of all linear modules.
class Targets {
 public:
  /// Adds the targets of list `value`.
  void add(Json list, std::size_t value) {
    for (Json target : list.as_array()) {
      const std::string_view text = target.as_string();
      if (text.starts_with("re:")) add_expression(target, text.substr(3), value);
      else if (text == "Linear") class_ = class_ ? class_ : value;
      else names_.emplace(text, value);
    }
  }

  /// The list that names the module most precisely: by name, then by an expression, then by class; the first among equals. Nothing where none does.
  std::optional<std::size_t> find(const std::string& module, RegexMemory& memory) const {
    if (const auto named = names_.find(module); named != names_.end()) return named->second;
    for (const auto& [expression, value] : expressions_)
      if (const std::optional<Regex::Match> match = expression.find(module, 0, memory); match && match->begin == 0) return value;
    return class_;
  }

 private:
  void add_expression(Json field, std::string_view text, std::size_t value) {
    if (expressions_.size() == max_expressions) field.refuse(fmt::format("expected at most {} expressions, found more", max_expressions), Status::unsupported);
    try {
      expressions_.emplace_back(Regex(text), value);
    } catch (const Error& error) {
      field.refuse(error.what(), error.status());
    }
  }

  std::unordered_map<std::string, std::size_t> names_;
  std::vector<std::pair<Regex, std::size_t>> expressions_;
  std::optional<std::size_t> class_;
};

struct Group {
  LinearScheme scheme;
  bool packed = false;
};

/// The element type that a format stores must be that of the weights. Returns whether they are packed.
bool check_format(Json format, LinearScheme::Weight weight) {
  const std::size_t which = one_of(format, {"int-quantized", "float-quantized", "naive-quantized", "pack-quantized"});
  if (which == 3 && weight == LinearScheme::Weight::fp8) format.unexpected("\"float-quantized\" for weights of type float");
  if (which == (weight == LinearScheme::Weight::fp8 ? 0u : 1u))
    format.unexpected(weight == LinearScheme::Weight::fp8 ? "\"float-quantized\" for weights of type float" : "\"int-quantized\" for weights of type int");
  return which == 3;
}

Group parse_group(Json group, Json format) {
  check_fields(group, {"targets", "weights", "input_activations", "output_activations"});
  Group parsed;
  parsed.scheme.weight = parse_weights(group.at("weights"));
  parsed.packed = check_format(group.find("format").value_or(format), parsed.scheme.weight);
  if (const std::optional<Json> inputs = group.find("input_activations")) {
    if (parsed.packed) inputs->unexpected("null with packed weights", Status::unsupported);
    parsed.scheme.input = parse_inputs(*inputs, parsed.scheme.weight);
  }
  if (const std::optional<Json> outputs = group.find("output_activations")) outputs->unexpected("null", Status::unsupported);
  return parsed;
}

void check_sparsity(Json root) {
  const std::optional<Json> sparsity = root.find("sparsity_config");
  if (!sparsity || is_empty(*sparsity)) return;
  const std::optional<Json> format = sparsity->as_object().find("format");
  if (!format || format->as_string() != "dense") format.value_or(*sparsity).unexpected("none, or a format \"dense\"", Status::unsupported);
}

constexpr const char* described_version = "0.20.0";  // of compressed-tensors, whose reader the tests run

const char* type_of(const LinearScheme& scheme) { return scheme.weight == LinearScheme::Weight::fp8 ? "float" : "int"; }
const char* format_of(const LinearScheme& scheme) { return scheme.weight == LinearScheme::Weight::fp8 ? "float-quantized" : "int-quantized"; }

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
    const bool number = !part.empty() && std::all_of(part.begin(), part.end(), [](char c) { return c >= '0' && c <= '9'; });
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

Quantization read_compressed_tensors(Json root, const ModelConfig& config) {
  const Json method = root.as_object().at("quant_method");
  if (method.as_string() != "compressed-tensors") method.unexpected("\"compressed-tensors\"", Status::unsupported);
  check_fields(root, {"config_groups", "ignore", "kv_cache_scheme", "quantization_status", "sparsity_config"});
  if (const std::optional<Json> status = root.find("quantization_status")) one_of(*status, {"compressed"});
  if (const std::optional<Json> cache = root.find("kv_cache_scheme")) cache->unexpected("null", Status::unsupported);
  check_sparsity(root);
  const Json format = root.at("format");
  one_of(format, {"int-quantized", "float-quantized", "naive-quantized", "pack-quantized", "mixed-precision"});
  std::vector<Group> groups;
  Targets targets, ignored;
  for (Json group : root.at("config_groups").as_object()) {
    targets.add(group.as_object().at("targets"), groups.size());
    groups.push_back(parse_group(group, format));
  }
  if (const std::optional<Json> list = root.find("ignore")) ignored.add(*list, 0);

  Quantization quantization{.format = Quantization::Format::compressed_tensors, .modules = {}};
  RegexMemory memory;
  for (const std::string& module : linear_module_names(config)) {
    if (ignored.find(module, memory)) continue;
    const std::optional<std::size_t> group = targets.find(module, memory);
    if (!group) continue;
    quantization.modules[module] = groups[*group].scheme;
    if (groups[*group].packed) quantization.packed.insert(module);
  }
  return quantization;
}

// A pattern with open numbers is good where every module that it matches has one scheme: first all numbers are open, then the right one (experts of a layer).
std::vector<std::string> target_patterns(std::span<const LinearModule> modules, const SchemeMap& schemes, const LinearScheme& scheme) {
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

JsonValue compressed_tensors_config(std::span<const LinearModule> modules, const SchemeMap& schemes) {
  std::vector<LinearScheme> used;
  JsonValue ignore = JsonValue::array();
  bool head = false;
  for (const LinearModule& module : modules) {
    const LinearScheme scheme = scheme_of(schemes, module.name);
    head |= module.role == LinearModule::Role::head;
    if (scheme == LinearScheme{}) ignore.push_back(module.name);
    else if (std::find(used.begin(), used.end(), scheme) == used.end()) used.push_back(scheme);
  }
  require(!used.empty(), "policy: expected a scheme other than 16bit for some module, found none");
  if (!head) ignore.push_back("lm_head");  // tied to the embeddings: readers make a module of it nevertheless
  JsonValue groups = JsonValue::object();
  std::set<std::string> formats;
  for (std::size_t i = 0; i < used.size(); ++i) {
    formats.insert(format_of(used[i]));
    groups[fmt::format("group_{}", i)] = {{"targets", used.size() == 1 ? std::vector<std::string>{"Linear"} : target_patterns(modules, schemes, used[i])},
                                          {"weights", arguments(used[i], "channel", false, "mse")},
                                          {"input_activations", input_arguments(used[i])},
                                          {"output_activations", nullptr},
                                          {"format", format_of(used[i])}};
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
