#include "model/checkpoint/tensor_names.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <utility>

#include "base/error.hpp"
#include "base/text.hpp"
#include "model/arch/architecture.hpp"

namespace cermet {
namespace {

constexpr std::string_view layers_prefix = "model.layers.";

/// Both spellings of a mixture: that of transformers 5, and Mixtral's own.
constexpr std::array<ExpertModules, 2> spellings{
    {{}, {.block = "block_sparse_moe", .gate = "w1", .up = "w3", .down = "w2"}}};

bool is_called(std::string_view name, std::string_view last) {
  return name.ends_with(last) && (name.size() == last.size() || name[name.size() - last.size() - 1] == '.');
}

/// What stands before the only tensor that ends so; nothing where none does or several do.
std::optional<std::string> prefix_of(const std::vector<PlacedTensor>& tensors, std::string_view last) {
  std::optional<std::string> prefix;
  for (const PlacedTensor& placed : tensors) {
    const std::string& name = placed.tensor.name;
    if (!is_called(name, last)) continue;
    if (prefix) return std::nullopt;
    prefix = name.substr(0, name.size() - last.size());
  }
  return prefix;
}

void unwrap(std::vector<PlacedTensor>& tensors) {
  constexpr std::string_view head = "lm_head.weight";
  const std::optional<std::string> model = prefix_of(tensors, "layers.0.input_layernorm.weight"),
                                   top = prefix_of(tensors, head);
  for (PlacedTensor& placed : tensors) {
    std::string& name = placed.tensor.name;
    if (top && name.starts_with(*top + "lm_head.")) name.erase(0, top->size());
    else if (model && name.starts_with(*model)) name.replace(0, model->size(), "model.");
  }
}

/// A name below a layer's mixture: "model.layers.3." and what follows the block's name, which is in either spelling.
struct InMixture {
  std::string_view layer, rest;
};

std::optional<InMixture> in_mixture(std::string_view name) {
  if (!name.starts_with(layers_prefix)) return std::nullopt;
  const std::size_t dot = name.find('.', layers_prefix.size());
  if (dot == std::string_view::npos) return std::nullopt;
  for (const ExpertModules& spelling : spellings) {
    const std::string_view rest = name.substr(dot + 1);
    if (!rest.starts_with(spelling.block) || !rest.substr(spelling.block.size()).starts_with('.')) continue;
    const std::string_view below = rest.substr(spelling.block.size() + 1);
    if (below.starts_with("experts.") || below.starts_with("gate.") || below == "gate")
      return InMixture{name.substr(0, dot + 1), below};
  }
  return std::nullopt;
}

/// The name in one of the spellings; itself where it is no module or tensor of a mixture.
std::string spelled(const std::string& name, const ExpertModules& as) {
  const std::optional<InMixture> place = in_mixture(name);
  if (!place) return name;
  std::string rest(place->rest);
  const std::size_t expert_end = rest.find('.', std::string_view("experts.").size());
  if (rest.starts_with("experts.") && expert_end != std::string::npos) {
    const std::size_t begin = expert_end + 1, end = std::min(rest.find('.', begin), rest.size());
    const std::string module = rest.substr(begin, end - begin);
    for (const ExpertModules& from : spellings)
      for (const auto part : {&ExpertModules::gate, &ExpertModules::up, &ExpertModules::down})
        if (module == from.*part) rest = rest.substr(0, begin) + std::string(as.*part) + rest.substr(end);
  }
  return fmt::format("{}{}.{}", place->layer, as.block, rest);
}

std::int64_t layer_of(std::string_view name) {
  std::int64_t layer = -1;
  if (name.starts_with(layers_prefix))
    std::from_chars(name.data() + layers_prefix.size(), name.data() + name.size(), layer);
  return layer;
}

/// Rows [first, first + rows) of a stack seen as rows of `columns`.
PlacedTensor slice_of(const PlacedTensor& stack, std::string name, std::int64_t first, std::int64_t rows,
                      std::int64_t columns) {
  const std::int64_t row_bytes = columns * byte_size(stack.tensor.dtype);
  PlacedTensor slice{{std::move(name), stack.tensor.dtype, {rows, columns}, stack.tensor.begin + first * row_bytes, 0},
                     stack.file};
  slice.tensor.end = slice.tensor.begin + rows * row_bytes;
  return slice;
}

/// Replaces stacks of experts by each expert's tensors.
void cut_stacks(const ModelConfig& config, std::vector<PlacedTensor>& tensors) {
  std::vector<PlacedTensor> slices;
  std::erase_if(tensors, [&](const PlacedTensor& stack) {
    const std::string& name = stack.tensor.name;
    const bool both = name.ends_with(".experts.gate_up_proj") || name.ends_with(".experts.gate_up_proj.weight");
    const bool down = name.ends_with(".experts.down_proj") || name.ends_with(".experts.down_proj.weight");
    const std::int64_t layer = layer_of(name), inner = config.expert_intermediate_size, hidden = config.hidden_size;
    if ((!both && !down) || layer < 0 || layer >= config.layers || !in_mixture(name)) return false;
    const auto* mixture = find_body<Mixture>(config.decoder.layers[static_cast<std::size_t>(layer)]);
    if (mixture == nullptr) return false;
    const std::vector<std::int64_t> shape =
        both ? std::vector{config.experts, 2 * inner, hidden} : std::vector{config.experts, hidden, inner};
    if (stack.tensor.shape != shape)
      fail(Status::invalid_file, "{}: expected shape {}, found {}", quote(name), shape_to_string(shape),
           shape_to_string(stack.tensor.shape));
    for (std::int64_t expert = 0; expert < config.experts; ++expert) {
      const FeedForward names = mixture->expert(expert);
      if (down) {
        slices.push_back(slice_of(stack, names.down.name + ".weight", expert * hidden, hidden, inner));
        continue;
      }
      slices.push_back(slice_of(stack, names.gate.name + ".weight", 2 * expert * inner, inner, hidden));
      slices.push_back(slice_of(stack, names.up.name + ".weight", (2 * expert + 1) * inner, inner, hidden));
    }
    return true;
  });
  std::ranges::move(slices, std::back_inserter(tensors));
}

void share_head(std::vector<PlacedTensor>& tensors) {
  constexpr std::string_view embeddings = "model.embed_tokens.weight";
  const auto named = [&](std::string_view name) {
    return std::ranges::find(tensors, name, [](const PlacedTensor& t) -> const std::string& { return t.tensor.name; });
  };
  if (const auto head = named("lm_head.weight"); head != tensors.end() && named(embeddings) == tensors.end())
    head->tensor.name = embeddings;
}

}  // namespace

void use_expected_names(const ModelConfig& config, std::vector<PlacedTensor>& tensors) {
  unwrap(tensors);
  if (config.experts > 0) {
    const ExpertModules& own = definition_of(config.architecture).expert_modules;
    for (PlacedTensor& placed : tensors) placed.tensor.name = spelled(placed.tensor.name, own);
    cut_stacks(config, tensors);
  }
  if (config.decoder.is_tied()) share_head(tensors);
}

std::vector<std::string> other_module_names(const ModelConfig& config, const std::string& module) {
  std::vector<std::string> names;
  if (config.experts > 0)
    for (const ExpertModules& spelling : spellings)
      if (std::string name = spelled(module, spelling); name != module) names.push_back(std::move(name));
  return names;
}

}  // namespace cermet
