// Products on this machine against its limits, both measured in this run: the shapes of Llama-3.2-1B and of BERT, from
// one row to a prompt of 512. Weights of a single-row product come from memory: copies are used in turn, a gigabyte of
// them, so that no cache holds the next one.
//   build/bin/bench_cpu_linear [seconds for each row of the table] [threads]
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>

#include "format/element.hpp"
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
  std::int64_t weights() const { return std::strcmp(op, "dual_linear") == 0 ? 2 : 1; }
};

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

/// The limit is disturbed as the product is: measured before and after, the better counts.
cpu::Limits best(const cpu::Limits& a, const cpu::Limits& b) {
  return {std::max(a.read_bytes_per_second, b.read_bytes_per_second),
          std::max(a.f32_flops, b.f32_flops),
          std::max(a.bf16_flops, b.bf16_flops),
          std::max(a.int8_ops, b.int8_ops),
          std::max(a.amx_bf16_flops, b.amx_bf16_flops),
          std::max(a.amx_int8_ops, b.amx_int8_ops)};
}

OwnedTensor random_tensor(DType dtype, const Shape& shape, std::uint64_t seed) {
  OwnedTensor tensor(dtype, shape);
  std::mt19937_64 random(seed);
  for (std::int64_t i = 0; i < shape.elements(); ++i) {
    const double value = static_cast<double>(random() >> 40) * 0x1p-24 - 0.5;
    format::store_element(tensor.memory.data(), dtype, i, dtype == DType::i8 ? 255 * value : value);
  }
  return tensor;
}

std::vector<std::optional<TensorType>> operand_types(const Row& row) {
  const TensorType x{row.x, {row.m, row.k}}, w{row.w, {row.n, row.k}};
  if (row.weights() == 2) return {x, w, w};
  if (row.w == DType::i8) return {x, w, TensorType{DType::f32, {row.m}}, TensorType{DType::f32, {row.n}}};
  return {x, w};
}

/// Median seconds of one call.
double measure(const Row& row, double seconds, ThreadPool& pool, std::string_view& kernel_name) {
  const std::vector<std::optional<TensorType>> types = operand_types(row);
  Problem problem = make_problem(*find_operator(row.op), types, {});
  const std::int64_t weights = row.weights();
  problem.constant_inputs = weights == 2 ? 6 : 2;
  const Kernel& kernel = *select_kernel(problem).kernel;
  kernel_name = kernel.name;
  std::vector<OwnedTensor> owned;
  std::vector<TensorView> inputs;
  for (std::size_t i = 0; i < types.size(); ++i) {
    owned.push_back(random_tensor(types[i]->dtype, bind(types[i]->dims, {}), i));
    inputs.push_back(owned.back().view);
  }
  inputs.resize(problem.inputs.size());
  const std::int64_t copies =
      row.m > 16 ? 1 : std::max<std::int64_t>(1, (std::int64_t{1} << 30) / (weights * owned[1].memory.size()));
  std::vector<std::unique_ptr<BoundOp>> ops;
  for (std::int64_t i = 0; i < copies; ++i) {
    ops.push_back(std::make_unique<BoundOp>(problem, kernel, pool));
    for (std::size_t operand = 1; operand <= static_cast<std::size_t>(weights); ++operand)
      ops.back()->prepack(operand, inputs[operand]);
  }
  OwnedTensor y(problem.outputs[0].dtype, {row.m, row.n});
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

std::vector<Row> table() {
  constexpr DType f32 = DType::f32, bf16 = DType::bf16;
  constexpr std::int64_t shapes[][2] = {{2048, 2048}, {512, 2048}, {8192, 2048}, {2048, 8192}, {128256, 2048}},
                         bert[][2] = {{768, 768}, {3072, 768}, {768, 3072}};
  std::vector<Row> rows;
  for (const std::int64_t m : {1, 4, 16, 64, 512})
    for (const auto& [n, k] : shapes)
      if (m == 1 || n < 100000) rows.push_back({"linear", bf16, bf16, m, n, k});
  for (const std::int64_t m : {128, 512})
    for (const auto& [n, k] : bert)
      for (const DType type : {bf16, DType::i8})
        rows.push_back({type == bf16 ? "linear" : "scaled_mm", type, type, m, n, k});
  for (const std::int64_t m : {1, 512}) {
    rows.push_back({"dual_linear", bf16, bf16, m, 8192, 2048});
    rows.push_back({"linear", f32, bf16, m, 2048, 8192});
    rows.push_back({"linear", f32, f32, m, 2048, 8192});
    for (const auto& [n, k] : {std::pair{2048, 2048}, std::pair{8192, 2048}, std::pair{2048, 8192}})
      rows.push_back({"scaled_mm", DType::i8, DType::i8, m, n, k});
  }
  return rows;
}

void print(const Row& row, double time, std::string_view kernel, const cpu::Limits& limits) {
  const double elements = static_cast<double>(row.weights() * row.n * row.k),
               bytes = elements * static_cast<double>(size_of(row.w));
  const double operations = 2 * elements * static_cast<double>(row.m),
               peak = row.w == DType::i8 ? std::max({limits.f32_flops, limits.int8_ops, limits.amx_int8_ops})
                                         : std::max({limits.f32_flops, limits.bf16_flops, limits.amx_bf16_flops});
  const double memory_time = bytes / limits.read_bytes_per_second, compute_time = operations / peak,
               floor = std::max(memory_time, compute_time);
  const auto rate = [&](double t) {
    return memory_time > compute_time ? fmt::format("{:.1f} GB/s", bytes / t / 1e9)
                                      : fmt::format("{:.0f} Gop/s", operations / t / 1e9);
  };
  fmt::print("{:<12} {:<9} {:>4} {:>7} {:>5} {:>7.3f} ms {:>12} {:>12} {:>8.1f}%  {}\n", row.op,
             fmt::format("{}*{}", name_of(row.x), name_of(row.w)), row.m, row.n, row.k, time * 1e3, rate(time),
             rate(floor), 100 * floor / time, kernel);
}

void run(double seconds, int threads) {
  ThreadPool pool(threads);
  cpu::Limits limits = cpu::measure_limits(pool, seconds);
  const std::vector<Row> rows = table();
  std::vector<double> times;
  std::vector<std::string_view> kernels(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) times.push_back(measure(rows[i], seconds, pool, kernels[i]));
  limits = best(limits, cpu::measure_limits(pool, seconds));
  fmt::print("{} threads, {}: read {:.1f} GB/s, f32 {:.0f}, bf16 {:.0f} GFLOP/s, int8 {:.0f} GOP/s\n", pool.size(),
             name_of(cpu::active_isa()), limits.read_bytes_per_second / 1e9, limits.f32_flops / 1e9,
             std::max({limits.f32_flops, limits.bf16_flops, limits.amx_bf16_flops}) / 1e9,
             std::max({limits.f32_flops, limits.int8_ops, limits.amx_int8_ops}) / 1e9);
  fmt::print("{:<12} {:<9} {:>4} {:>7} {:>5} {:>10} {:>12} {:>12} {:>9}  {}\n", "operator", "types", "M", "N", "K",
             "time", "this", "limit", "fraction", "kernel");
  for (std::size_t i = 0; i < rows.size(); ++i) print(rows[i], times[i], kernels[i], limits);
}

}  // namespace
}  // namespace cermet

int main(int argc, char** argv) { cermet::run(argc > 1 ? std::atof(argv[1]) : 1.0, argc > 2 ? std::atoi(argv[2]) : 0); }
