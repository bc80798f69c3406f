#include "cli/bench_op_device.hpp"

#include <algorithm>
#include <chrono>

#include "cli/bench_operands.hpp"
#include "cli/interrupt.hpp"

namespace cermet::cli {
namespace {

/// One set of operands and results in device memory with the kernel bound to them.
struct Copy {
  BoundOp op;
  std::vector<DeviceBuffer> memory;
  std::vector<TensorView> inputs, outputs;

  Copy(const Problem& problem, const Kernel& kernel, const DeviceQueue& queue, ThreadPool& pool, const std::vector<OwnedTensor>& operands)
      : op(problem, kernel, pool, queue) {
    for (std::size_t i = 0; i < problem.inputs.size(); ++i) {
      inputs.push_back(operands[i].view);
      if (!problem.has(i)) continue;
      if (problem.is_constant(i)) op.prepack(i, inputs.back());
      memory.push_back(queue.device->allocate(operands[i].memory.size()));
      inputs.back().data = memory.back().data();
      queue.stream->upload(memory.back().data(), operands[i].memory.data(), operands[i].memory.size());
    }
    const auto& aliases = problem.op->aliases;
    for (std::size_t o = 0; o < problem.outputs.size(); ++o) {
      if (o < aliases.size() && aliases[o] >= 0) {
        outputs.push_back(inputs[static_cast<std::size_t>(aliases[o])]);
        continue;
      }
      memory.push_back(queue.device->allocate(problem.outputs[o].bytes().constant()));
      outputs.emplace_back(memory.back().data(), problem.outputs[o].dtype, bind(problem.outputs[o].dims, {}));
    }
  }
};

std::int64_t operand_bytes(const Problem& problem) {
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i < problem.inputs.size(); ++i) bytes += problem.has(i) ? problem.input(i).bytes().constant() : 0;
  for (const TensorType& output : problem.outputs) bytes += output.bytes().constant();
  return std::max<std::int64_t>(bytes, 1);
}

}  // namespace

DeviceBench bench_on_device(const Problem& problem, const Kernel& kernel, const DeviceQueue& queue, ThreadPool& pool, std::uint64_t seed, bool cold,
                            double seconds) {
  constexpr std::int64_t most_copies = 512, least_launches = 20;
  const std::int64_t beyond_cache = 4 * queue.device->target()->l2_bytes;
  DeviceBench result;
  result.copies = cold ? std::clamp<std::int64_t>(div_up(beyond_cache, operand_bytes(problem)) + 1, 1, most_copies) : 1;
  result.launches = round_up(least_launches, result.copies);
  std::vector<OwnedTensor> operands;
  for (std::size_t i = 0; i < problem.inputs.size(); ++i) operands.push_back(problem.has(i) ? make_bench_operand(problem, i, seed) : OwnedTensor());
  std::vector<std::unique_ptr<Copy>> copies;
  for (std::int64_t c = 0; c < result.copies; ++c) copies.push_back(std::make_unique<Copy>(problem, kernel, queue, pool, operands));

  Stream& stream = *queue.stream;
  const auto launch_all = [&] {
    for (std::int64_t i = 0; i < result.launches; ++i) {
      Copy& copy = *copies[static_cast<std::size_t>(i % result.copies)];
      copy.op.run(copy.inputs, copy.outputs);
    }
  };
  launch_all();
  stream.synchronize();
  stream.begin_capture();
  std::unique_ptr<CapturedGraph> graph;
  try {
    launch_all();
    graph = stream.end_capture();
  } catch (...) {
    stream.abandon_capture();
    throw;
  }
  const auto start = stream.make_event(), end = stream.make_event();
  std::vector<double> times;
  const auto begin = std::chrono::steady_clock::now();
  const auto spent = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(); };
  stream.replay(*graph);
  while (times.size() < 10 || spent() < seconds) {
    stop_if_interrupted();
    stream.replay(*graph);  // keeps the device busy, so that the timed replay starts without a gap
    stream.record(*start);
    stream.replay(*graph);
    stream.record(*end);
    stream.synchronize();
    times.push_back(stream.seconds_between(*start, *end) / static_cast<double>(result.launches));
  }
  std::sort(times.begin(), times.end());
  result.graphs = static_cast<std::int64_t>(times.size());
  result.median_seconds = times[times.size() / 2];
  result.min_seconds = times.front();
  return result;
}

}  // namespace cermet::cli
