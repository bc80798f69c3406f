// The choice of the next tokens of many sequences: the operator `sample`, or argmax, on all their rows of logits in one
// launch.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "model/sampler.hpp"

namespace cermet {

class BatchSampler {
 public:
  /// For sequences 0 to `sequences` - 1. Logits come in memory of the queue's device, or of the host where it has none.
  BatchSampler(std::int64_t sequences, std::int64_t vocab_size, ThreadPool& pool, const DeviceQueue& queue = {});
  ~BatchSampler();
  BatchSampler(const BatchSampler&) = delete;
  BatchSampler& operator=(const BatchSampler&) = delete;

  /// From now on a sequence's tokens are chosen so; `prompt`: what a repetition penalty knows, besides the tokens that
  /// are chosen. Throws Error naming the parameter that is out of range.
  void begin(int sequence, const Sampling& sampling, std::span<const std::int32_t> prompt = {});
  /// Tokens for rows of logits f32[rows, vocab_size], row i of sequence sequences[i], or of none where that is
  /// negative: its result means nothing then. Each sequence comes once, and was begun. Waits for them; what is returned
  /// is there until the next call.
  std::span<const std::int32_t> choose(const TensorView& logits, std::span<const int> sequences);
  /// Whether all of them take the largest logit, whatever came before. Then choose() and start() take i32[rows], the
  /// tokens, as well.
  bool take_largest(std::span<const int> sequences) const;
  /// The same in two halves, so that a device can go on meanwhile: start() enqueues the choice, and finish() waits for
  /// it. `place`, where given, is device memory that gets a token for each row, too; not with a repetition penalty.
  void start(const TensorView& logits, std::span<const int> sequences, std::int32_t* place = nullptr);
  std::span<const std::int32_t> finish();
  /// Tokens that were chosen for a sequence since it began, and others that were chosen elsewhere in its turn.
  std::int64_t draws(int sequence) const { return sequences_.at(static_cast<std::size_t>(sequence)).step; }
  void skip(int sequence, std::int64_t draws) { sequences_.at(static_cast<std::size_t>(sequence)).step += draws; }
  /// Whether a sequence's choice depends on the tokens before it beyond their logits.
  bool has_penalty(int sequence) const { return sequences_.at(static_cast<std::size_t>(sequence)).alone != nullptr; }

 private:
  struct Sequence {
    Sampling sampling;
    std::int64_t step = 0;
    std::unique_ptr<Sampler> alone;  ///< with a repetition penalty, whose tokens are its own
  };
  /// Operands of the operator and its result, [sequences] of each, one after the other.
  struct Lists {
    std::int64_t *seeds, *steps;
    float *temperature, *top_p, *min_p;
    std::int32_t *top_k, *ids;
    Lists(std::byte* at, std::int64_t sequences);
    static std::int64_t bytes(std::int64_t sequences) { return sequences * (2 * 8 + 5 * 4); }
  };

  /// Whether all rows take the largest logit; parameters were filled where some does not.
  bool fill();
  void run(const TensorView& logits, std::int32_t* place);
  /// Of the operator `sample`, for as many rows as there are logits.
  std::array<TensorView, 9> operands(const TensorView& logits) const;
  Sampler* alone(std::size_t row) const {
    return rows_[row] < 0 ? nullptr : sequences_[static_cast<std::size_t>(rows_[row])].alone.get();
  }

  std::int64_t vocab_size_;
  ThreadPool& pool_;
  DeviceQueue queue_;
  std::vector<Sequence> sequences_;
  std::vector<int> rows_;  ///< sequences of the choice that was started
  DeviceBuffer device_, pinned_;
  AlignedBuffer own_;
  std::unique_ptr<Stream> copies_;  ///< so that parameters arrive while the logits are computed, and tokens leave while
                                    ///< the queue's stream goes on
  std::unique_ptr<DeviceEvent> uploaded_, made_, arrived_;
  Lists host_, read_;  ///< where parameters are written, and where the operator reads them
  BoundOp greedy_op_;
  std::optional<BoundOp> op_;  ///< from the first sequence on that needs it
};

}  // namespace cermet
