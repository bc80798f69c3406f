// Every reference checkpoint against the logits and greedy tokens that transformers computed for it in float32.
#include <gtest/gtest.h>

#include <filesystem>

#include "device/cuda/plugin.hpp"
#include "io/json_file.hpp"
#include "model/generate.hpp"
#include "tests/support/models.hpp"

namespace cermet {
namespace {

struct Reference {
  std::vector<std::int32_t> input_ids, greedy_ids;
  std::vector<double> greedy_margins;
  std::vector<double> router_margins;  ///< of every position of both; empty where there is no router
  std::vector<std::vector<double>> logits;
};

Reference read_reference(const std::filesystem::path& model, const char* file = "reference.json") {
  const JsonDocument document = JsonDocument::read(model / file);
  Reference r;
  for (const Json id : document.root().at("input_ids"))
    r.input_ids.push_back(static_cast<std::int32_t>(id.as_integer()));
  for (const Json id : document.root().at("greedy_ids"))
    r.greedy_ids.push_back(static_cast<std::int32_t>(id.as_integer()));
  for (const Json margin : document.root().at("greedy_margins")) r.greedy_margins.push_back(margin.as_number());
  if (const std::optional<Json> margins = document.root().find("router_margins"))
    for (const Json margin : *margins) r.router_margins.push_back(margin.as_number());
  for (const Json row : document.root().at("logits")) {
    r.logits.emplace_back();
    for (const Json value : row) r.logits.back().push_back(value.as_number());
  }
  return r;
}

/// Ranks that share matrices, and ranks that have different experts.
struct Split {
  int tensor = 1, experts = 1;
};

Engine load_on(const std::string& device, const std::filesystem::path& model, DType dtype,
               std::int64_t max_batch_tokens = 512, std::int64_t sequences = 3, Split split = {}) {
  EngineOptions options;
  options.device = device;
  options.dtype = dtype;
  options.threads = 2;
  options.max_context = 512;
  options.max_sequences = sequences;
  options.max_batch_tokens = max_batch_tokens;
  options.tensor_parallel = split.tensor;
  options.expert_parallel = split.experts;
  return Engine::load(model, options);
}

/// Largest difference of a row, relative to the row's largest magnitude.
double row_error(const std::vector<double>& expected, const float* found) {
  double magnitude = 0, error = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    magnitude = std::max(magnitude, std::abs(expected[i]));
    error = std::max(error, std::abs(expected[i] - static_cast<double>(found[i])));
  }
  return error / magnitude;
}

/// A checkpoint and the device that runs it. Without a GPU, the tests on one are skipped and say why.
class References : public testing::TestWithParam<std::tuple<std::string, std::string>> {
 protected:
  void SetUp() override {
    if (device() == "cuda" && !cuda::unavailable_reason().empty()) GTEST_SKIP() << cuda::unavailable_reason();
  }
  std::filesystem::path model() const { return references / std::get<0>(GetParam()); }
  std::string device() const { return std::get<1>(GetParam()); }
};

/// The largest error of a row of the prompt's logits.
double largest_error(Engine& engine, const Reference& reference) {
  const SequenceTokens all{0, reference.input_ids};
  const Rows rows(engine.forward({&all, 1}, Engine::Logits::all));
  EXPECT_EQ(rows.count(), static_cast<std::int64_t>(reference.logits.size()));
  double error = 0;
  for (std::int64_t r = 0; r < rows.count(); ++r)
    error = std::max(
        error, row_error(reference.logits[static_cast<std::size_t>(r)], reinterpret_cast<const float*>(rows.row(r))));
  return error;
}

TEST_P(References, Float32LogitsAreWithin2e4) {
  Engine engine = load_on(device(), model(), DType::f32);
  EXPECT_LE(largest_error(engine, read_reference(model())), 2e-4);
}

TEST_P(References, Float32GreedyTokensAreIdentical) {
  const Reference reference = read_reference(model());
  Engine engine = load_on(device(), model(), DType::f32);
  GenerateOptions options;
  options.max_new_tokens = static_cast<std::int64_t>(reference.greedy_ids.size());
  EXPECT_EQ(generate(engine, reference.input_ids, options).ids, reference.greedy_ids);
}

/// The likeliest token and the distance of its logit from the runner-up's.
std::pair<std::int32_t, double> best_of(const std::vector<double>& logits) {
  const auto best = std::max_element(logits.begin(), logits.end());
  double second = -std::numeric_limits<double>::infinity();
  for (auto other = logits.begin(); other != logits.end(); ++other)
    if (other != best) second = std::max(second, *other);
  return {static_cast<std::int32_t>(best - logits.begin()), *best - second};
}

/// Follows the reference's tokens through prompt and continuation, so that one disputed choice does not end the
/// comparison. A router's choice that was closer than 0.02 ends it: rounding may send that token to another expert, and
/// everything after sees it.
class GreedyComparison {
 public:
  explicit GreedyComparison(const Reference& reference) : reference_(reference) {}

  void add(const float* row, std::size_t vocab_size) {
    const std::size_t position = position_++, last_of_prompt = reference_.input_ids.size() - 1;
    over_ = over_ || (!reference_.router_margins.empty() && reference_.router_margins[position] < 0.02);
    if (over_) return;
    const auto [expected, margin] = position < last_of_prompt
                                        ? best_of(reference_.logits[position])
                                        : std::pair(reference_.greedy_ids[position - last_of_prompt],
                                                    reference_.greedy_margins[position - last_of_prompt]);
    if (margin <= 0.05) return;
    EXPECT_EQ(std::max_element(row, row + vocab_size) - row, expected)
        << "position " << position << ", margin " << margin;
    ++compared_;
  }
  int compared() const { return compared_; }

 private:
  const Reference& reference_;
  std::size_t position_ = 0;
  int compared_ = 0;
  bool over_ = false;
};

void expect_greedy_above_margin(const std::string& device, const std::filesystem::path& model, DType dtype,
                                Split split = {}) {
  const Reference reference = read_reference(model);
  Engine engine =
      load_on(device, model, dtype, 512, 1, split);  // one for several sequences rounds operands of a single token too
  GreedyComparison comparison(reference);
  const auto forward = [&](std::span<const std::int32_t> ids) {
    const SequenceTokens part{0, ids};
    const Rows rows(engine.forward({&part, 1}, Engine::Logits::all));
    for (std::int64_t r = 0; r < rows.count(); ++r)
      comparison.add(reinterpret_cast<const float*>(rows.row(r)), static_cast<std::size_t>(rows.length()));
  };
  forward(reference.input_ids);
  for (std::size_t i = 0; i + 1 < reference.greedy_ids.size(); ++i) forward({&reference.greedy_ids[i], 1});
  EXPECT_GT(comparison.compared(), 0);
}

TEST_P(References, Bf16GreedyTokensAgreeAboveTheMargin) { expect_greedy_above_margin(device(), model(), DType::bf16); }
TEST_P(References, F16GreedyTokensAgreeAboveTheMargin) { expect_greedy_above_margin(device(), model(), DType::f16); }

/// Chunks, batches of uneven length and single steps see the same context, so they give the same logits.
void expect_same_in_chunks_and_batches(Engine engine, const Reference& reference) {
  const std::span<const std::int32_t> ids(reference.input_ids);
  const TensorView chunked = engine.prefill(1, ids);
  EXPECT_LE(row_error(reference.logits.back(), chunked.as<const float>()), 2e-4) << "in chunks of 7";
  engine.prefill(0, ids.first(9));
  engine.prefill(2, ids.first(3));
  engine.reset(1);
  const SequenceTokens batch[] = {{2, ids.subspan(3, 2)}, {0, ids.subspan(9, 1)}, {1, ids.first(4)}};
  const Rows rows(engine.forward(batch, Engine::Logits::last));
  ASSERT_EQ(rows.count(), 3);
  const std::size_t last[] = {4, 9, 3};
  for (std::int64_t r = 0; r < 3; ++r)
    EXPECT_LE(row_error(reference.logits[last[r]], reinterpret_cast<const float*>(rows.row(r))), 2e-4)
        << "sequence " << r << " of the batch";
}

TEST_P(References, ChunksAndBatchesGiveTheSameLogits) {
  expect_same_in_chunks_and_batches(load_on(device(), model(), DType::f32, 7), read_reference(model()));
}

/// A reference of a module that was cast: model.to(bfloat16) rounds the frequencies with the weights.
TEST(StoredFrequencies, GiveTheLogitsOfACastModule) {
  const std::filesystem::path model = references / "qwen3-qknorm-bf16";
  const Reference reference = read_reference(model, "reference_stored_frequencies.json");
  EngineOptions options;
  options.dtype = DType::f32;
  options.rope_frequencies = RopeFrequencies::stored;
  Engine stored = Engine::load(model, options), exact = load_on("cpu", model, DType::f32);
  EXPECT_LE(largest_error(stored, reference), 2e-4);
  EXPECT_GT(largest_error(exact, reference), 1e-3);
}

std::vector<std::string> reference_models() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(references))
    if (entry.is_directory()) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

INSTANTIATE_TEST_SUITE_P(Models, References,
                         testing::Combine(testing::ValuesIn(reference_models()), testing::Values("cpu", "cuda")),
                         [](const auto& test) {
                           std::string name = std::get<0>(test.param) + "_" + std::get<1>(test.param);
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

/// A checkpoint and the ranks that share it: 6 heads over 4 and 8 ranks leave ranks with copies of keys, and without
/// any head.
class RankedReferences : public testing::TestWithParam<std::tuple<std::string, Split>> {
 protected:
  std::filesystem::path model() const { return references / std::get<0>(GetParam()); }
  Split split() const { return std::get<1>(GetParam()); }
  Engine load(DType dtype, std::int64_t max_batch_tokens = 512) const {
    return load_on("cpu", model(), dtype, max_batch_tokens, 3, split());
  }
};

TEST_P(RankedReferences, Float32LogitsAreWithin2e4AndGreedyTokensIdentical) {
  const Reference reference = read_reference(model());
  Engine engine = load(DType::f32);
  EXPECT_LE(largest_error(engine, reference), 2e-4);
  engine.reset(0);
  GenerateOptions options;
  options.max_new_tokens = static_cast<std::int64_t>(reference.greedy_ids.size());
  EXPECT_EQ(generate(engine, reference.input_ids, options).ids, reference.greedy_ids);
}

TEST_P(RankedReferences, ChunksAndBatchesGiveTheSameLogits) {
  expect_same_in_chunks_and_batches(load(DType::f32, 7), read_reference(model()));
}

TEST_P(RankedReferences, Bf16GreedyTokensAgreeAboveTheMargin) {
  expect_greedy_above_margin("cpu", model(), DType::bf16, split());
}

std::string name_of_ranked(const testing::TestParamInfo<std::tuple<std::string, Split>>& info) {
  const auto& [model, split] = info.param;
  std::string name = fmt::format("{}_{}_tensor_{}_experts", model, split.tensor, split.experts);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

std::vector<std::string> mixture_models() {
  std::vector<std::string> names = reference_models();
  std::erase_if(names, [](const std::string& name) { return load_config(references / name).experts == 0; });
  return names;
}

INSTANTIATE_TEST_SUITE_P(Models, RankedReferences,
                         testing::Combine(testing::ValuesIn(reference_models()),
                                          testing::Values(Split{2}, Split{3}, Split{4}, Split{8})),
                         name_of_ranked);
INSTANTIATE_TEST_SUITE_P(Experts, RankedReferences,
                         testing::Combine(testing::Values("mixtral-bf16", "qwen3moe-mixed-f32"),
                                          testing::Values(Split{1, 3}, Split{4, 2})),
                         name_of_ranked);
/// Mixtures with as many experts as the splits ask for.
std::vector<std::tuple<std::string, Split>> spread_mixtures(std::initializer_list<Split> splits) {
  std::vector<std::tuple<std::string, Split>> list;
  for (const std::string& name : mixture_models())
    for (const Split split : splits)
      if (load_config(references / name).experts >= split.experts) list.emplace_back(name, split);
  return list;
}

INSTANTIATE_TEST_SUITE_P(
    LongExperts, RankedReferences,
    testing::ValuesIn(spread_mixtures({{1, 2}, {1, 4}, {1, 8}, {2, 2}, {3, 3}, {4, 4}, {8, 2}, {8, 4}, {8, 8}})),
    name_of_ranked);

}  // namespace
}  // namespace cermet
