// Products on this machine against its limits, both measured in this run: the shapes of Llama-3.2-1B, from one row to a prompt of 512.
// Weights of a single-row product come from memory: copies are used in turn, a gigabyte of them, so that no cache holds the next one.
//   build/bin/bench_cpu_linear [seconds for each row of the table] [threads]
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>

#include "format/half.hpp"
#include "kernel/cpu/isa.hpp"
#include "kernel/cpu/limits.hpp"
#include "select/bound_op.hpp"
#include "select/select.hpp"

namespace cermet {
namespace {

struct Row {
  const char* op;
  DType x, w;
  std::int64_t m, n, k;
};

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

OwnedTensor random_tensor(DType dtype, const Shape& shape, std::uint64_t seed) {
  OwnedTensor tensor(dtype, shape);
  std::mt19937_64 random(seed);
  const std::int64_t pairs = shape.elements();
  for (std::int64_t i = 0; i < pairs; ++i) {
    const float value = static_cast<float>(static_cast<double>(random() >> 40) * 0x1p-24 - 0.5);
    if (dtype == DType::f32) tensor.view.as<float>()[i] = value;
    else tensor.view.as<format::bf16>()[i] = format::to_bf16(value);
  }
  return tensor;
}

std::vector<std::optional<TensorType>> operand_types(const Row& row) {
  const TensorType x{row.x, {row.m, row.k}}, w{row.w, {row.n, row.k}};
  if (std::strcmp(row.op, "dual_linear") == 0) return {x, w, w};
  return {x, w};
}

/// Median seconds of one call.
double measure(const Row& row, double seconds, ThreadPool& pool, std::string_view& kernel_name) {
  Problem problem = make_problem(*find_operator(row.op), operand_types(row), {});
  problem.constant_inputs = 6;
  const Kernel& kernel = select_kernel(problem);
  kernel_name = kernel.name;
  const OwnedTensor x = random_tensor(row.x, {row.m, row.k}, 1), w = random_tensor(row.w, {row.n, row.k}, 2);
  const std::int64_t weights = static_cast<std::int64_t>(problem.inputs.size()) > 2 && problem.has(2) && row.op[0] == 'd' ? 2 : 1;
  const std::int64_t copies = row.m > 16 ? 1 : std::max<std::int64_t>(1, (std::int64_t{1} << 30) / (weights * w.memory.size()));
  std::vector<std::unique_ptr<BoundOp>> ops;
  for (std::int64_t i = 0; i < copies; ++i) {
    ops.push_back(std::make_unique<BoundOp>(problem, kernel, pool));
    for (std::int64_t operand = 1; operand <= weights; ++operand) ops.back()->prepack(static_cast<std::size_t>(operand), w.view);
  }
  OwnedTensor y(problem.outputs[0].dtype, {row.m, row.n});
  std::vector<TensorView> inputs{x.view, w.view};
  if (weights == 2) inputs.push_back(w.view);
  inputs.resize(problem.inputs.size());
  const TensorView outputs[] = {y.view};
  std::vector<double> times;
  std::size_t next = 0;
  for (const double start = now(); times.size() < 5 || now() - start < seconds;) {
    const double begin = now();
    ops[next]->run(inputs, outputs);
    times.push_back(now() - begin);
    next = (next + 1) % ops.size();
  }
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
  return times[times.size() / 2];
}

void run(double seconds, int threads) {
  ThreadPool pool(threads);
  const cpu::Limits limits = cpu::measure_limits(pool, std::max(1.0, seconds));
  fmt::print("{} threads, {}: read {:.1f} GB/s, f32 {:.0f}, bf16 {:.0f} GFLOP/s, int8 {:.0f} GOP/s\n", pool.size(), name_of(cpu::active_isa()),
             limits.read_bytes_per_second / 1e9, limits.f32_flops / 1e9, limits.bf16_flops / 1e9, limits.int8_ops / 1e9);
  fmt::print("{:<12} {:<9} {:>4} {:>7} {:>5} {:>10} {:>16} {:>16} {:>9}  {}\n", "operator", "types", "M", "N", "K", "time", "this", "limit", "fraction",
             "kernel");
  constexpr std::int64_t shapes[][2] = {{2048, 2048}, {512, 2048}, {8192, 2048}, {2048, 8192}, {128256, 2048}};
  std::vector<Row> rows;
  for (const std::int64_t m : {1, 4, 8, 64, 512})
    for (const auto& [n, k] : shapes)
      if (m == 1 || n < 100000) rows.push_back({"linear", DType::bf16, DType::bf16, m, n, k});
  for (const std::int64_t m : {1, 512}) {
    rows.push_back({"dual_linear", DType::bf16, DType::bf16, m, 8192, 2048});
    rows.push_back({"linear", DType::f32, DType::bf16, m, 2048, 8192});
    rows.push_back({"linear", DType::f32, DType::f32, m, 2048, 8192});
  }
  for (const Row& row : rows) {
    std::string_view kernel;
    const double time = measure(row, seconds, pool, kernel);
    const double matrices = row.op[0] == 'd' ? 2 : 1;
    const double elements = matrices * static_cast<double>(row.n * row.k), bytes = elements * static_cast<double>(size_of(row.w));
    const double flops = 2 * elements * static_cast<double>(row.m);
    const double memory_time = bytes / limits.read_bytes_per_second, compute_time = flops / limits.bf16_products();
    const bool by_memory = memory_time > compute_time;
    const auto rate = [&](double t) { return by_memory ? fmt::format("{:.1f} GB/s", bytes / t / 1e9) : fmt::format("{:.0f} GFLOP/s", flops / t / 1e9); };
    fmt::print("{:<12} {:<9} {:>4} {:>7} {:>5} {:>7.3f} ms {:>16} {:>16} {:>8.1f}%  {}\n", row.op, fmt::format("{}*{}", name_of(row.x), name_of(row.w)), row.m,
               row.n, row.k, time * 1e3, rate(time), rate(std::max(memory_time, compute_time)), 100 * std::max(memory_time, compute_time) / time, kernel);
  }
}

}  // namespace
}  // namespace cermet

int main(int argc, char** argv) { cermet::run(argc > 1 ? std::atof(argv[1]) : 1.0, argc > 2 ? std::atoi(argv[2]) : 0); }
