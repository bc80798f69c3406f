#include "model/config.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <variant>

#include "base/checked.hpp"
#include "base/error.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "model/arch/architecture.hpp"
#include "model/arch/fields.hpp"
#include "model/arch/rope.hpp"
#include "model/checkpoint/model_folder.hpp"

namespace cermet {
namespace {

constexpr JsonLimits config_limits{
    .max_bytes = std::size_t{4} << 20, .max_values = std::size_t{1} << 18, .max_depth = 32};
constexpr std::int64_t max_parameters = std::int64_t{1} << 42;
constexpr std::int64_t max_experts_in_all = std::int64_t{1} << 18;  // over all layers

/// A field that changes the computation in a way that nothing here implements, and the value at which it changes
/// nothing. Null, false and what is empty never do.
struct UnsupportedField {
  std::string_view key;
  std::variant<std::monostate, bool, double> neutral = {};
};

constexpr UnsupportedField unsupported_fields[] = {
    {"is_encoder_decoder", false},
    {"use_bidirectional_attention", false},
    {"add_cross_attention", false},
    {"alibi", false},
    {"use_alibi", false},
    {"attn_logit_softcapping"},
    {"final_logit_softcapping"},
    {"logit_softcapping"},
    {"query_pre_attn_scalar"},
    {"attention_multiplier"},
    {"embedding_multiplier", 1.0},
    {"residual_multiplier", 1.0},
    {"logits_scaling", 1.0},
    {"logit_scale", 1.0},
    {"attention_chunk_size"},
    {"attn_temperature_tuning", false},
    {"no_rope_layers"},
    {"rope_interleave", false},
    {"rope_interleaved", false},
    {"q_lora_rank"},
    {"kv_lora_rank"},
    {"qk_layernorm", false},
    {"shared_expert_intermediate_size", 0.0},
    {"n_shared_experts", 0.0},
    {"num_shared_experts", 0.0},
    {"n_group", 1.0},
    {"routed_scaling_factor", 1.0},
    {"first_k_dense_replace", 0.0},
    {"mlp_layer_types"},
    {"per_layer_config"},
};

bool is_neutral(Json field, const UnsupportedField& row) {
  if (field.is(JsonKind::boolean) && !field.as_bool()) return true;
  if ((field.is(JsonKind::array) || field.is(JsonKind::object)) && field.size() == 0) return true;
  if (const bool* flag = std::get_if<bool>(&row.neutral))
    return field.is(JsonKind::boolean) && field.as_bool() == *flag;
  const bool number = field.is(JsonKind::integer) || field.is(JsonKind::number);
  if (const double* value = std::get_if<double>(&row.neutral)) return number && field.as_number() == *value;
  return false;
}

void refuse_quantization(Json root) {
  for (const std::string_view key : {"quantization_config", "compression_config"}) {
    const std::optional<Json> quantization = root.find(key);
    if (!quantization) continue;
    const std::optional<Json> method = quantization->as_object().find("quant_method");
    method.value_or(*quantization).unexpected("none", Status::unsupported);
  }
}

void refuse_unsupported_fields(Json root, const ArchitectureDefinition& definition) {
  for (const UnsupportedField& row : unsupported_fields) {
    const std::optional<Json> field = root.find(row.key);
    if (!field || is_neutral(*field, row) || std::ranges::count(definition.fields, row.key) > 0) continue;
    std::string expected = "null";
    if (const bool* flag = std::get_if<bool>(&row.neutral)) expected = *flag ? "true" : "false";
    if (const double* value = std::get_if<double>(&row.neutral)) expected = fmt::format("{:g}", *value);
    field->unexpected(expected, Status::unsupported);
  }
}

/// The first checkpoints of Llama say LLaMAForCausalLM; those saved from a base model say LlamaModel.
bool is_same_class(std::string_view known, std::string_view name) {
  constexpr std::string_view with_head = "ForCausalLM", without = "Model";
  if (known.ends_with(with_head) && name.ends_with(without)) {
    known.remove_suffix(with_head.size());
    name.remove_suffix(without.size());
  }
  return std::ranges::equal(known, name,
                            [](unsigned char a, unsigned char b) { return std::tolower(a) == std::tolower(b); });
}

const ArchitectureDefinition& parse_architecture(Json root) {
  const auto names = [](std::string_view ArchitectureDefinition::*name) {
    std::vector<std::string_view> all;
    for (const ArchitectureDefinition* definition : all_architectures()) all.push_back(definition->*name);
    return fmt::format("one of {}", fmt::join(all, ", "));
  };
  const auto find = [](std::string_view name,
                       std::string_view ArchitectureDefinition::*field) -> const ArchitectureDefinition* {
    for (const ArchitectureDefinition* definition : all_architectures()) {
      if (is_same_class(definition->*field, name)) return definition;
    }
    return nullptr;
  };
  const std::optional<Json> model_type = root.find("model_type");
  const std::optional<Json> classes = root.find("architectures");
  if (!classes || classes->as_array().size() == 0) {
    if (!model_type && classes) classes->unexpected(names(&ArchitectureDefinition::class_name));
    const Json type = model_type ? *model_type : root.at("architectures");
    const ArchitectureDefinition* definition = find(type.as_string(), &ArchitectureDefinition::model_type);
    if (definition == nullptr) type.unexpected(names(&ArchitectureDefinition::model_type), Status::unsupported);
    return *definition;
  }
  const Json name = classes->at(std::size_t{0});
  const ArchitectureDefinition* definition = find(name.as_string(), &ArchitectureDefinition::class_name);
  if (definition == nullptr) name.unexpected(names(&ArchitectureDefinition::class_name), Status::unsupported);
  if (model_type && model_type->as_string() != definition->model_type) {
    model_type->unexpected(fmt::format("\"{}\", the type of {}", definition->model_type, definition->class_name));
  }
  return *definition;
}

/// What matters of it here is a common name; weights are loaded as their files have them.
DType parse_dtype(Json root) {
  std::optional<Json> field = root.find("dtype");
  if (!field) field = root.find("torch_dtype");
  if (!field || field->is(JsonKind::object)) return DType::f32;  // of a class of several parts: each part's own
  std::string_view name = field->as_string();
  if (name.starts_with("torch.")) name.remove_prefix(std::string_view("torch.").size());
  if (name == "bfloat16") return DType::bf16;
  if (name == "float16" || name == "half") return DType::f16;
  for (const std::string_view as_stored : {"float32", "float", "auto", "float64", "double"})
    if (name == as_stored) return DType::f32;
  field->unexpected("float32, bfloat16 or float16", Status::unsupported);
}

void parse_attention_sizes(Json root, const ArchitectureDefinition& definition, ModelConfig& config) {
  config.heads = config_field::size(root, "num_attention_heads");
  const bool absent = !config_field::is_there(root, "num_key_value_heads");
  const std::int64_t fallback = absent && definition.kv_heads > 0 ? definition.kv_heads : config.heads;
  config.kv_heads = config_field::optional_size(root, "num_key_value_heads").value_or(fallback);
  if (config.heads % config.kv_heads != 0) {
    const std::string expected = fmt::format("a divisor of num_attention_heads {}", config.heads);
    if (absent)
      root.refuse(fmt::format("num_key_value_heads: expected {}, found none, which means {} in this architecture",
                              expected, fallback));
    root.at("num_key_value_heads").unexpected(expected);
  }
  if (const std::optional<std::int64_t> head_dim = config_field::optional_size(root, "head_dim")) {
    config.head_dim = *head_dim;
  } else if (definition.head_dim > 0) {
    config.head_dim = definition.head_dim;
  } else {
    if (config.hidden_size % config.heads != 0)
      root.at("num_attention_heads").unexpected(fmt::format("a divisor of hidden_size {}", config.hidden_size));
    config.head_dim = config.hidden_size / config.heads;
  }
  const std::optional<std::int64_t> width = checked_mul(config.heads, config.head_dim);
  if (!width || *width > config_field::max_size) {
    root.refuse(fmt::format("expected num_attention_heads * head_dim up to {}, found {} * {}", config_field::max_size,
                            config.heads, config.head_dim));
  }
}

/// Where `layer_types` is present it must say what was understood.
void check_layer_types(Json root, const ModelConfig& config) {
  const std::optional<Json> types = root.find("layer_types");
  if (!types) return;
  if (static_cast<std::int64_t>(types->as_array().size()) != config.layers)
    types->unexpected(fmt::format("an array of num_hidden_layers {}", config.layers));
  std::size_t layer = 0;
  for (Json type : *types) {
    const auto* attention = find_body<Attention>(config.decoder.layers[layer++]);
    const std::string_view understood = attention && attention->window > 0 ? "sliding_attention" : "full_attention";
    if (type.as_string() != understood)
      type.unexpected(fmt::format("\"{}\" (architecture, use_sliding_window, sliding_window)", understood),
                      Status::unsupported);
  }
}

/// Elements of all tensors; refuses sizes that no machine holds before anything is allocated.
void check_total_size(Json root, const ModelConfig& config) {
  const auto refuse = [&] {
    root.refuse(fmt::format("expected sizes of at most {} parameters in total, found more", max_parameters));
  };
  std::int64_t experts = 0, total = 0;
  for (const Layer& layer : config.decoder.layers)
    if (const auto* mixture = find_body<Mixture>(layer)) experts += mixture->experts();
  if (experts > max_experts_in_all)
    root.refuse(fmt::format("expected at most {} experts over all layers, found {}", max_experts_in_all, experts));
  const auto add = [&](std::int64_t count, std::initializer_list<Linear> linears) {
    for (const Linear& linear : linears) {
      const std::optional<std::int64_t> elements = checked_mul(linear.rows, linear.columns);
      const std::optional<std::int64_t> all = elements ? checked_mul(*elements, count) : elements;
      if (!all || *all > max_parameters - total) refuse();
      total += *all;
    }
  };
  add(config.decoder.is_tied() ? 1 : 2, {config.decoder.embedding});
  for (const Layer& layer : config.decoder.layers) {
    if (const auto* a = find_body<Attention>(layer)) add(1, {a->q, a->k, a->v, a->o});
    if (const auto* f = find_body<FeedForward>(layer)) add(1, {f->gate, f->up, f->down});
    if (const auto* m = find_body<Mixture>(layer)) add(m->experts(), {m->each.gate, m->each.up, m->each.down});
  }
}

/// An id of the vocabulary. Others never come up, and tiny or pruned models keep those of the model that they were made
/// from.
std::optional<std::int32_t> token_id(Json field, std::int64_t vocab_size) {
  const std::int64_t id = field.as_integer();
  return id >= 0 && id < vocab_size ? std::optional(static_cast<std::int32_t>(id)) : std::nullopt;
}

/// `eos_token_id`: an id, a list of ids or nothing. Leaves what is known where the file has none of the vocabulary.
void parse_eos(Json root, ModelConfig& config) {
  const std::optional<Json> field = root.find("eos_token_id");
  if (!field) return;
  std::vector<std::int32_t> ids;
  const auto add = [&](Json item) {
    const std::optional<std::int32_t> id = token_id(item, config.vocab_size);
    if (id && std::find(ids.begin(), ids.end(), *id) == ids.end()) ids.push_back(*id);
  };
  if (field->is(JsonKind::array))
    for (Json item : *field) add(item);
  else add(*field);
  if (!ids.empty()) config.eos_ids = std::move(ids);
}

void parse_special_tokens(Json root, ModelConfig& config) {
  if (const std::optional<Json> bos = root.find("bos_token_id")) config.bos_id = token_id(*bos, config.vocab_size);
  parse_eos(root, config);
}

/// Only random weights are drawn with it, so that any value is fine in a checkpoint.
double initializer_range(Json root) {
  const std::optional<Json> field = root.find("initializer_range");
  try {
    return field ? std::clamp(field->as_number(), 0.0, 1000.0) : 0.02;
  } catch (const Error&) {
    return 0.02;
  }
}

ModelConfig parse_config(Json root) {
  const ArchitectureDefinition& definition = parse_architecture(root);
  refuse_unsupported_fields(root, definition);
  ModelConfig config;
  config.architecture = definition.id;
  config.architecture_name = definition.class_name;
  config.vocab_size = config_field::size(root, "vocab_size");
  config.hidden_size = config_field::size(root, "hidden_size");
  config.layers = config_field::size(root, "num_hidden_layers", config_field::max_layers);
  parse_attention_sizes(root, definition, config);
  config.intermediate_size = config_field::optional_size(root, "intermediate_size").value_or(0);
  config.max_position_embeddings =
      config_field::optional_whole_size(root, "max_position_embeddings").value_or(definition.max_position_embeddings);
  config.rms_norm_eps = config_field::number(root, "rms_norm_eps", definition.rms_norm_eps, 1e-20, 1);
  config.initializer_range = initializer_range(root);
  config.dtype = parse_dtype(root);
  config.rope = parse_rope(root, definition, config);
  if (const std::optional<Json> activation = root.find("hidden_act");
      activation && std::ranges::count(definition.fields, "hidden_act") == 0 && activation->as_string() != "silu" &&
      activation->as_string() != "swish") {
    activation->unexpected("silu", Status::unsupported);
  }
  DecoderModel& decoder = config.decoder;
  decoder.embedding = {"model.embed_tokens", config.vocab_size, config.hidden_size};
  decoder.norm = {"model.norm", config.hidden_size, config.rms_norm_eps};
  decoder.head = decoder.embedding;
  if (!config_field::flag(root, "tie_word_embeddings", definition.tie_word_embeddings)) decoder.head.name = "lm_head";
  definition.configure(root, config);
  check_layer_types(root, config);
  if (std::ranges::any_of(decoder.layers, [](const Layer& layer) { return find_body<FeedForward>(layer) != nullptr; }))
    config_field::size(root, "intermediate_size");
  check_total_size(root, config);
  parse_special_tokens(root, config);
  return config;
}

}  // namespace

ModelConfig load_config_file(const std::filesystem::path& file) {
  const JsonDocument document = JsonDocument::read(file, config_limits);
  ModelConfig config = parse_config(document.root());
  config.initializer_range = config_field::number(document.root(), "initializer_range", 0.02, 0, 1000);
  refuse_quantization(document.root());
  return config;
}

ModelConfig load_config(const std::filesystem::path& folder) {
  require_model_folder(folder);
  std::error_code ignored;
  const std::filesystem::path file = folder / "config.json", generation = folder / "generation_config.json";
  if (!std::filesystem::exists(file, ignored))
    fail(Status::io, "{}: expected a folder with config.json, found none in it", folder.string());
  ModelConfig config = parse_config(JsonDocument::read(file, config_limits).root());
  if (!std::filesystem::exists(generation, ignored)) return config;
  try {
    parse_eos(JsonDocument::read(generation, config_limits).root().as_object(), config);
  } catch (const Error& error) {
    log().warn("{}; generation settings are ignored", error.what());
  }
  return config;
}

}  // namespace cermet
