#include "model/checkpoint/compressed_tensors.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <initializer_list>
#include <optional>

#include "base/error.hpp"
#include "model/checkpoint/module_targets.hpp"
#include "model/checkpoint/tensor_names.hpp"

namespace cermet {
namespace {

/// Fields that say nothing about the computation, or what the observers of the tool that made the file were.
constexpr std::string_view informative_fields[] = {
    "observer",     "observer_kwargs", "scale_dtype", "zp_dtype",      "version", "global_compression_ratio",
    "quant_method", "is_mx",           "format",      "run_compressed"};

bool is_empty(Json field) {
  const bool container = field.is(JsonKind::object) || field.is(JsonKind::array);
  return field.is(JsonKind::null) || (container && field.size() == 0);
}

/// Refuses fields that are neither known nor without effect: what they ask for would not be computed.
void check_fields(Json object, std::initializer_list<std::string_view> known) {
  for (Json field : object.as_object()) {
    const auto is_field = [&](std::string_view name) { return name == field.key(); };
    if (std::ranges::any_of(known, is_field) || std::ranges::any_of(informative_fields, is_field) || is_empty(field))
      continue;
    field.unexpected("no such field, or null", Status::unsupported);
  }
}

/// A string that must be one of those listed, in any case. Returns its position.
std::size_t one_of(Json field, std::initializer_list<std::string_view> allowed) {
  std::string found(field.as_string());
  std::ranges::transform(found, found.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  std::string list;
  for (std::size_t i = 0; i < allowed.size(); ++i) {
    if (allowed.begin()[i] == found) return i;
    list += fmt::format("{}\"{}\"", i == 0 ? "" : i + 1 == allowed.size() ? " or " : ", ", allowed.begin()[i]);
  }
  field.unexpected(list, Status::unsupported);
}

void expect_flag(Json object, std::string_view key, bool expected) {
  const std::optional<Json> field = object.find(key);
  if (field && !(field->is(JsonKind::boolean) && field->as_bool() == expected))
    field->unexpected(expected ? "true" : "false", Status::unsupported);
}

/// Scales of a matrix, or of inputs. Without a strategy the group's size says: none, of the whole tensor; -1, of each
/// channel.
enum class Strategy : std::uint8_t { tensor, channel, token };

Strategy parse_strategy(Json arguments, Strategy other) {
  const std::optional<Json> size = arguments.find("group_size");
  if (size && size->as_integer() != -1) size->unexpected("null", Status::unsupported);
  const std::optional<Json> strategy = arguments.find("strategy");
  if (!strategy) return size ? Strategy::channel : Strategy::tensor;
  if (other == Strategy::channel) return one_of(*strategy, {"channel", "tensor"}) == 0 ? other : Strategy::tensor;
  return one_of(*strategy, {"token", "tensor"}) == 0 ? other : Strategy::tensor;
}

/// What weights and inputs have in common. Returns whether they are fp8.
bool parse_arguments(Json arguments) {
  check_fields(arguments,
               {"num_bits", "type", "symmetric", "strategy", "dynamic", "group_size", "block_structure", "actorder"});
  if (const std::optional<Json> bits = arguments.find("num_bits"); bits && bits->as_integer() != 8)
    bits->unexpected("8", Status::unsupported);
  expect_flag(arguments, "symmetric", true);
  if (const std::optional<Json> block = arguments.find("block_structure"))
    block->unexpected("null", Status::unsupported);
  // The order in which columns were rounded, which is over; "group" would permute them.
  const std::optional<Json> order = arguments.find("actorder");
  if (order && !(order->is(JsonKind::boolean) && !order->as_bool())) one_of(*order, {"weight", "static"});
  const std::optional<Json> type = arguments.find("type");
  return type && one_of(*type, {"int", "float"}) == 1;
}

LinearScheme::Weight parse_weights(Json weights) {
  const bool fp8 = parse_arguments(weights);
  parse_strategy(weights, Strategy::channel);
  expect_flag(weights, "dynamic", false);
  return fp8 ? LinearScheme::Weight::fp8 : LinearScheme::Weight::int8;
}

/// Dynamic inputs get a scale for each token also where the descriptor asks for one for all tokens of a pass: no value
/// is rounded more coarsely then, and none depends on its neighbours.
LinearScheme::Input parse_inputs(Json inputs, LinearScheme::Weight weight) {
  const bool fp8 = parse_arguments(inputs);
  if (fp8 != (weight == LinearScheme::Weight::fp8))
    inputs.find("type").value_or(inputs).unexpected("that of the weights", Status::unsupported);
  const std::optional<Json> dynamic = inputs.find("dynamic");
  if (dynamic && !dynamic->is(JsonKind::boolean)) dynamic->unexpected("true or false", Status::unsupported);
  const Strategy strategy = parse_strategy(inputs, Strategy::token);
  if (dynamic && dynamic->as_bool()) return LinearScheme::Input::dynamic;
  if (strategy != Strategy::tensor)
    inputs.find("strategy").value_or(inputs).unexpected("\"tensor\"", Status::unsupported);
  return LinearScheme::Input::fixed;
}

struct Group {
  LinearScheme scheme;
  bool packed = false;
};

/// Schemes that a group may name in place of describing them: the group's value is its list of targets then.
struct Preset {
  std::string_view name;
  LinearScheme scheme;
};
constexpr std::array<Preset, 5> presets{{{"w8a8", {LinearScheme::Weight::int8, LinearScheme::Input::dynamic}},
                                         {"int8", {LinearScheme::Weight::int8, LinearScheme::Input::dynamic}},
                                         {"w8a16", {LinearScheme::Weight::int8, LinearScheme::Input::real}},
                                         {"fp8", {LinearScheme::Weight::fp8, LinearScheme::Input::fixed}},
                                         {"fp8_dynamic", {LinearScheme::Weight::fp8, LinearScheme::Input::dynamic}}}};

Group preset_group(Json targets) {
  std::string name(targets.key());
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (const Preset& preset : presets)
    if (preset.name == name) return {preset.scheme};
  targets.unexpected("an object, or the name of a scheme of 8 bits (W8A8, W8A16, FP8, FP8_DYNAMIC)",
                     Status::unsupported);
}

/// The element type that a format stores must be that of the weights. Returns whether they are packed. Without a
/// format, or with that of models that are not compressed, the stored tensors say.
bool check_format(std::optional<Json> format, LinearScheme::Weight weight) {
  if (!format) return false;
  const std::size_t which = one_of(
      *format, {"int-quantized", "float-quantized", "naive-quantized", "pack-quantized", "dense", "mixed-precision"});
  const bool fp8 = weight == LinearScheme::Weight::fp8;
  if (which == 3 && fp8) format->unexpected("\"float-quantized\" for weights of type float");
  if (which == (fp8 ? 0u : 1u))
    format->unexpected(fp8 ? "\"float-quantized\" for weights of type float"
                           : "\"int-quantized\" for weights of type int");
  return which == 3;
}

Group parse_group(Json group, std::optional<Json> format) {
  if (group.is(JsonKind::array)) return preset_group(group);
  check_fields(group, {"targets", "weights", "input_activations", "output_activations"});
  Group parsed;
  parsed.scheme.weight = parse_weights(group.at("weights"));
  const std::optional<Json> own = group.find("format");
  parsed.packed = check_format(own ? own : format, parsed.scheme.weight);
  if (const std::optional<Json> inputs = group.find("input_activations"); inputs && !is_empty(*inputs))
    parsed.scheme.input = parse_inputs(*inputs, parsed.scheme.weight);
  if (const std::optional<Json> outputs = group.find("output_activations"); outputs && !is_empty(*outputs))
    outputs->unexpected("null", Status::unsupported);
  return parsed;
}

void check_sparsity(Json root) {
  const std::optional<Json> sparsity = root.find("sparsity_config");
  if (!sparsity || is_empty(*sparsity)) return;
  const std::optional<Json> format = sparsity->as_object().find("format");
  if (!format || format->as_string() != "dense")
    format.value_or(*sparsity).unexpected("none, or a format \"dense\"", Status::unsupported);
}

}  // namespace

Quantization read_compressed_tensors(Json root, const ModelConfig& config) {
  if (const std::optional<Json> inner =
          root.as_object().find("quantization_config")) {  // beside sparsity_config, as older tools nested them
    check_sparsity(root);
    return read_compressed_tensors(*inner, config);
  }
  if (const std::optional<Json> method = root.find("quant_method")) {
    const std::string_view name = method->as_string();
    if (name != "compressed-tensors" && name != "sparseml")
      method->unexpected("\"compressed-tensors\"", Status::unsupported);
  }
  check_fields(root, {"config_groups", "ignore", "kv_cache_scheme", "quantization_status", "sparsity_config"});
  if (const std::optional<Json> status = root.find("quantization_status"))
    one_of(*status, {"compressed", "frozen", "initialized", "calibration", "decompressed"});
  if (const std::optional<Json> cache = root.find("kv_cache_scheme"); cache && !is_empty(*cache))
    cache->unexpected("null", Status::unsupported);
  check_sparsity(root);
  const std::optional<Json> format = root.find("format");
  std::vector<Group> groups;
  ModuleTargets targets, ignored;
  for (Json group : root.at("config_groups").as_object()) {
    targets.add(group.is(JsonKind::array) ? group : group.as_object().at("targets"), groups.size());
    groups.push_back(parse_group(group, format));
  }
  if (format)
    check_format(format,
                 format->as_string() == "float-quantized" ? LinearScheme::Weight::fp8 : LinearScheme::Weight::int8);
  if (const std::optional<Json> list = root.find("ignore")) ignored.add(*list, 0);

  Quantization quantization{.format = Quantization::Format::compressed_tensors, .modules = {}};
  RegexMemory memory;
  for (const LinearModule& linear : linear_modules(config)) {
    const std::string& module = linear.name;
    std::vector<std::string> names = other_module_names(config, module);
    names.insert(names.begin(), module);
    if (ignored.find(names, memory)) continue;
    const std::optional<std::size_t> group = targets.find(names, memory);
    if (!group) continue;
    quantization.modules[module] = groups[*group].scheme;
    if (groups[*group].packed) quantization.packed.insert(module);
  }
  return quantization;
}

}  // namespace cermet
