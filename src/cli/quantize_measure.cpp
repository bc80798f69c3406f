#include "cli/quantize_measure.hpp"

#include <algorithm>
#include <array>

#include "cli/ui/interrupt.hpp"
#include "cli/ui/progress.hpp"
#include "model/checkpoint/checkpoint.hpp"
#include "model/generate.hpp"

namespace cermet::cli {
namespace {

Engine load(const std::filesystem::path& folder, const MeasureOptions& options, std::int64_t batch,
            std::int64_t context) {
  ModelOptions model;
  model.model = folder.string();
  model.engine.device = options.device;
  model.engine.threads = options.threads;
  model.engine.all_logits = true;
  return load_engine(model, context, batch);
}

}  // namespace

std::int64_t checkpoint_bytes(const std::filesystem::path& folder) { return Checkpoint::open(folder).total_bytes(); }

void measure_perplexity(const std::filesystem::path& folder, std::span<const std::int32_t> ids,
                        const MeasureOptions& options, const std::string& title, MeasuredModel& figures) {
  const std::int64_t longest = load_config(folder).max_position_embeddings;
  const std::int64_t window = std::min({options.window, longest, static_cast<std::int64_t>(ids.size())});
  require(window >= 2, "--heldout: expected at least 2 tokens, found {}", ids.size());
  Engine engine = load(folder, options, std::min<std::int64_t>(window, 512), window);
  Progress progress(title);
  figures.machine = engine.device_name();
  figures.perplexity = evaluate(engine, ids, window, &interrupted(),
                                [&](std::int64_t done, std::int64_t total) { progress.update(done, total); });
}

void measure_speed(const std::filesystem::path& folder, const MeasureOptions& options, MeasuredModel& figures) {
  const ModelConfig config = load_config(folder);
  const std::int64_t prompt = std::min<std::int64_t>(128, config.max_position_embeddings / 2),
                     steps = std::min<std::int64_t>(32, prompt - 1);
  if (steps < 2) return;
  Engine engine = load(folder, options, 512, prompt + steps);
  figures.machine = engine.device_name();
  std::vector<std::int32_t> ids;
  for (std::int64_t i = 0; i < prompt; ++i) ids.push_back(static_cast<std::int32_t>(i * 7919 % config.vocab_size));
  std::array<double, 3> prefill{}, decode{};
  for (std::size_t round = 0; round <= prefill.size(); ++round) {
    engine.reset(0);
    const Generation generation =
        generate(engine, ids, {.max_new_tokens = steps, .sampling = {}, .stop_ids = {}, .cancelled = &interrupted()});
    stop_if_interrupted();
    if (round == 0) continue;
    prefill[round - 1] = generation.prefill_tokens_per_second();
    decode[round - 1] = generation.decode_tokens_per_second();
  }
  std::sort(prefill.begin(), prefill.end());
  std::sort(decode.begin(), decode.end());
  figures.prefill_tokens_per_second = prefill[1];
  figures.decode_tokens_per_second = decode[1];
}

}  // namespace cermet::cli
