#include "quant/calibration.hpp"

#include <algorithm>

#include "base/buffer.hpp"
#include "base/text.hpp"
#include "quant/row_loops.hpp"
#include "quant/weight_matrix.hpp"

namespace cermet {
namespace {

constexpr std::size_t judged_every = 5;

void check_prompts(const std::vector<std::vector<std::int32_t>>& prompts, std::string_view kind,
                   const ModelConfig& config) {
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    require(!prompts[i].empty(), "{} prompt {}: expected at least one token, found none", kind, i + 1);
    require(static_cast<std::int64_t>(prompts[i].size()) <= config.max_position_embeddings,
            "{} prompt {}: expected at most {} tokens, found {}", kind, i + 1, config.max_position_embeddings,
            prompts[i].size());
    for (const std::int32_t id : prompts[i])
      require(id >= 0 && id < config.vocab_size, "{} prompt {}: expected token ids from 0 to {}, found {}", kind, i + 1,
              config.vocab_size - 1, id);
  }
}

class Packer {
 public:
  Packer(CalibrationSet& set, std::int64_t pass_tokens) : set_(set), limit_(pass_tokens) {}

  void add(std::size_t prompt, bool heldout) {
    const auto length = static_cast<std::int64_t>(set_.prompts[prompt].size());
    const bool fits =
        !set_.passes.empty() && set_.passes.back().heldout == heldout && set_.passes.back().tokens + length <= limit_;
    for (std::int64_t begin = 0; begin < length; begin += limit_) {
      if (!fits || begin > 0) set_.passes.push_back({{}, set_.tokens, 0, heldout});
      CalibrationPass& pass = set_.passes.back();
      const std::int64_t count = std::min(limit_, length - begin);
      pass.parts.push_back({prompt, begin, count});
      pass.tokens += count;
      set_.tokens += count;
    }
    set_.longest = std::max(set_.longest, length);
  }

 private:
  CalibrationSet& set_;
  std::int64_t limit_;
};

}  // namespace

CalibrationSet make_calibration_set(const QuantizeOptions& options, const ModelConfig& config,
                                    std::int64_t pass_tokens) {
  require(!options.calibration.empty(), "calibration: expected at least one prompt, found none");
  check_prompts(options.calibration, "calibration", config);
  check_prompts(options.heldout, "held-out", config);
  CalibrationSet set;
  std::vector<std::vector<std::int32_t>> judges = options.heldout;
  const bool set_aside = judges.empty();
  for (std::size_t i = 0; i < options.calibration.size(); ++i) {
    if (set_aside && i % judged_every == judged_every - 1) judges.push_back(options.calibration[i]);
    else set.prompts.push_back(options.calibration[i]);
  }
  if (judges.empty())
    judges.push_back(options.calibration.back());  // fewer than five prompts: the last is seen by both sides
  set.heldout_prompts = judges.size();
  std::ranges::move(judges, std::back_inserter(set.prompts));
  Packer packer(set, pass_tokens);
  const std::size_t learned = set.prompts.size() - set.heldout_prompts;
  for (std::size_t i = 0; i < set.prompts.size(); ++i) {
    if (i == learned) set.first_heldout_row = set.tokens;
    packer.add(i, i >= learned);
  }
  return set;
}

std::vector<float> embed(const CalibrationSet& set, const Checkpoint& checkpoint) {
  const std::int64_t width = checkpoint.config().hidden_size;
  const auto scale = static_cast<float>(checkpoint.config().decoder.embedding_scale);
  const std::string name = checkpoint.config().decoder.embedding.name + ".weight";
  const StoredTensor& table = checkpoint.require(name, std::array{checkpoint.config().vocab_size, width});
  const std::int64_t row_bytes = width * byte_size(table.dtype);
  std::vector<float> hidden(static_cast<std::size_t>(set.tokens * width));
  AlignedBuffer stored(row_bytes);
  const TensorView row(stored.data(), table.dtype, {1, width});
  std::int64_t at = 0;
  for (const CalibrationPass& pass : set.passes)
    for (const CalibrationPass::Part& part : pass.parts)
      for (std::int64_t i = 0; i < part.count; ++i, at += width) {
        const std::int64_t id = set.prompts[part.prompt][static_cast<std::size_t>(part.begin + i)];
        checkpoint.read(table, id * row_bytes, {stored.data(), static_cast<std::size_t>(row_bytes)});
        const std::span<float> values(hidden.data() + at, static_cast<std::size_t>(width));
        widen_row(row, 0, {}, values);
        for (float& value : values) value *= scale;
        if (row_loops::largest_bits(values) >= 0x7f800000u)
          fail(Status::invalid_file, "{}: {}: expected finite values, found NaN or infinity in row {}",
               checkpoint.file_of(table).path().string(), quote(name), id);
      }
  return hidden;
}

}  // namespace cermet
