// Models behind the C ABI: an engine, the tokenizer beside its checkpoint, and the caller's buffers.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <filesystem>

#include "api/guard.hpp"
#include "api/handle.hpp"
#include "api/model.hpp"
#include "api/options.hpp"
#include "base/text.hpp"
#include "io/json_value.hpp"
#include "model/engine_options.hpp"

namespace cermet::api {
namespace {

EngineOptions engine_options(const cermet_model_options& given) {
  EngineOptions options;
  const OptionTable& table = engine_option_table();
  for (const auto& [name, text] : {std::pair("dtype", given.dtype),
                                   {"weights", given.weights},
                                   {"kv_cache", given.kv_cache},
                                   {"head", given.head},
                                   {"super_kernel", given.super_kernel},
                                   {"super_kernel_options", given.super_kernel_options}})
    if (text) set_option(table.at(name), &options, name, text);
  options.max_context = given.max_context;
  options.max_sequences = given.max_sequences;
  options.max_batch_tokens = given.max_batch_tokens;
  options.steps_per_launch = given.steps_per_launch;
  options.compact_weights = given.compact_weights != 0;
  options.rope_frequencies = given.stored_rope_frequencies ? RopeFrequencies::stored : RopeFrequencies::exact;
  if (given.options) set_options(table, &options, given.options);
  check(options.fusion.super_kernel);
  return options;
}

/// The rows that C and Python have.
JsonValue rows_of(const OptionTable& table) {
  JsonValue rows = JsonValue::array();
  for (const OptionRow& row : table) {
    if (row.use != OptionUse::everywhere) continue;
    const OptionText text = text_of(row, table);
    rows.push_back({{"name", row.name},
                    {"type", text.type},
                    {"names", row.names()},
                    {"least", row.values.least},
                    {"values", text.values},
                    {"default", text.fallback},
                    {"help", row.help}});
  }
  return rows;
}

std::string info_of(const cermet_model& model) {
  const ModelConfig& c = model.engine.config();
  JsonValue json{{"architecture", c.architecture_name},
                 {"layers", c.layers},
                 {"hidden_size", c.hidden_size},
                 {"heads", c.heads},
                 {"kv_heads", c.kv_heads},
                 {"head_dim", c.head_dim},
                 {"vocab_size", c.vocab_size},
                 {"max_position_embeddings", c.max_position_embeddings},
                 {"experts", c.experts},
                 {"dtype", name_of(model.engine.dtype())},
                 {"device", model.engine.device_name()},
                 {"computes", model.engine.computes()},
                 {"weight_bytes", model.engine.weight_bytes()},
                 {"cache_bytes", model.engine.cache_bytes()},
                 {"bos_id", nullptr},
                 {"eos_ids", c.eos_ids},
                 {"has_tokenizer", model.tokenizer.has_value()}};
  if (c.bos_id) json["bos_id"] = *c.bos_id;
  return json.dump();
}

const Tokenizer& tokenizer_of(const cermet_model& model) {
  if (!model.tokenizer) fail(Status::io, "{}: expected a tokenizer, found nothing", quote(model.tokenizer_file));
  return *model.tokenizer;
}

/// Copies as much as fits and returns the total.
template <class T>
void copy_out(const T* source, std::size_t size, T* destination, std::size_t capacity, std::size_t* total) {
  if (capacity > 0) require_pointer(destination, "destination");
  if (const std::size_t count = std::min(size, capacity); count > 0)
    std::memcpy(destination, source, count * sizeof(T));
  *total = size;
}

cermet_model_options model_defaults() {
  const EngineOptions d;
  cermet_model_options made{};
  made.struct_size = sizeof made;
  made.max_context = d.max_context;
  made.max_sequences = d.max_sequences;
  made.max_batch_tokens = d.max_batch_tokens;
  made.steps_per_launch = d.steps_per_launch;
  return made;
}

void generate_into(cermet_model& model, std::span<const std::int32_t> prompt, const cermet_generate_options* given,
                   cermet_token_callback callback, void* user, cermet_generation* result) {
  std::atomic<bool> cancelled{false};
  GenerateOptions options = generate_options(model, given);
  options.cancelled = &cancelled;
  std::optional<StreamDecoder> decoder;
  if (model.tokenizer) decoder.emplace(*model.tokenizer);
  const auto hand = [&](std::int32_t id, const std::string& text) {
    if (callback && callback(user, id, text.data(), text.size()) != 0) cancelled = true;
  };
  const Generation made =
      model.conversation->go_on(prompt, options, [&](std::int32_t id) { hand(id, decoder ? decoder->push(id) : ""); });
  if (const std::string rest = decoder ? decoder->finish() : ""; !rest.empty()) hand(-1, rest);
  if (result) *result = to_c(made);
}

void logits_into(cermet_model& model, std::span<const std::int32_t> ids, float* logits) {
  Engine& engine = model.engine;
  model.conversation->forget();
  engine.reset(0);
  const std::int64_t length = std::ssize(ids);
  while (!ids.empty()) {
    const auto piece = ids.first(std::min(ids.size(), static_cast<std::size_t>(engine.max_batch_tokens())));
    const SequenceTokens tokens{0, piece, length};
    const TensorView rows = engine.forward({&tokens, 1}, Engine::Logits::all);
    std::memcpy(logits, rows.data, static_cast<std::size_t>(rows.elements()) * sizeof(float));
    logits += rows.elements();
    ids = ids.subspan(piece.size());
  }
  engine.reset(0);
}

}  // namespace

void require_computing(const cermet_model& model) {
  if (!model.engine.computes())
    fail(Status::unsupported, "device {}: expected a device that computes, found one that does not",
         model.engine.device_name());
}

void require_no_batch(const cermet_model& model) {
  require(!model.has_batch, "model: expected one that no batch uses, found one whose batch is not destroyed");
}

cermet_generate_options generate_defaults() {
  const GenerateOptions d;
  const Sampling& s = d.sampling;
  cermet_generate_options made{};
  made.struct_size = sizeof made;
  made.max_new_tokens = d.max_new_tokens;
  made.temperature = s.temperature;
  made.top_k = s.top_k;
  made.top_p = s.top_p;
  made.min_p = s.min_p;
  made.repetition_penalty = s.repetition_penalty;
  made.seed = s.seed;
  return made;
}

GenerateOptions generate_options(const cermet_model& model, const cermet_generate_options* options) {
  const cermet_generate_options given =
      filled(options, generate_defaults, "options", offsetof(cermet_generate_options, options));
  GenerateOptions made;
  made.max_new_tokens = given.max_new_tokens;
  made.sampling = {given.temperature, given.top_k, given.top_p, given.min_p, given.repetition_penalty, given.seed};
  made.ignore_eos = given.ignore_eos != 0;
  if (given.options) set_options(generate_option_table(), &made, given.options);
  check_sampling(made.sampling);
  made.stop_at_eos(model.engine.config());
  return made;
}

static_assert(static_cast<int>(Generation::End::length) == CERMET_END_LENGTH &&
                  static_cast<int>(Generation::End::stop) == CERMET_END_STOP &&
                  static_cast<int>(Generation::End::context) == CERMET_END_CONTEXT &&
                  static_cast<int>(Generation::End::cancelled) == CERMET_END_CANCELLED,
              "the C ABI's reasons to end are the library's");

cermet_generation to_c(const Generation& made) {
  return {static_cast<std::size_t>(made.prompt_tokens), made.ids.size(), made.prefill_seconds, made.decode_seconds,
          static_cast<cermet_end>(made.end)};
}

}  // namespace cermet::api

using namespace cermet;  // NOLINT(google-build-using-namespace): the C functions below are the face of this namespace

void cermet_model_options_init(cermet_model_options* options, size_t struct_size) {
  api::init_options(options, struct_size, api::model_defaults);
}
void cermet_generate_options_init(cermet_generate_options* options, size_t struct_size) {
  api::init_options(options, struct_size, api::generate_defaults);
}

const char* cermet_option_rows(void) {
  static const std::string rows =
      JsonValue{{"model", api::rows_of(engine_option_table())}, {"generate", api::rows_of(generate_option_table())}}
          .dump();
  return rows.c_str();
}

cermet_status cermet_model_load(cermet_handle* handle, const char* folder, const cermet_model_options* options,
                                cermet_model** model) {
  return api::guarded([&] {
    api::require_pointer(handle, "handle");
    api::require_pointer(folder, "folder");
    api::require_pointer(model, "model");
    const cermet_model_options given =
        api::filled(options, api::model_defaults, "options", offsetof(cermet_model_options, super_kernel));
    const std::filesystem::path file = std::filesystem::path(folder) / "tokenizer.json";
    std::error_code ignored;
    std::optional<Tokenizer> tokenizer;
    if (std::filesystem::exists(file, ignored)) tokenizer = Tokenizer::load(file);
    Engine engine = Engine::load(folder, api::engine_options(given), handle->shared->context.with_own_stream());
    auto made = std::make_shared<cermet_model>(
        cermet_model{std::move(engine), std::move(tokenizer), file.string(), given.max_sequences, "", nullptr});
    made->conversation.emplace(made->engine);
    made->info = api::info_of(*made);
    made->self = made;
    *model = made.get();
  });
}

void cermet_model_destroy(cermet_model* model) {
  if (!model) return;
  // The model's hold on itself, which ends with this variable: where no batch keeps the model, that deletes it.
  const std::shared_ptr<cermet_model> last = std::move(model->self);
}
const char* cermet_model_info(const cermet_model* model) { return model ? model->info.c_str() : ""; }
size_t cermet_model_vocab_size(const cermet_model* model) {
  return model ? static_cast<size_t>(model->engine.config().vocab_size) : 0;
}

cermet_status cermet_model_tokenize(const cermet_model* model, const char* text, size_t length, int32_t add_special,
                                    int32_t* ids, size_t capacity, size_t* count) {
  return api::guarded([&] {
    api::require_pointer(model, "model");
    if (length > 0) api::require_pointer(text, "text");
    api::require_pointer(count, "count");
    const std::vector<std::int32_t> made = api::tokenizer_of(*model).encode({text, length}, add_special != 0);
    api::copy_out(made.data(), made.size(), ids, capacity, count);
  });
}

cermet_status cermet_model_detokenize(const cermet_model* model, const int32_t* ids, size_t count, int32_t skip_special,
                                      char* text, size_t capacity, size_t* length) {
  return api::guarded([&] {
    api::require_pointer(model, "model");
    if (count > 0) api::require_pointer(ids, "ids");
    api::require_pointer(length, "length");
    const Tokenizer& tokenizer = api::tokenizer_of(*model);
    const std::int64_t bound = std::max<std::int64_t>(tokenizer.vocab_size(), model->engine.config().vocab_size);
    for (size_t i = 0; i < count; ++i)
      require(ids[i] >= 0 && ids[i] < bound, "id {}: expected 0 to {}, found {}", i, bound - 1, ids[i]);
    const std::string made = tokenizer.decode({ids, count}, skip_special != 0);
    api::copy_out(made.data(), made.size(), text, capacity, length);
  });
}

cermet_status cermet_model_forward(cermet_model* model, const cermet_tokens* batch, size_t sequences, int32_t all,
                                   const float** logits, size_t* rows) {
  return api::guarded([&] {
    api::require_pointer(model, "model");
    api::require_pointer(batch, "batch");
    api::require_pointer(logits, "logits");
    api::require_pointer(rows, "rows");
    api::require_computing(*model);
    api::require_no_batch(*model);
    std::vector<SequenceTokens> tokens;
    for (size_t i = 0; i < sequences; ++i) {
      if (batch[i].count > 0) api::require_pointer(batch[i].ids, "ids");
      tokens.push_back({batch[i].sequence, {batch[i].ids, batch[i].count}});
    }
    const auto talk = std::ranges::find(tokens, 0, &SequenceTokens::sequence);
    if (talk != tokens.end()) model->conversation->settle();
    const TensorView result = model->engine.forward(tokens, all ? Engine::Logits::all : Engine::Logits::last);
    if (talk != tokens.end()) model->conversation->heard(talk->tokens);
    *logits = result.as<const float>();
    *rows = static_cast<size_t>(result.shape[0]);
  });
}

cermet_status cermet_model_logits(cermet_model* model, const int32_t* ids, size_t count, float* logits) {
  return api::guarded([&] {
    api::require_pointer(model, "model");
    if (count > 0) api::require_pointer(ids, "ids");
    if (count > 0) api::require_pointer(logits, "logits");
    api::require_computing(*model);
    api::require_no_batch(*model);
    api::logits_into(*model, {ids, count}, logits);
  });
}

int64_t cermet_model_length(const cermet_model* model, int32_t sequence) {
  if (!model || sequence < 0 || sequence >= model->max_sequences) return -1;
  return sequence == 0 && !model->has_batch ? model->conversation->length() : model->engine.length(sequence);
}

cermet_status cermet_model_reset(cermet_model* model, int32_t sequence) {
  return api::guarded([&] {
    api::require_pointer(model, "model");
    api::require_no_batch(*model);
    model->engine.reset(sequence);
    if (sequence == 0) model->conversation->forget();
  });
}

cermet_status cermet_model_generate(cermet_model* model, const int32_t* prompt, size_t count,
                                    const cermet_generate_options* options, cermet_token_callback callback, void* user,
                                    cermet_generation* result) {
  return api::guarded([&] {
    api::require_pointer(model, "model");
    if (count > 0) api::require_pointer(prompt, "prompt");
    api::require_computing(*model);
    api::require_no_batch(*model);
    api::generate_into(*model, {prompt, count}, options, callback, user, result);
  });
}
