#include "comm/measure.hpp"

#include <chrono>
#include <cstdlib>

namespace cermet::comm {
namespace {

/// Largest of the ranks' numbers.
double slowest(Communicator& communicator, double seconds) {
  double most = 0;
  for (const std::string& text : communicator.gather_text(fmt::format("{:.9g}", seconds)))
    most = std::max(most, std::strtod(text.c_str(), nullptr));
  return most;
}

constexpr std::int64_t calls_of_graph = 16;

/// Seconds of `calls` calls in a row on the slowest rank; of a device's graph, each replay is calls_of_graph of them.
double time_calls(Communicator& communicator, const CollectiveCall& call, Stream* stream, const CapturedGraph* graph,
                  std::int64_t calls) {
  communicator.barrier();
  const auto begin = std::chrono::steady_clock::now();
  for (std::int64_t i = 0; i < calls; i += graph ? calls_of_graph : 1)
    graph ? stream->replay(*graph) : communicator.run(call, stream);
  if (stream) stream->synchronize();
  return slowest(communicator, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
}

}  // namespace

double bus_factor(Collective kind, int ranks) {
  const double others = ranks - 1, share = others / ranks;
  switch (kind) {
    case Collective::all_reduce: return 2 * share;
    case Collective::reduce_to:
    case Collective::broadcast_from: return ranks > 1 ? 1 : 0;
    default: return share;
  }
}

CommTiming measure_collective(Communicator& communicator, Device& device, Stream* stream, Collective kind, DType dtype,
                              std::int64_t bytes, double seconds) {
  const std::int64_t ranks = communicator.size(), element = byte_size(dtype);
  const std::int64_t share = std::max<std::int64_t>((bytes + ranks * element - 1) / (ranks * element), 1),
                     whole = share * ranks;
  const bool gathers = joins_result(kind), scatters = cuts_operand(kind) && kind != Collective::all_to_all;
  const Shape x{gathers ? share : whole}, y{scatters ? share : whole};
  const DeviceBuffer of_x = device.allocate(x[0] * element), of_y = device.allocate(y[0] * element);
  if (stream) {
    stream->fill(of_x.data(), 0, of_x.size());
    stream->fill(of_y.data(), 0, of_y.size());
  } else {
    std::memset(of_x.data(), 0, static_cast<std::size_t>(of_x.size()));
    std::memset(of_y.data(), 0, static_cast<std::size_t>(of_y.size()));
  }
  const CollectiveCall call{kind, Reduction::sum, 0, {of_x.data(), dtype, x}, {of_y.data(), dtype, y}, {}};
  CommTiming timing{whole * element, 2, 0};
  time_calls(communicator, call, stream, nullptr, timing.calls);  // sets up what libraries need
  std::unique_ptr<CapturedGraph> graph;
  if (stream) {
    stream->begin_capture();
    for (std::int64_t i = 0; i < calls_of_graph; ++i) communicator.run(call, stream);
    graph = stream->end_capture();
    timing.calls = calls_of_graph;
  }
  for (;; timing.calls *= 2) {
    const double took = time_calls(communicator, call, stream, graph.get(), timing.calls);
    timing.seconds = took / static_cast<double>(timing.calls);
    if (took >= seconds / 2) return timing;  // alike on all ranks, because the slowest counts
  }
}

}  // namespace cermet::comm
