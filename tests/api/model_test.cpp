// Models through the C interface: the demo model, and a reference checkpoint without a tokenizer.
#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/api/model_fixture.hpp"
#include "tests/model/scratch.hpp"

namespace cermet::test {
namespace {

struct Stream {
  std::vector<std::int32_t> ids;
  std::string text;
  std::size_t stop_after = 1000;
};

int32_t take(void* user, int32_t id, const char* text, size_t length) {
  auto& stream = *static_cast<Stream*>(user);
  stream.ids.push_back(id);
  stream.text.append(text, length);
  return stream.ids.size() >= stream.stop_after;
}

TEST_F(Model, GeneratesWhatTheReferenceDoes) {
  ASSERT_EQ(load(demo), CERMET_OK) << cermet_last_error_message();
  const auto reference = nlohmann::json::parse(content_of(demo + "/reference.json"))["prompts"][0];
  const std::vector<std::int32_t> prompt = tokenize(reference["prompt"]);
  EXPECT_EQ(nlohmann::json(prompt), reference["ids"]);
  cermet_generate_options generate = cermet_generate_defaults();
  generate.max_new_tokens = 8;
  Stream stream;
  cermet_generation result{};
  ASSERT_EQ(cermet_model_generate(model, prompt.data(), prompt.size(), &generate, take, &stream, &result), CERMET_OK)
      << cermet_last_error_message();
  const std::vector<std::int32_t> expected(reference["greedy_ids"].begin(), reference["greedy_ids"].begin() + 8);
  EXPECT_EQ(stream.ids, expected);
  EXPECT_EQ(result.new_tokens, 8u);
  EXPECT_EQ(result.prompt_tokens, prompt.size());
  EXPECT_EQ(result.end, CERMET_END_LENGTH);
  EXPECT_GT(result.prefill_seconds, 0);
  size_t length = 0;
  std::string text(1000, '\0');
  ASSERT_EQ(cermet_model_detokenize(model, stream.ids.data(), stream.ids.size(), 0, text.data(), text.size(), &length),
            CERMET_OK);
  EXPECT_EQ(text.substr(0, length), stream.text);
}

TEST_F(Model, StepsOfOneLaunchGiveTheSameTokens) {
  std::vector<std::int32_t> expected;
  for (const int64_t steps : {1, 4}) {
    options.steps_per_launch = steps;
    ASSERT_EQ(load(tiny), CERMET_OK) << cermet_last_error_message();
    cermet_generate_options generate = cermet_generate_defaults();
    generate.max_new_tokens = 11;
    const std::int32_t id = 5;
    Stream stream;
    ASSERT_EQ(cermet_model_generate(model, &id, 1, &generate, take, &stream, nullptr), CERMET_OK)
        << cermet_last_error_message();
    if (steps == 1) expected = stream.ids;
    EXPECT_EQ(stream.ids, expected);
    generate.repetition_penalty = 1.5;
    if (steps > 1)
      expect_refused(CERMET_INVALID_ARGUMENT, cermet_model_generate(model, &id, 1, &generate, take, &stream, nullptr),
                     {"repetition_penalty", "4 steps"});
  }
  options.steps_per_launch = 0;
  expect_refused(CERMET_INVALID_ARGUMENT, load(tiny), {"steps_per_launch", "found 0"});
}

TEST_F(Model, CompactWeightsAreForGpus) {
  options.compact_weights = 1;
  expect_refused(CERMET_INVALID_ARGUMENT, load(tiny), {"compact_weights", "expected device cuda", "found cpu"});
}

TEST_F(Model, TheCallbackEndsGeneration) {
  ASSERT_EQ(load(demo), CERMET_OK);
  const std::vector<std::int32_t> prompt = tokenize("The server");
  Stream stream;
  stream.stop_after = 3;
  cermet_generation result{};
  ASSERT_EQ(cermet_model_generate(model, prompt.data(), prompt.size(), nullptr, take, &stream, &result), CERMET_OK)
      << cermet_last_error_message();
  EXPECT_EQ(stream.ids.size(), 3u);
  EXPECT_EQ(result.end, CERMET_END_CANCELLED);
  EXPECT_EQ(cermet_model_generate(model, prompt.data(), prompt.size(), nullptr, nullptr, nullptr, nullptr), CERMET_OK)
      << "the context goes on";
}

TEST_F(Model, LogitsOfOnePassAndOfPiecesAgreeWithTheReference) {
  const auto reference = nlohmann::json::parse(content_of(tiny + "/reference.json"));
  options.dtype = "f32";
  for (const int64_t piece : {512, 3}) {
    options.max_batch_tokens = piece;
    ASSERT_EQ(load(tiny), CERMET_OK) << cermet_last_error_message();
    const std::vector<std::int32_t> ids = reference["input_ids"];
    const size_t vocab = cermet_model_vocab_size(model);
    std::vector<float> logits(ids.size() * vocab);
    ASSERT_EQ(cermet_model_logits(model, ids.data(), ids.size(), logits.data()), CERMET_OK)
        << cermet_last_error_message();
    const std::vector<std::vector<float>> expected = reference["logits"];
    for (size_t row = 0; row < expected.size(); ++row) {
      float largest = 0;
      for (const float value : expected[row]) largest = std::max(largest, std::abs(value));
      for (size_t i = 0; i < vocab; ++i)
        ASSERT_NEAR(logits[row * vocab + i], expected[row][i], 2e-4f * largest) << row << ", " << i;
    }
  }
}

TEST_F(Model, BatchesOfUnevenLengthGiveTheLogitsOfEachAlone) {
  options.max_sequences = 2;
  options.dtype = "f32";
  ASSERT_EQ(load(tiny), CERMET_OK) << cermet_last_error_message();
  const std::vector<std::int32_t> a{5, 6, 7, 8, 9}, b{11, 12};
  const size_t vocab = cermet_model_vocab_size(model);
  std::vector<float> alone(a.size() * vocab);
  ASSERT_EQ(cermet_model_logits(model, a.data(), a.size(), alone.data()), CERMET_OK);
  const cermet_tokens batch[] = {{1, b.data(), b.size()}, {0, a.data(), a.size()}};
  const float* logits = nullptr;
  size_t rows = 0;
  ASSERT_EQ(cermet_model_forward(model, batch, 2, 0, &logits, &rows), CERMET_OK) << cermet_last_error_message();
  ASSERT_EQ(rows, 2u);
  for (size_t i = 0; i < vocab; ++i) ASSERT_NEAR(logits[vocab + i], alone[(a.size() - 1) * vocab + i], 1e-4f);
  EXPECT_EQ(cermet_model_length(model, 0), 5);
  EXPECT_EQ(cermet_model_length(model, 1), 2);
  EXPECT_EQ(cermet_model_length(model, 2), -1);
  ASSERT_EQ(cermet_model_reset(model, 1), CERMET_OK);
  EXPECT_EQ(cermet_model_length(model, 1), 0);
}

TEST_F(Model, SaysWhatItIs) {
  ASSERT_EQ(load(demo), CERMET_OK);
  const auto info = nlohmann::json::parse(cermet_model_info(model));
  EXPECT_EQ(info["architecture"], "Qwen3MoeForCausalLM");
  EXPECT_EQ(info["vocab_size"], 8192);
  EXPECT_EQ(info["has_tokenizer"], true);
  EXPECT_GT(info["weight_bytes"], 1000000);
}

TEST_F(Model, WeightsAndCacheAreStoredAsAsked) {
  options.dtype = "f32";
  ASSERT_EQ(load(demo), CERMET_OK) << cermet_last_error_message();
  const auto plain = nlohmann::json::parse(cermet_model_info(model));
  const std::vector<std::int32_t> ids = tokenize("The PostgreSQL server is");
  const size_t vocab = cermet_model_vocab_size(model);
  std::vector<float> expected(ids.size() * vocab), logits(ids.size() * vocab);
  ASSERT_EQ(cermet_model_logits(model, ids.data(), ids.size(), expected.data()), CERMET_OK);
  float largest = 0;
  for (const float value : expected) largest = std::max(largest, std::abs(value));
  struct Choice {
    const char *weights, *kv_cache;
    double weight_share, cache_share, error;  // of the bytes (the CPU widens fp8 to bf16), and of the largest logit
  };
  const Choice choices[] = {{"i8", nullptr, 0.9, 1, 0.1},   {"int8", nullptr, 0.9, 1, 0.1},
                            {"fp8", nullptr, 1.02, 1, 0.2}, {nullptr, "i8", 1, 0.4, 0.1},
                            {nullptr, "int8", 1, 0.4, 0.1}, {nullptr, "fp8", 1, 0.25, 0.2}};
  for (const Choice& choice : choices) {
    SCOPED_TRACE(std::string(choice.weights ? choice.weights : "-") + " " + (choice.kv_cache ? choice.kv_cache : "-"));
    options.weights = choice.weights;
    options.kv_cache = choice.kv_cache;
    ASSERT_EQ(load(demo), CERMET_OK) << cermet_last_error_message();
    const auto info = nlohmann::json::parse(cermet_model_info(model));
    if (choice.weights)
      EXPECT_LT(info["weight_bytes"].get<double>(), choice.weight_share * plain["weight_bytes"].get<double>());
    else EXPECT_EQ(info["weight_bytes"], plain["weight_bytes"]);
    if (choice.kv_cache)
      EXPECT_LE(info["cache_bytes"].get<double>(), choice.cache_share * plain["cache_bytes"].get<double>());
    else EXPECT_EQ(info["cache_bytes"], plain["cache_bytes"]);
    ASSERT_EQ(cermet_model_logits(model, ids.data(), ids.size(), logits.data()), CERMET_OK)
        << cermet_last_error_message();
    EXPECT_NE(logits, expected) << "nothing was rounded";
    for (size_t i = 0; i < logits.size(); ++i) ASSERT_NEAR(logits[i], expected[i], choice.error * largest) << i;
  }
}

TEST_F(Model, IsOnTheHandlesDeviceAndSaysWhereNothingIsComputed) {
  std::vector<std::string> devices{"null"};
#ifdef CERMET_HAS_CUDA_PLUGIN
  devices.push_back("null:sm_90");
#endif
  for (const std::string& device : devices) {
    ASSERT_EQ(load(tiny, device.c_str()), CERMET_OK) << cermet_last_error_message();
    const auto info = nlohmann::json::parse(cermet_model_info(model));
    EXPECT_EQ(info["device"], device);
    EXPECT_EQ(info["computes"], false);
    const std::vector<std::int32_t> ids{1, 2, 3};
    std::vector<float> logits(3 * cermet_model_vocab_size(model), -1);
    const auto untouched = logits;
    const std::string sentence = "device " + device + ": expected a device that computes, found one that does not";
    expect_refused(CERMET_UNSUPPORTED, cermet_model_logits(model, ids.data(), 3, logits.data()), {sentence});
    EXPECT_EQ(logits, untouched);
    const cermet_tokens batch[] = {{0, ids.data(), 3}};
    const float* rows = nullptr;
    size_t count = 0;
    expect_refused(CERMET_UNSUPPORTED, cermet_model_forward(model, batch, 1, 0, &rows, &count), {sentence});
    expect_refused(CERMET_UNSUPPORTED, cermet_model_generate(model, ids.data(), 3, nullptr, nullptr, nullptr, nullptr),
                   {sentence});
  }
  ASSERT_EQ(load(tiny), CERMET_OK);
  EXPECT_EQ(nlohmann::json::parse(cermet_model_info(model))["computes"], true);
}

TEST_F(Model, SuperKernelsKeepTheBitsAndAreChecked) {
  ASSERT_EQ(load(tiny), CERMET_OK);
  const std::vector<int32_t> ids{1, 2, 3};
  std::vector<float> plain(ids.size() * cermet_model_vocab_size(model)), marked = plain;
  ASSERT_EQ(cermet_model_logits(model, ids.data(), ids.size(), plain.data()), CERMET_OK);
  cermet_model_destroy(model);
  model = nullptr;
  options.super_kernel = "decode";
  options.super_kernel_options = "strict-scope-check=abort";
  ASSERT_EQ(load(tiny), CERMET_OK) << cermet_last_error_message();
  ASSERT_EQ(cermet_model_logits(model, ids.data(), ids.size(), marked.data()), CERMET_OK);
  EXPECT_EQ(marked, plain);
  cermet_model_destroy(model);
  model = nullptr;
  options.super_kernel_options = "width=wide";
  expect_refused(CERMET_INVALID_ARGUMENT, load(tiny), {"super-kernel option width", "\"wide\""});
  options.super_kernel = nullptr;
  options.super_kernel_options = nullptr;
  options.struct_size =
      offsetof(cermet_model_options, super_kernel);  // a program that was compiled before there were super-kernels
  EXPECT_EQ(load(tiny), CERMET_OK) << cermet_last_error_message();
}

TEST_F(Model, OptionsByNameAreThoseOfTheMembers) {
  const std::vector<std::int32_t> ids{1, 2, 3};
  const auto logits = [&] {
    EXPECT_EQ(load(tiny), CERMET_OK) << cermet_last_error_message();
    std::vector<float> made(ids.size() * cermet_model_vocab_size(model));
    EXPECT_EQ(cermet_model_logits(model, ids.data(), ids.size(), made.data()), CERMET_OK);
    return made;
  };
  const std::vector<float> plain = logits();
  options.weights = "i8";
  const std::vector<float> quantized = logits();
  options.weights = nullptr;
  options.options = "weights=i8;max_context=64";
  EXPECT_EQ(logits(), quantized);
  EXPECT_NE(plain, quantized);
  cermet_generate_options by_member = cermet_generate_defaults(), by_name = by_member;
  by_member.temperature = 1;
  by_member.seed = 7;
  by_member.max_new_tokens = 9;
  by_name.options = "temperature=1;seed=7;max_new_tokens=9";
  const auto generated = [&](cermet_generate_options* generate) {
    Stream stream;
    EXPECT_EQ(cermet_model_reset(model, 0), CERMET_OK);
    EXPECT_EQ(cermet_model_generate(model, ids.data(), ids.size(), generate, take, &stream, nullptr), CERMET_OK);
    return stream.ids;
  };
  EXPECT_EQ(generated(&by_name), generated(&by_member));
  by_name.struct_size = offsetof(cermet_generate_options, options);  // of a program that was compiled before
  EXPECT_EQ(generated(&by_name), generated(nullptr));
  by_name = cermet_generate_defaults();
  by_name.options = "temprature=1";
  expect_refused(CERMET_INVALID_ARGUMENT,
                 cermet_model_generate(model, ids.data(), ids.size(), &by_name, nullptr, nullptr, nullptr),
                 {"options: expected one of max_new_tokens, temperature", "\"temprature\""});
  options.options = "weights=i8;device=cuda";
  expect_refused(CERMET_INVALID_ARGUMENT, load(tiny), {"device", "handle"});
}

TEST_F(Model, OptionRowsAreJson) {
  const nlohmann::json rows = nlohmann::json::parse(cermet_option_rows());
  const auto find = [&](const char* table, const char* name) {
    for (const nlohmann::json& row : rows[table])
      if (row["name"] == name) return row;
    return nlohmann::json();
  };
  EXPECT_EQ(find("model", "head")["type"], "dtype");
  EXPECT_EQ(find("model", "max_batch_tokens")["default"], "512");
  EXPECT_EQ(find("generate", "top_p")["values"], "a number in (0, 1]");
  EXPECT_TRUE(find("model", "tensor_parallel").is_null());
}

TEST_F(Model, OptionsCarryTheirSize) {
  EXPECT_EQ(options.struct_size, sizeof(cermet_model_options));
  EXPECT_EQ(cermet_generate_defaults().struct_size, sizeof(cermet_generate_options));
  const cermet_status bad = CERMET_INVALID_ARGUMENT;
  options.struct_size = 0;
  expect_refused(bad, load(tiny), {"options: struct_size", std::to_string(sizeof(cermet_model_options)), "found 0"});
  struct {
    cermet_model_options known;
    const char* later;
  } newer;
  cermet_model_options_init(&newer.known, sizeof newer);
  EXPECT_EQ(newer.known.struct_size, sizeof newer);
  EXPECT_EQ(newer.known.max_sequences, 1);
  EXPECT_EQ(newer.later, nullptr) << "what the library does not know is zero";
  cermet_destroy(handle);
  ASSERT_EQ(cermet_create("cpu", 1, &handle), CERMET_OK);
  ASSERT_EQ(cermet_model_load(handle, tiny.c_str(), &newer.known, &model), CERMET_OK) << cermet_last_error_message();
  newer.later = "set";
  cermet_model* refused = nullptr;
  expect_refused(bad, cermet_model_load(handle, tiny.c_str(), &newer.known, &refused),
                 {"options", "members that this library", "others set"});
  EXPECT_EQ(refused, nullptr);
  cermet_generate_options generate = cermet_generate_defaults();
  generate.struct_size = 7;
  const std::int32_t id = 1;
  expect_refused(bad, cermet_model_generate(model, &id, 1, &generate, nullptr, nullptr, nullptr),
                 {"options: struct_size", "found 7"});
  unsigned char partial[16];
  std::memset(partial, 0xa5, sizeof partial);
  cermet_model_options_init(reinterpret_cast<cermet_model_options*>(partial), 8);
  EXPECT_EQ(partial[8], 0xa5) << "written past the end";
  cermet_model_options_init(nullptr, sizeof(cermet_model_options));
}

TEST_F(Model, MistakesAreNamed) {
  expect_refused(CERMET_IO, load("/no/such/model"), {"/no/such/model"});
  options.dtype = "i8";
  expect_refused(CERMET_INVALID_ARGUMENT, load(tiny), {"dtype", "bf16", "\"i8\""});
  options = cermet_model_defaults();
  options.weights = "f8";
  expect_refused(CERMET_INVALID_ARGUMENT, load(tiny), {"weights", "bf16", "i8", "f8_e4m3", "\"f8\""});
  options = cermet_model_defaults();
  options.kv_cache = "int4";
  expect_refused(CERMET_INVALID_ARGUMENT, load(tiny), {"kv_cache", "i8 or f8_e4m3", "\"int4\""});
  options = cermet_model_defaults();
  options.max_sequences = 0;
  expect_refused(CERMET_INVALID_ARGUMENT, load(tiny), {"max_sequences", "0"});
  options = cermet_model_defaults();
  options.max_context = 16;
  ASSERT_EQ(load(tiny), CERMET_OK) << cermet_last_error_message();
  const std::vector<std::int32_t> ids{1, 2, 320}, many(17, 1);
  const cermet_status bad = CERMET_INVALID_ARGUMENT;
  std::vector<float> logits(17 * 320);
  size_t count = 0;
  expect_refused(bad, cermet_model_logits(model, ids.data(), ids.size(), logits.data()), {"token id", "319", "320"});
  expect_refused(bad, cermet_model_logits(model, many.data(), many.size(), logits.data()), {"16", "17"});
  expect_refused(bad, cermet_model_logits(model, ids.data(), 2, nullptr), {"logits", "NULL"});
  expect_refused(CERMET_IO, cermet_model_tokenize(model, "a", 1, 0, nullptr, 0, &count), {"tokenizer.json"});
  expect_refused(bad, cermet_model_generate(model, ids.data(), 3, nullptr, nullptr, nullptr, nullptr),
                 {"token id", "320"});
  expect_refused(bad, cermet_model_generate(model, ids.data(), 0, nullptr, nullptr, nullptr, nullptr), {"prompt"});
  cermet_generate_options generate = cermet_generate_defaults();
  generate.top_p = 0;
  expect_refused(bad, cermet_model_generate(model, ids.data(), 1, &generate, nullptr, nullptr, nullptr),
                 {"top_p", "0"});
  const cermet_tokens outside[] = {{1, ids.data(), 1}}, twice[] = {{0, ids.data(), 1}, {0, ids.data(), 1}};
  const float* rows = nullptr;
  expect_refused(bad, cermet_model_forward(model, outside, 1, 0, &rows, &count), {"sequence", "1"});
  expect_refused(bad, cermet_model_forward(model, twice, 2, 0, &rows, &count), {"batch"});
  expect_refused(bad, cermet_model_reset(model, -1), {"sequence", "-1"});
  expect_refused(bad, cermet_model_load(nullptr, tiny.c_str(), nullptr, &model), {"handle"});
}

}  // namespace
}  // namespace cermet::test
