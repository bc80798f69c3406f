#include "model/checkpoint/modelslim.hpp"

#include <algorithm>
#include <array>
#include <unordered_set>

#include "base/error.hpp"

namespace cermet {
namespace {

/// Entries that are not tensors and change nothing.
constexpr std::string_view informative_entries[] = {"model_quant_type", "version", "group_size", "metadata",
                                                    "optional"};

struct Kind {
  std::string_view name;
  LinearScheme scheme;
};
constexpr std::array<Kind, 4> kinds{{{"FLOAT", {}},
                                     {"W8A8", {LinearScheme::Weight::int8, LinearScheme::Input::fixed}},
                                     {"W8A8_DYNAMIC", {LinearScheme::Weight::int8, LinearScheme::Input::dynamic}},
                                     {"W8A16", {LinearScheme::Weight::int8, LinearScheme::Input::real}}}};

LinearScheme parse_kind(Json entry) {
  for (const Kind& kind : kinds)
    if (kind.name == entry.as_string()) return kind.scheme;
  entry.unexpected("FLOAT, W8A8, W8A8_DYNAMIC or W8A16", Status::unsupported);
}

/// Of a scheme that require_modelslim_schemes() accepts.
std::string_view kind_name(const LinearScheme& scheme) { return std::ranges::find(kinds, scheme, &Kind::scheme)->name; }

}  // namespace

Quantization read_modelslim(Json root, const ModelConfig& config) {
  Quantization quantization{.format = Quantization::Format::modelslim, .modules = {}};
  std::unordered_set<std::string> linear;
  const std::vector<LinearModule> list = linear_modules(config);
  for (const LinearModule& module : list) linear.insert(module.name);
  for (Json entry : root.as_object()) {
    const std::string_view name = entry.key();
    if (std::ranges::find(informative_entries, name) != std::ranges::end(informative_entries) ||
        entry.is(JsonKind::null))
      continue;
    if (name.find('.') == std::string_view::npos)
      entry.unexpected("no entry of this name, or null", Status::unsupported);
    const LinearScheme scheme = parse_kind(entry);
    if (!name.ends_with(".weight")) continue;  // the tensors beside a weight carry its kind
    const std::string module(name.substr(0, name.size() - std::string_view(".weight").size()));
    if (linear.contains(module)) quantization.modules[module] = scheme;
    else if (scheme != LinearScheme{})
      entry.unexpected("FLOAT, because it is no linear module of this model", Status::unsupported);
  }
  for (const LinearModule& module : list)
    if (!quantization.modules.contains(module.name))
      root.refuse(fmt::format("expected an entry \"{}.weight\", found none", module.name));
  return quantization;
}

void require_modelslim_schemes(std::span<const LinearModule> modules, const SchemeMap& schemes) {
  for (const LinearModule& module : modules) {
    const LinearScheme scheme = scheme_of(schemes, module.name);
    if (scheme != LinearScheme{} && scheme.weight != LinearScheme::Weight::int8)
      fail(Status::unsupported,
           "{}: expected 16bit, w8a16, w8a8_static or w8a8_dynamic, which the ModelSlim descriptor can express, found "
           "{}",
           module.name, name_of(scheme));
  }
}

JsonValue modelslim_description(const std::vector<OutputTensor>& tensors, const SchemeMap& schemes) {
  JsonValue description{{"model_quant_type", ""}};
  std::string_view whole = "W8A16";  // the model's kind: that of its most quantized module
  for (const OutputTensor& tensor : tensors) {
    const std::string& name = tensor.spec.name;
    const LinearScheme scheme = scheme_of(schemes, name.substr(0, name.rfind('.')));
    const std::string_view kind = name.ends_with(".bias") ? "FLOAT" : kind_name(scheme);
    if (scheme.input == LinearScheme::Input::fixed ||
        (scheme.input == LinearScheme::Input::dynamic && whole == "W8A16"))
      whole = kind_name(scheme);
    description[name] = kind;
  }
  description["model_quant_type"] = whole;
  return description;
}

}  // namespace cermet
