// Checkpoints that generate text, one sequence or a batch. Part of cermet.hpp, which has what this needs.
#ifndef CERMET_MODEL_HPP_
#define CERMET_MODEL_HPP_

#include <cermet/cermet.hpp>

namespace cermet {

/// A checkpoint that generates text. Sequence 0 keeps its context from call to call; reset() clears it.
class model {
 public:
  /// Called with every new token and the text that it completes; returns whether to continue.
  using callback = std::function<bool(std::int32_t id, std::string_view text)>;

  explicit model(const std::string& folder, const cermet_model_options& options = cermet_model_defaults(),
                 const handle& on = default_handle()) {
    cermet_model* made = nullptr;
    face::check(cermet_model_load(on.get(), folder.c_str(), &options, &made));
    model_.reset(made);
  }

  /// Architecture, sizes, types and memory, as JSON.
  std::string info() const { return cermet_model_info(get()); }
  std::vector<std::int32_t> tokenize(std::string_view text, bool add_special = true) const {
    std::size_t count = 0;
    std::vector<std::int32_t> ids(text.size() + 16);
    face::check(cermet_model_tokenize(get(), text.data(), text.size(), add_special, ids.data(), ids.size(), &count));
    if (count > ids.size()) {
      ids.resize(count);
      face::check(cermet_model_tokenize(get(), text.data(), text.size(), add_special, ids.data(), ids.size(), &count));
    }
    ids.resize(count);
    return ids;
  }
  std::string detokenize(const std::vector<std::int32_t>& ids, bool skip_special = false) const {
    std::size_t length = 0;
    face::check(cermet_model_detokenize(get(), ids.data(), ids.size(), skip_special, nullptr, 0, &length));
    std::string text(length, '\0');
    face::check(
        cermet_model_detokenize(get(), ids.data(), ids.size(), skip_special, text.data(), text.size(), &length));
    return text;
  }
  /// Continues sequence 0 with the prompt and then with new tokens, which are returned. Exceptions of the callback
  /// propagate.
  std::vector<std::int32_t> generate(const std::vector<std::int32_t>& prompt,
                                     const cermet_generate_options& options = cermet_generate_defaults(),
                                     const callback& on_token = {}, cermet_generation* result = nullptr) {
    Run run{on_token, {}, nullptr};
    const cermet_status status =
        cermet_model_generate(get(), prompt.data(), prompt.size(), &options, &Run::take, &run, result);
    if (run.thrown) std::rethrow_exception(run.thrown);
    face::check(status);
    return std::move(run.ids);
  }
  /// The text after a prompt, in a fresh context.
  std::string complete(std::string_view prompt, const cermet_generate_options& options = cermet_generate_defaults()) {
    reset();
    std::string text;
    generate(tokenize(prompt), options, [&](std::int32_t, std::string_view piece) { return text += piece, true; });
    return text;
  }
  /// Rows of vocab_size float32 logits, one for each position. Empties sequence 0.
  std::vector<float> logits(const std::vector<std::int32_t>& ids) {
    std::vector<float> rows(ids.size() * vocab_size());
    face::check(cermet_model_logits(get(), ids.data(), ids.size(), rows.data()));
    return rows;
  }
  std::size_t vocab_size() const { return cermet_model_vocab_size(get()); }
  void reset(std::int32_t sequence = 0) { face::check(cermet_model_reset(get(), sequence)); }
  cermet_model* get() const { return model_.get(); }

 private:
  struct destroy {
    void operator()(cermet_model* m) const { cermet_model_destroy(m); }
  };
  struct Run {
    const callback& on_token;
    std::vector<std::int32_t> ids;
    std::exception_ptr thrown;

    static std::int32_t take(void* user, std::int32_t id, const char* text, std::size_t length) {
      Run& run = *static_cast<Run*>(user);
      try {
        if (id >= 0) run.ids.push_back(id);
        return run.on_token && !run.on_token(id, {text, length});
      } catch (...) {
        run.thrown = std::current_exception();
        return 1;
      }
    }
  };
  std::unique_ptr<cermet_model, destroy> model_;
};

/// Many prompts at once on a model whose options have max_sequences above 1. Uses all of its sequences.
class batch {
 public:
  explicit batch(const model& on) {
    cermet_batch* made = nullptr;
    face::check(cermet_batch_create(on.get(), &made));
    batch_.reset(made);
  }

  /// Puts a prompt at the end of the queue; returns its number.
  std::int64_t submit(const std::vector<std::int32_t>& prompt,
                      const cermet_generate_options& options = cermet_generate_defaults()) {
    std::int64_t request = 0;
    face::check(cermet_batch_submit(get(), prompt.data(), prompt.size(), &options, &request));
    return request;
  }
  /// Computes one pass; returns how many requests have not ended.
  std::size_t step() {
    std::size_t left = 0;
    face::check(cermet_batch_step(get(), &left));
    return left;
  }
  struct progress {
    std::vector<std::int32_t> ids;  ///< new ones
    std::string text;               ///< that they complete
    bool done = false;              ///< the request's number is no longer valid
    cermet_generation result{};     ///< once it is done
  };
  progress poll(std::int64_t request) {
    progress made;
    std::size_t count = 0;
    std::int32_t done = 0;
    do {
      std::int32_t ids[64];
      const char* text = nullptr;
      std::size_t length = 0;
      face::check(cermet_batch_poll_text(get(), request, ids, 64, &count, &text, &length, &done, &made.result));
      made.ids.insert(made.ids.end(), ids, ids + count);
      made.text.append(text, length);
    } while (count == 64 && !done);
    made.done = done != 0;
    return made;
  }
  void cancel(std::int64_t request) { face::check(cermet_batch_cancel(get(), request)); }
  cermet_batch* get() const { return batch_.get(); }

 private:
  struct destroy {
    void operator()(cermet_batch* b) const { cermet_batch_destroy(b); }
  };
  std::unique_ptr<cermet_batch, destroy> batch_;
};

}  // namespace cermet

#endif  // CERMET_MODEL_HPP_
