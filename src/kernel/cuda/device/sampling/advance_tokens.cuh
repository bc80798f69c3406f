// advance_tokens: the index inputs of the next decoding step. Tokens also go to a list that the host may read while the
// launch, or those after it, still run.
#pragma once

#include "kernel/cuda/device/sampling/advance_tokens.hpp"
#include "kernel/cuda/device/team.cuh"

namespace cermet::advance_tokens {

/// One work item: all sequences.
struct Task {
  using Params = advance_tokens::Params;

  template <class Team>
  static __device__ void run(const Params& p, uint32_t, Team team, char*) {
    const uint32_t number = static_cast<uint32_t>(*p.count);
    team.sync();  // all have read it
    for (int64_t b = team.rank(); b < p.sequences; b += threads) {
      const int32_t id = p.chosen[b * p.chosen_stride];
      asm volatile("st.relaxed.sys.global.u32 [%0], %1;" ::"l"(p.made + number % p.made_rows * p.made_stride +
                                                               b * p.column_stride),
                   "r"(id)
                   : "memory");
      const uint32_t position = static_cast<uint32_t>(p.positions[b * p.positions_stride]) + 1,
                     page = position / p.block_size;
      int32_t slot = -1;
      if (page < p.pages)
        slot = p.block_tables[b * p.table_stride + page * p.page_stride] * static_cast<int32_t>(p.block_size) +
               static_cast<int32_t>(position % p.block_size);
      p.ids[b * p.ids_stride] = id;
      p.positions[b * p.positions_stride] = static_cast<int32_t>(position);
      p.slots[b * p.slots_stride] = slot;
      p.context_lens[b * p.lens_stride] += 1;
      p.draws[b * p.draws_stride] += 1;
    }
    if (team.rank() == 0) *p.count = static_cast<int32_t>(number + 1);
  }
};

}  // namespace cermet::advance_tokens
