#include <algorithm>
#include <initializer_list>
#include <optional>
#include <unordered_map>

#include "model/checkpoint/quantization_formats.hpp"
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

}  // namespace cermet
