// Attention over a batch of sequences of one length, with biases and masks, operands in any layout: the general task
// for each sequence.
#pragma once

#include "kernel/cuda/device/attention/batched_scores.cuh"
#include "kernel/cuda/device/attention/general.cuh"

namespace cermet::attention {

template <GeneralConfig C, ScoreConfig S, bool Steps>
struct BatchedTask {
  using Params = BatchedParams;
  using General = GeneralTask<C>;

  /// What operands do to the scores of one sequence, and how far apart the elements of its rows are.
  struct Operands : BatchedScores<S> {
    static constexpr bool steps = Steps;
    CERMET_DEVICE int64_t q_step() const { return this->p.q_step; }
    CERMET_DEVICE int64_t k_step() const { return this->p.k_step; }
    CERMET_DEVICE int64_t v_step() const { return this->p.v_step; }
  };

  template <class Team>
  static CERMET_DEVICE void run(const Params& p, uint32_t item, Team team, char* smem) {
    const BatchItem at = batch_item(p, item);
    const attention::Params own = batch_params<C.q, C.kv, C.out>(p, at.batch);
    General::attend(own, Operands{{p, at.batch}}, Sequence{0, 0, own.tokens, own.key_tokens, 0}, at.kv_head,
                    at.tile * General::rows, team, smem);
  }
};

}  // namespace cermet::attention
