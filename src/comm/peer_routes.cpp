#include "comm/peer_routes.hpp"

#include <algorithm>

namespace cermet::comm {
namespace {

// Peer memory: assumed, not measured over NVLink (docs/notes/collectives.md). An exchange is a flag's way and the launch; bytes are those that a rank sends, at
// a third of what a direction of an H200's 18 links has.
constexpr RouteModel exchange{.seconds = 3.5e-6, .bytes_per_second = 150e9};
// NCCL between two H200s, of the record bench/results/h200/compare/collectives.txt: 7.9 us at 8 KiB, 14.3 us at 1 MiB. Its larger messages are faster a byte,
// and take it anyway.
constexpr RouteModel nccl{.seconds = 7.8e-6, .bytes_per_second = 160e9};

double sent_at_once(const DenseCall& call) { return static_cast<double>(call.x_bytes()) * (call.size - 1); }
double sent_in_shares(const DenseCall& call) { return 2.0 * sent_at_once(call) / call.size; }

double peer_time(const DenseCall& call) {
  const double once = exchange.time(sent_at_once(call));
  return call.kind == Collective::all_reduce ? std::min(once, exchange.seconds + exchange.time(sent_in_shares(call))) : once;
}

}  // namespace

bool takes_two_shots(const DenseCall& call) {
  return call.kind == Collective::all_reduce && exchange.seconds + exchange.time(sent_in_shares(call)) < exchange.time(sent_at_once(call));
}

bool takes_peer_memory(const DenseCall& call) { return peer_time(call) < nccl.time(sent_in_shares(call)); }

}  // namespace cermet::comm
