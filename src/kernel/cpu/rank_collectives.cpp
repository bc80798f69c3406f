// Collectives of several processes or threads: kernel/rank_collective.hpp.
#include "kernel/rank_collective.hpp"

namespace cermet::cpu {

extern const Kernel ranks_all_reduce = rank_collective(Collective::all_reduce, OpKind::all_reduce);
extern const Kernel ranks_reduce_to = rank_collective(Collective::reduce_to, OpKind::reduce_to);
extern const Kernel ranks_reduce_scatter = rank_collective(Collective::reduce_scatter, OpKind::reduce_scatter);
extern const Kernel ranks_all_gather = rank_collective(Collective::all_gather, OpKind::all_gather);
extern const Kernel ranks_gather_to = rank_collective(Collective::gather_to, OpKind::gather_to);
extern const Kernel ranks_scatter_from = rank_collective(Collective::scatter_from, OpKind::scatter_from);
extern const Kernel ranks_broadcast_from = rank_collective(Collective::broadcast_from, OpKind::broadcast_from);
extern const Kernel ranks_all_to_all = rank_collective(Collective::all_to_all, OpKind::all_to_all);

}  // namespace cermet::cpu
