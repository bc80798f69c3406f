// Collectives as launches of their own kernels, over peer memory: what lets them join a super-kernel's region, where
// the host cannot make a call. Selection takes the communicator's call otherwise, which chooses its way by size.
#include "base/checked.hpp"
#include "kernel/communicator.hpp"
#include "kernel/cuda/peer/call.hpp"
#include "kernel/cuda/peer/group_memory.hpp"
#include "kernel/kernel.hpp"

namespace cermet::cuda::peer_calls_file {
namespace {

/// As many as other tasks of a region compute with.
constexpr int joined_threads = 256;
/// Of operand and result, the larger one: beyond, NCCL or shares may be sooner, which a region's few blocks do not wait
/// for.
constexpr std::int64_t most_bytes = 1 << 20;

std::int64_t most_bytes_of(const TensorType& type, const SymbolValues& sizes) {
  std::int64_t bytes = byte_size(type.dtype);
  for (const Dim& dim : type.dims) bytes *= dim.value(sizes);
  return bytes;
}

Decline declines(const Region& region) {
  const Problem& p = region.problem();
  const std::int64_t ranks = p.attributes.integer("ranks");
  if (ranks <= 1) return "takes the operand of one of several ranks";
  if (ranks > peer::most_ranks) return fmt::format("more than {} ranks", peer::most_ranks);
  if (p.has(1)) return "row counts for each pair of ranks are read by the host";
  const SymbolValues& most = region.maximum();
  if (const std::int64_t bytes = std::max(most_bytes_of(p.input(0), most), most_bytes_of(p.outputs[0], most));
      bytes > most_bytes)
    return fmt::format("up to {} bytes, at most {}", bytes, most_bytes);
  return std::nullopt;
}

/// Of reductions one for each width of vectors, the widest first: which one a call takes follows from its size.
std::vector<Program> programs(const Problem& p, Collective kind) {
  if (!has_reduction(kind)) return {peer_move(joined_threads)};
  const auto element = static_cast<int>(size_of(p.input(0).dtype));
  std::vector<Program> list;
  for (int width = 16 / element; width >= 1; width /= 2)
    list.push_back(peer_reduction(p.input(0).dtype, reduction_from_name(p.attributes.text("reduction")),
                                  static_cast<int>(p.attributes.integer("ranks")), width, joined_threads));
  return list;
}

Launcher bind(const Problem& p, Collective kind) {
  return [kind, what = p.to_string(), ranks = static_cast<int>(p.attributes.integer("ranks")),
          root = has_root(kind) ? static_cast<int>(p.attributes.integer("root")) : 0](const LaunchArgs& args) {
    const TensorView &x = args.inputs[0], &y = args.outputs[0];
    require(x.is_dense() && y.is_dense(), "{}: expected dense operands on a GPU, found {} and {} with strides",
            name_of(kind), x.type().to_string(), y.type().to_string());
    if (x.elements() == 0) return;
    const GroupMemory memory(args, what, ranks);
    const PeerCall call{.kind = kind,
                        .rank = memory.link.rank,
                        .size = ranks,
                        .root = root,
                        .x = x.data,
                        .y = y.data,
                        .piece = x.elements() / (cuts_operand(kind) ? ranks : 1),
                        .element_bytes = byte_size(x.dtype)};
    const peer::Params params =
        peer_params(memory.link, call, memory.channels, joined_threads, peer::Protocol::stamped);
    std::size_t program = 0;
    if (has_reduction(kind))
      for (int width = static_cast<int>(16 / call.element_bytes); width > call.width(); width /= 2) ++program;
    args.queue->run(program, params.channels, params);
  };
}

Kernel make(Collective kind, OpKind op) {
  return {.name = fmt::format("peer.{}", name_of(kind)),
          .op = op,
          .summary =
              "one rank's operand, over memory that the ranks' GPUs address: a launch that can join a super-kernel's "
              "region",
          .communicates = true,
          .declines = declines,
          .bind = [kind](const Problem& p) { return bind(p, kind); },
          .programs = [kind](const Problem& p) { return programs(p, kind); }};
}

}  // namespace

extern const Kernel peer_all_reduce, peer_reduce_scatter, peer_all_gather, peer_all_to_all;
const Kernel peer_all_reduce = make(Collective::all_reduce, OpKind::all_reduce);
const Kernel peer_reduce_scatter = make(Collective::reduce_scatter, OpKind::reduce_scatter);
const Kernel peer_all_gather = make(Collective::all_gather, OpKind::all_gather);
const Kernel peer_all_to_all = make(Collective::all_to_all, OpKind::all_to_all);

}  // namespace cermet::cuda::peer_calls_file
