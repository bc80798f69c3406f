// Continuous batching behind the C ABI: requests by number, and tokens not yet polled.
#include <algorithm>
#include <optional>
#include <unordered_map>

#include "api/guard.hpp"
#include "api/model.hpp"
#include "api/options.hpp"
#include "model/generate_batch.hpp"

namespace cermet::api {
namespace {

/// A request whose end has not been polled.
struct Progress {
  std::vector<std::int32_t> ids;
  std::optional<StreamDecoder> decoder;     ///< of the tokens that were taken; none where the model has no tokenizer
  std::optional<cermet_generation> result;  ///< once it has ended
};

}  // namespace
}  // namespace cermet::api

struct cermet_batch {
  std::shared_ptr<cermet_model> model;
  std::unordered_map<std::size_t, cermet::api::Progress> requests;
  std::string text;  ///< of the last poll
  cermet::BatchGenerator generator;

  explicit cermet_batch(std::shared_ptr<cermet_model> of)
      : model(std::move(of)),
        generator(model->engine,
                  {[this](std::size_t request, std::int32_t id) { requests.at(request).ids.push_back(id); },
                   [this](std::size_t request, const cermet::Generation& result) {
                     requests.at(request).result = cermet::api::to_c(result);
                   }}) {
    model->has_batch = true;
    model->conversation->forget();
  }
  ~cermet_batch() {
    for (std::int64_t s = 0; s < model->max_sequences; ++s) model->engine.reset(static_cast<int>(s));
    model->has_batch = false;
  }
  cermet_batch(const cermet_batch&) = delete;
  cermet_batch& operator=(const cermet_batch&) = delete;

  auto find(std::int64_t request) {
    const auto found = request < 0 ? requests.end() : requests.find(static_cast<std::size_t>(request));
    cermet::require(found != requests.end(),
                    "request {}: expected one that was submitted and whose end was not polled, found none", request);
    return found;
  }
};

using namespace cermet;  // NOLINT(google-build-using-namespace): the C functions below are the face of this namespace

cermet_status cermet_batch_create(cermet_model* model, cermet_batch** batch) {
  return api::guarded([&] {
    api::require_pointer(model, "model");
    api::require_pointer(batch, "batch");
    api::require_computing(*model);
    api::require_no_batch(*model);
    *batch = std::make_unique<cermet_batch>(model->self).release();
  });
}

void cermet_batch_destroy(cermet_batch* batch) { delete batch; }

cermet_status cermet_batch_submit(cermet_batch* batch, const int32_t* prompt, size_t count,
                                  const cermet_generate_options* options, int64_t* request) {
  return api::guarded([&] {
    api::require_pointer(batch, "batch");
    if (count > 0) api::require_pointer(prompt, "prompt");
    api::require_pointer(request, "request");
    const GenerateOptions given = api::generate_options(*batch->model, options);
    std::unordered_map<std::size_t, api::Progress> made(1);  // all memory is there before the generator has the request
    api::Progress& progress = made[0];
    if (batch->model->tokenizer) progress.decoder.emplace(*batch->model->tokenizer);
    batch->requests.reserve(batch->requests.size() + 1);
    auto node = made.extract(made.begin());
    node.key() = batch->generator.add({{prompt, prompt + count}, given});
    *request = static_cast<int64_t>(node.key());
    batch->requests.insert(std::move(node));
  });
}

cermet_status cermet_batch_step(cermet_batch* batch, size_t* left) {
  return api::guarded([&] {
    api::require_pointer(batch, "batch");
    api::require_pointer(left, "left");
    batch->generator.step();
    *left = batch->generator.pending();
  });
}

cermet_status cermet_batch_poll(cermet_batch* batch, int64_t request, int32_t* ids, size_t capacity, size_t* count,
                                int32_t* done, cermet_generation* result) {
  const char* text = nullptr;
  size_t length = 0;
  return cermet_batch_poll_text(batch, request, ids, capacity, count, &text, &length, done, result);
}

cermet_status cermet_batch_poll_text(cermet_batch* batch, int64_t request, int32_t* ids, size_t capacity, size_t* count,
                                     const char** text, size_t* length, int32_t* done, cermet_generation* result) {
  return api::guarded([&] {
    api::require_pointer(batch, "batch");
    if (capacity > 0) api::require_pointer(ids, "ids");
    api::require_pointer(count, "count");
    api::require_pointer(text, "text");
    api::require_pointer(length, "length");
    api::require_pointer(done, "done");
    const auto found = batch->find(request);
    api::Progress& progress = found->second;
    const std::size_t taken = std::min(capacity, progress.ids.size());
    const bool ends = progress.result && taken == progress.ids.size();
    batch->text.clear();
    if (progress.decoder) {
      for (std::size_t i = 0; i < taken; ++i) batch->text += progress.decoder->push(progress.ids[i]);
      if (ends) batch->text += progress.decoder->finish();
    }
    *text = batch->text.data();
    *length = batch->text.size();
    *count = taken;
    const auto end = progress.ids.begin() + static_cast<std::ptrdiff_t>(taken);
    std::copy(progress.ids.begin(), end, ids);
    progress.ids.erase(progress.ids.begin(), end);
    *done = ends;
    if (!ends) return;
    if (result) *result = *progress.result;
    batch->requests.erase(found);
  });
}

cermet_status cermet_batch_cancel(cermet_batch* batch, int64_t request) {
  return api::guarded([&] {
    api::require_pointer(batch, "batch");
    if (!batch->find(request)->second.result) batch->generator.cancel(static_cast<std::size_t>(request));
  });
}
