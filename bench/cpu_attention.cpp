// Attention over a paged cache on this machine against its limits, both measured in this run: heads of Llama-3.2-1B,
// prompts and decoding. Decoding takes the cache from memory: copies are used in turn, so that no cache of the
// processor holds the next one.
//   build/bin/bench_cpu_attention [seconds for each row of the table] [threads]
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <random>

#include "format/half.hpp"
#include "kernel/cpu/isa.hpp"
#include "kernel/cpu/limits.hpp"
#include "select/bound_op.hpp"
#include "select/select.hpp"

namespace cermet {
namespace {

struct Row {
  const char* what;
  std::int64_t sequences, queries, context;  ///< per sequence
  DType cache;
  std::int64_t heads = 32, kv_heads = 8, head_size = 64;
  std::int64_t longest = 0;  ///< context of the first sequence, where that is another one

  std::int64_t context_of(std::int64_t b) const { return b == 0 && longest > 0 ? longest : context; }
  std::int64_t keys() const { return context_of(0) + (sequences - 1) * context; }
};

constexpr std::int64_t block = 16;

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

OwnedTensor random_tensor(DType dtype, const Shape& shape, std::uint64_t seed) {
  OwnedTensor tensor(dtype, shape);
  std::mt19937_64 random(seed);
  for (std::int64_t i = 0; i < shape.elements(); ++i) {
    const float value = static_cast<float>(static_cast<double>(random() >> 40) * 0x1p-24 - 0.5);
    if (dtype == DType::f32) tensor.view.as<float>()[i] = value;
    else tensor.view.as<format::bf16>()[i] = format::to_bf16(value);
  }
  return tensor;
}

OwnedTensor indices(const std::vector<std::int32_t>& list, const Shape& shape) {
  OwnedTensor tensor(DType::i32, shape);
  std::copy(list.begin(), list.end(), tensor.view.as<std::int32_t>());
  return tensor;
}

/// Median seconds of one call.
double measure(const Row& row, double seconds, ThreadPool& pool) {
  const std::int64_t pages = (row.context_of(0) + block - 1) / block, blocks = row.sequences * pages,
                     tokens = row.sequences * row.queries;
  const Shape cache_shape{blocks, row.kv_heads, block, row.head_size};
  const std::int64_t cache_bytes = 2 * cache_shape.elements() * byte_size(row.cache);
  const std::size_t copies =
      row.queries > 1
          ? 1
          : static_cast<std::size_t>(std::clamp<std::int64_t>((std::int64_t{1} << 30) / cache_bytes, 1, 512));
  const OwnedTensor q = random_tensor(DType::bf16, {tokens, row.heads, row.head_size}, 1);
  std::vector<OwnedTensor> keys, values;
  for (std::size_t i = 0; i < copies; ++i) {
    keys.push_back(random_tensor(row.cache, cache_shape, 2));
    values.push_back(random_tensor(row.cache, cache_shape, 3));
  }
  std::vector<std::int32_t> table, starts;
  for (std::int64_t i = 0; i < blocks; ++i) table.push_back(static_cast<std::int32_t>(i * 7919 % blocks));
  for (std::int64_t b = 0; b <= row.sequences; ++b) starts.push_back(static_cast<std::int32_t>(b * row.queries));
  const OwnedTensor tables = indices(table, {row.sequences, pages}),
                    query_starts = indices(starts, {row.sequences + 1});
  std::vector<std::int32_t> lengths;
  for (std::int64_t b = 0; b < row.sequences; ++b) lengths.push_back(static_cast<std::int32_t>(row.context_of(b)));
  const OwnedTensor contexts = indices(lengths, {row.sequences});
  std::vector<TensorView> inputs{q.view, keys[0].view, values[0].view, tables.view, contexts.view, query_starts.view};
  std::vector<std::optional<TensorType>> types;
  for (const TensorView& input : inputs) types.push_back(input.type());
  const Problem problem = make_problem(*find_operator("incre_flash_attention"), types, {});
  inputs.resize(problem.inputs.size());
  BoundOp op(problem, select_kernel(problem), pool);
  OwnedTensor o(DType::bf16, {tokens, row.heads, row.head_size});
  const TensorView outputs[] = {o.view};
  std::vector<double> times;
  for (const double start = now(); times.size() < 5 || now() - start < seconds;) {
    inputs[1] = keys[times.size() % copies].view;
    inputs[2] = values[times.size() % copies].view;
    const double begin = now();
    op.run(inputs, outputs);
    times.push_back(now() - begin);
  }
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
  return times[times.size() / 2];
}

void run(double seconds, int threads) {
  ThreadPool pool(threads);
  const cpu::Limits limits = cpu::measure_limits(pool, std::max(1.0, seconds));
  fmt::print("{} threads, {}: read {:.1f} GB/s, f32 {:.0f} GFLOP/s\n", pool.size(), name_of(cpu::active_isa()),
             limits.read_bytes_per_second / 1e9, limits.f32_flops / 1e9);
  fmt::print("{:<22} {:>5} {:>4} {:>4} {:>7} {:>8} {:>10} {:>14} {:>14} {:>9}\n", "", "cache", "B", "Q", "context",
             "heads", "time", "this", "limit", "fraction");
  const Row rows[] = {{"prompt", 1, 512, 512, DType::bf16},
                      {"prompt", 1, 512, 512, DType::f32},
                      {"prompt, later chunk", 1, 512, 4096, DType::bf16},
                      {"prompt, head size 128", 1, 512, 512, DType::bf16, 32, 8, 128},
                      {"decode", 1, 1, 512, DType::bf16},
                      {"decode", 1, 1, 512, DType::f32},
                      {"decode", 1, 1, 8192, DType::bf16},
                      {"decode, head size 128", 1, 1, 2048, DType::bf16, 32, 8, 128},
                      {"decode, a kv head each", 1, 1, 2048, DType::bf16, 32, 32, 64},
                      {"decode, batch", 16, 1, 1024, DType::bf16},
                      {"one 8192, 1 kv head", 64, 1, 128, DType::bf16, 4, 1, 64, 8192},
                      {"one 8192, 8 kv heads", 64, 1, 128, DType::bf16, 32, 8, 64, 8192},
                      {"one 1024, 3 kv heads", 22, 1, 128, DType::bf16, 12, 3, 64, 1024}};
  for (const Row& row : rows) {
    const double time = measure(row, seconds, pool);
    const double skipped =
        0.5 * static_cast<double>(row.queries * (row.queries - 1));  // pairs that the causal mask hides
    const double pairs = static_cast<double>(row.queries * row.keys()) - static_cast<double>(row.sequences) * skipped;
    const double flops = 4 * pairs * static_cast<double>(row.heads * row.head_size);
    const double bytes =
        2.0 * static_cast<double>(row.keys() * row.kv_heads * row.head_size) * static_cast<double>(size_of(row.cache));
    const bool by_memory = bytes / limits.read_bytes_per_second > flops / limits.f32_flops;
    const double limit = by_memory ? bytes / limits.read_bytes_per_second : flops / limits.f32_flops;
    const auto rate = [&](double t) {
      return by_memory ? fmt::format("{:.1f} GB/s", bytes / t / 1e9) : fmt::format("{:.0f} GFLOP/s", flops / t / 1e9);
    };
    fmt::print("{:<22} {:>5} {:>4} {:>4} {:>7} {:>8} {:>7.3f} ms {:>14} {:>14} {:>8.1f}%\n", row.what,
               name_of(row.cache), row.sequences, row.queries, row.context,
               fmt::format("{}/{}", row.heads, row.kv_heads), time * 1e3, rate(time), rate(limit), 100 * limit / time);
  }
}

}  // namespace
}  // namespace cermet

int main(int argc, char** argv) { cermet::run(argc > 1 ? std::atof(argv[1]) : 1.0, argc > 2 ? std::atoi(argv[2]) : 0); }
