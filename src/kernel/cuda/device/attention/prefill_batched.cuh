// Attention over a batch of sequences of one length on the tensor cores, with biases and masks: the task for many
// queries, for each sequence.
#pragma once

#include "kernel/cuda/device/attention/batched_scores.cuh"
#include "kernel/cuda/device/attention/prefill.cuh"

namespace cermet::attention {

template <PrefillConfig C, ScoreConfig S>
struct BatchedPrefillTask {
  using Params = BatchedParams;
  using Prefill = PrefillTask<C, BatchedScores<S>>;

  template <class Team>
  static CERMET_DEVICE void run(const Params& p, uint32_t item, Team team, char* smem) {
    const BatchItem at = batch_item(p, item);
    const attention::Params own = batch_params<C.q, C.kv, C.out>(p, at.batch);
    Prefill::attend(own, p.a.scale * log2_e, BatchedScores<S>{p, at.batch},
                    Sequence{0, 0, own.tokens, own.key_tokens, 0}, at.kv_head, at.tile * Prefill::rows, team, smem);
  }
};

}  // namespace cermet::attention
