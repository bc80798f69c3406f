// A decoding step that chooses its own tokens and makes the next step's inputs, compiled, with the memory that its
// choices read and write.
#pragma once

#include <memory>
#include <span>

#include "model/engine.hpp"
#include "model/pass_inputs.hpp"
#include "runtime/session.hpp"

namespace cermet {

/// What the choice of tokens reads, and where tokens appear for the host.
class ChoiceInputs {
 public:
  /// For up to `sequences` sequences; tokens of the last `rows` steps are kept.
  ChoiceInputs(std::int64_t sequences, std::int64_t rows, const DeviceQueue& queue);
  /// Binds it to a graph with a choice (decoder_choice.hpp); `greedy`: one that reads no parameters.
  void bind(Executable& executable, bool greedy) const;
  /// Parameters and draws of the sequences, for steps that are counted from 0. Nothing of earlier steps may be under
  /// way.
  void begin(std::span<const StepSequence> sequences);
  /// Whether the tokens of so many sequences in a step are there.
  bool are_there(std::int64_t step, std::int64_t sequences) const;
  /// Takes them, so that their place can be used again.
  void take(std::int64_t step, std::span<std::int32_t> ids);

 private:
  static constexpr std::int32_t absent = -2;
  struct Lists {
    std::int64_t *seeds, *draws;
    float *temperature, *top_p, *min_p;
    std::int32_t *top_k, *count;
    Lists(std::byte* at, std::int64_t sequences);
    static std::int64_t bytes(std::int64_t sequences) { return sequences * (2 * 8 + 4 * 4) + 4; }
  };
  volatile std::int32_t* row(std::int64_t step) const {
    return reinterpret_cast<std::int32_t*>(made_) + step % rows_ * sequences_;
  }

  std::int64_t sequences_, rows_;
  DeviceQueue queue_;
  DeviceBuffer device_, pinned_, pinned_made_;
  AlignedBuffer own_, own_made_;
  std::byte* made_;
};

struct StepPass {
  std::int64_t tokens;  ///< at most
  bool greedy;
  PassInputs inputs;
  ChoiceInputs choice;
  Session session;
  std::unique_ptr<DeviceEvent> ended;  ///< the last launch, of a device

  /// Of a graph with a choice, for `sequences` at most, with `pages` pages each.
  StepPass(std::int64_t most_tokens, std::int64_t sequences, std::int64_t pages, std::int64_t rows, bool is_greedy,
           Graph graph, Context& machine, WeightStore& weights, const SessionOptions& options);
};

}  // namespace cermet
