// Many prompts at once through the C interface.
#include <cermet/cermet.hpp>
#include <map>
#include <set>

#include "tests/api/model_fixture.hpp"
#include "tests/support/heap.hpp"

namespace cermet::test {
namespace {

class Batch : public Model {
 protected:
  ~Batch() override { cermet_batch_destroy(batch); }
  void begin(std::int64_t sequences) {
    options.max_sequences = sequences;
    options.dtype = "f32";
    ASSERT_EQ(load(tiny), CERMET_OK) << cermet_last_error_message();
  }
  std::vector<std::int32_t> alone(const std::vector<std::int32_t>& prompt, const cermet_generate_options& generate) {
    std::vector<std::int32_t> ids;
    const auto take = [](void* user, int32_t id, const char*, size_t) -> int32_t {
      static_cast<std::vector<std::int32_t>*>(user)->push_back(id);
      return 0;
    };
    EXPECT_EQ(cermet_model_reset(model, 0), CERMET_OK);
    EXPECT_EQ(cermet_model_generate(model, prompt.data(), prompt.size(), &generate, take, &ids, nullptr), CERMET_OK)
        << cermet_last_error_message();
    return ids;
  }
  std::int64_t submit(const std::vector<std::int32_t>& prompt, const cermet_generate_options* generate = nullptr) {
    std::int64_t request = -1;
    EXPECT_EQ(cermet_batch_submit(batch, prompt.data(), prompt.size(), generate, &request), CERMET_OK)
        << cermet_last_error_message();
    return request;
  }
  size_t step() {
    size_t left = 0;
    EXPECT_EQ(cermet_batch_step(batch, &left), CERMET_OK) << cermet_last_error_message();
    return left;
  }
  /// Tokens by pieces of two; `end` gets the result when the request is done.
  std::vector<std::int32_t> poll(std::int64_t request, std::optional<cermet_generation>* end = nullptr) {
    std::vector<std::int32_t> all, piece(2);
    for (size_t count = 2; count > 0;) {
      std::int32_t done = 0;
      cermet_generation result{};
      EXPECT_EQ(cermet_batch_poll(batch, request, piece.data(), piece.size(), &count, &done, &result), CERMET_OK)
          << cermet_last_error_message();
      all.insert(all.end(), piece.begin(), piece.begin() + static_cast<std::ptrdiff_t>(count));
      if (done && end) *end = result;
      if (done) break;
    }
    return all;
  }
  cermet_batch* batch = nullptr;
};

/// More prompts than sequences, of uneven length; the last is submitted while others run.
TEST_F(Batch, GivesEachPromptWhatItGetsAlone) {
  begin(2);
  const std::vector<std::int32_t> prompts[] = {{5, 6, 7, 8, 9}, {11}, {1, 2, 3}, {300, 4}};
  cermet_generate_options generate[4];
  std::vector<std::vector<std::int32_t>> expected, found(4);
  for (size_t i = 0; i < 4; ++i) {
    generate[i] = cermet_generate_defaults();
    generate[i].max_new_tokens = static_cast<int64_t>(3 + 4 * i);
    generate[i].temperature = i == 2 ? 0.8 : 0;
    generate[i].seed = 7;
    generate[i].ignore_eos = 1;
    expected.push_back(alone(prompts[i], generate[i]));
  }
  ASSERT_EQ(cermet_batch_create(model, &batch), CERMET_OK) << cermet_last_error_message();
  std::vector<std::int64_t> requests;
  for (size_t i = 0; i < 3; ++i) requests.push_back(submit(prompts[i], &generate[i]));
  EXPECT_EQ(step(), 3u);
  EXPECT_EQ(poll(requests[0]).size(), 1u) << "a token for each pass";
  requests.push_back(submit(prompts[3], &generate[3]));
  std::vector<std::optional<cermet_generation>> ends(4);
  found[0] = {expected[0][0]};
  for (bool more = true; more;) {
    more = step() > 0;
    for (size_t i = 0; i < 4; ++i) {
      if (ends[i]) continue;
      const std::vector<std::int32_t> ids = poll(requests[i], &ends[i]);
      found[i].insert(found[i].end(), ids.begin(), ids.end());
    }
  }
  EXPECT_EQ(found, expected);
  for (size_t i = 0; i < 4; ++i) {
    ASSERT_TRUE(ends[i]) << i;
    EXPECT_EQ(ends[i]->end, CERMET_END_LENGTH);
    EXPECT_EQ(ends[i]->prompt_tokens, prompts[i].size());
    EXPECT_EQ(ends[i]->new_tokens, expected[i].size());
  }
  EXPECT_EQ(step(), 0u) << "nothing is left to compute";
}

TEST_F(Batch, CancelsWhatRunsAndWhatWaits) {
  begin(1);
  ASSERT_EQ(cermet_batch_create(model, &batch), CERMET_OK);
  cermet_generate_options generate = cermet_generate_defaults();
  generate.ignore_eos = 1;
  const std::int64_t runs = submit({5, 6}, &generate), waits = submit({7}, &generate), next = submit({8}, &generate);
  EXPECT_EQ(step(), 3u);
  for (const std::int64_t request : {runs, waits})
    EXPECT_EQ(cermet_batch_cancel(batch, request), CERMET_OK) << cermet_last_error_message();
  EXPECT_EQ(cermet_batch_cancel(batch, runs), CERMET_OK) << "it has ended already";
  EXPECT_EQ(step(), 1u) << "the place is free";
  std::optional<cermet_generation> end;
  EXPECT_EQ(poll(runs, &end).size(), 1u) << "the token that it had";
  ASSERT_TRUE(end);
  EXPECT_EQ(end->end, CERMET_END_CANCELLED);
  EXPECT_TRUE(poll(waits).empty());
  EXPECT_EQ(poll(next).size(), 1u);
  expect_refused(CERMET_INVALID_ARGUMENT, cermet_batch_cancel(batch, waits),
                 {"request 1: expected one that was submitted and whose end was not polled"});
}

TEST_F(Batch, HoldsTheModelsSequences) {
  begin(2);
  ASSERT_EQ(cermet_batch_create(model, &batch), CERMET_OK);
  const int32_t id = 5;
  const auto in_use = [](cermet_status status) {
    expect_refused(CERMET_INVALID_ARGUMENT, status,
                   {"model: expected one that no batch uses, found one whose batch is not destroyed"});
  };
  in_use(cermet_model_generate(model, &id, 1, nullptr, nullptr, nullptr, nullptr));
  in_use(cermet_model_reset(model, 0));
  std::vector<float> logits(cermet_model_vocab_size(model));
  in_use(cermet_model_logits(model, &id, 1, logits.data()));
  cermet_batch* second = nullptr;
  in_use(cermet_batch_create(model, &second));
  submit({5});
  step();
  cermet_batch_destroy(batch);
  batch = nullptr;
  EXPECT_EQ(cermet_model_length(model, 0), 0) << "contexts are empty again";
  EXPECT_EQ(cermet_model_logits(model, &id, 1, logits.data()), CERMET_OK) << cermet_last_error_message();
  ASSERT_EQ(cermet_batch_create(model, &batch), CERMET_OK);
  cermet_model_destroy(model);
  model = nullptr;
  submit({5});
  EXPECT_EQ(step(), 1u) << "the batch keeps the model";
}

/// Where any token may follow, many are parts of characters.
TEST_F(Batch, GivesTextAsItsTokensComplete) {
  options.max_sequences = 2;
  ASSERT_EQ(load(demo), CERMET_OK) << cermet_last_error_message();
  cermet_generate_options generate = cermet_generate_defaults();
  generate.temperature = 50;
  generate.ignore_eos = 1;
  generate.max_new_tokens = 32;
  const auto detokenized = [&](const std::vector<std::int32_t>& ids) {
    size_t length = 0;
    std::string text(4096, 0);
    EXPECT_EQ(cermet_model_detokenize(model, ids.data(), ids.size(), 0, text.data(), text.size(), &length), CERMET_OK);
    text.resize(length);
    return text;
  };
  ASSERT_EQ(cermet_batch_create(model, &batch), CERMET_OK) << cermet_last_error_message();
  std::vector<std::int64_t> requests;
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    generate.seed = seed;
    requests.push_back(submit({5, 6}, &generate));
  }
  std::map<std::int64_t, std::pair<std::vector<std::int32_t>, std::string>> found;
  std::set<std::int64_t> ended;
  int held_back = 0;
  while (ended.size() < requests.size()) {
    step();
    for (const std::int64_t request : requests) {
      if (ended.contains(request)) continue;
      auto& [ids, all] = found[request];
      std::int32_t id = 0, done = 0;
      size_t count = 0, length = 0;
      const char* text = nullptr;
      ASSERT_EQ(cermet_batch_poll_text(batch, request, &id, 1, &count, &text, &length, &done, nullptr), CERMET_OK)
          << cermet_last_error_message();
      ids.insert(ids.end(), &id, &id + count);
      all.append(text, length);
      held_back += count == 1 && length == 0;
      if (done) ended.insert(request);
    }
  }
  for (const auto& [request, made] : found)
    EXPECT_EQ(made.second, detokenized(made.first)) << "nothing of a character is lost or given early";
  EXPECT_GT(held_back, 0) << "or else no character was split";
}

TEST_F(Batch, RefusesByName) {
  begin(2);
  expect_refused(CERMET_INVALID_ARGUMENT, cermet_batch_create(nullptr, &batch),
                 {"model: expected a pointer, found NULL"});
  ASSERT_EQ(cermet_batch_create(model, &batch), CERMET_OK);
  std::int64_t request = -1;
  expect_refused(CERMET_INVALID_ARGUMENT, cermet_batch_submit(batch, nullptr, 0, nullptr, &request),
                 {"prompt: expected at least one token, found none"});
  const int32_t wrong = 320, right = 7;
  expect_refused(CERMET_INVALID_ARGUMENT, cermet_batch_submit(batch, &wrong, 1, nullptr, &request),
                 {"token id: expected 0 to 319, found 320"});
  cermet_generate_options generate = cermet_generate_defaults();
  generate.top_p = 0;
  expect_refused(CERMET_INVALID_ARGUMENT, cermet_batch_submit(batch, &right, 1, &generate, &request),
                 {"top_p: expected a number in (0, 1], found 0"});
  EXPECT_EQ(request, -1);
  size_t count = 0;
  std::int32_t done = 0;
  expect_refused(CERMET_INVALID_ARGUMENT, cermet_batch_poll(batch, 0, nullptr, 0, &count, &done, nullptr),
                 {"request 0: expected one that was submitted"});
  ASSERT_EQ(load(tiny, "null"), CERMET_OK);
  cermet_batch* null = nullptr;
  expect_refused(CERMET_UNSUPPORTED, cermet_batch_create(model, &null), {"expected a device that computes"});
}

TEST_F(Batch, ASubmissionWithoutMemoryLeavesNothingBehind) {
  begin(2);
  ASSERT_EQ(cermet_batch_create(model, &batch), CERMET_OK);
  const std::vector<std::int32_t> prompt = {5, 6};
  std::int64_t request = -1;
  const auto submit_with = [&](std::int64_t allocations) {
    heap::fail_after(allocations);
    const cermet_status status = cermet_batch_submit(batch, prompt.data(), prompt.size(), nullptr, &request);
    heap::fail_after(heap::never);
    return status;
  };
  std::int64_t enough = 0;
  for (cermet_status status = CERMET_OUT_OF_MEMORY; status != CERMET_OK; ++enough) {
    status = submit_with(enough);
    if (status != CERMET_OK) expect_refused(CERMET_OUT_OF_MEMORY, status, {"memory: expected room"});
    ASSERT_LT(enough, 100);
  }
  EXPECT_GT(enough, 3) << "several were refused";
  EXPECT_EQ(request, 0) << "none of those has a number";
  EXPECT_EQ(step(), 1u);
  EXPECT_EQ(poll(request).size(), 1u);
}

TEST_F(Batch, RefusesToGoOnAfterAStepThatFailed) {
  begin(2);
  ASSERT_EQ(cermet_batch_create(model, &batch), CERMET_OK);
  const std::int64_t request = submit({5, 6});
  EXPECT_EQ(step(), 1u);
  submit({7});
  size_t left = 0;
  heap::fail_after(0);
  const cermet_status failed = cermet_batch_step(batch, &left);
  heap::fail_after(heap::never);
  expect_refused(CERMET_OUT_OF_MEMORY, failed, {"memory: expected room"});
  expect_refused(CERMET_INVALID_ARGUMENT, cermet_batch_step(batch, &left),
                 {"batch: expected one whose steps succeeded; one failed"});
  const std::int32_t id = 8;
  std::int64_t none = -1;
  expect_refused(CERMET_INVALID_ARGUMENT, cermet_batch_submit(batch, &id, 1, nullptr, &none),
                 {"batch: expected one whose steps succeeded; one failed"});
  EXPECT_EQ(cermet_batch_cancel(batch, request), CERMET_OK) << cermet_last_error_message();
  std::optional<cermet_generation> end;
  EXPECT_EQ(poll(request, &end).size(), 1u) << "the token that it had";
  ASSERT_TRUE(end);
  EXPECT_EQ(end->end, CERMET_END_CANCELLED);
}

TEST_F(Batch, HasACppFace) {
  cermet_model_options sizes = cermet_model_defaults();
  sizes.max_sequences = 2;
  cermet::model model(tiny, sizes);
  std::int64_t first = 0, second = 0;
  cermet_generate_options generate = cermet_generate_defaults();
  generate.max_new_tokens = 70;
  generate.ignore_eos = 1;
  cermet::batch batch(model);
  first = batch.submit({5, 6}, generate);
  second = batch.submit({7});
  EXPECT_EQ(batch.step(), 2u);
  batch.cancel(second);
  EXPECT_TRUE(batch.poll(second).done);
  EXPECT_THROW(batch.poll(second), cermet::error);
  while (batch.step() > 0) continue;
  const auto progress = batch.poll(first);
  EXPECT_EQ(progress.text, "") << "the model has no tokenizer";
  EXPECT_TRUE(progress.done);
  EXPECT_EQ(progress.ids.size(), 70u);
  EXPECT_EQ(progress.result.new_tokens, 70u);
}

}  // namespace
}  // namespace cermet::test
