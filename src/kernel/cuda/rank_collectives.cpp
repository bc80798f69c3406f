// Collectives of several processes or threads: kernel/rank_collective.hpp.
#include "kernel/cuda/task.hpp"
#include "kernel/rank_collective.hpp"

namespace cermet::cuda::rank_collectives_file {
namespace {

Kernel make(Collective kind, OpKind op) {
  Kernel kernel = rank_collective(kind, op);
  kernel.programs = [](const Region&) { return std::vector<Program>(); };  // the communicator's library has them
  return kernel;
}

}  // namespace

extern const Kernel ranks_all_reduce, ranks_reduce_to, ranks_reduce_scatter, ranks_all_gather, ranks_gather_to,
    ranks_scatter_from, ranks_broadcast_from, ranks_all_to_all;
const Kernel ranks_all_reduce = make(Collective::all_reduce, OpKind::all_reduce);
const Kernel ranks_reduce_to = make(Collective::reduce_to, OpKind::reduce_to);
const Kernel ranks_reduce_scatter = make(Collective::reduce_scatter, OpKind::reduce_scatter);
const Kernel ranks_all_gather = make(Collective::all_gather, OpKind::all_gather);
const Kernel ranks_gather_to = make(Collective::gather_to, OpKind::gather_to);
const Kernel ranks_scatter_from = make(Collective::scatter_from, OpKind::scatter_from);
const Kernel ranks_broadcast_from = make(Collective::broadcast_from, OpKind::broadcast_from);
const Kernel ranks_all_to_all = make(Collective::all_to_all, OpKind::all_to_all);

}  // namespace cermet::cuda::rank_collectives_file
