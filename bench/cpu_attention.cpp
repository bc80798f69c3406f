// Attention over a paged cache on this machine against its limits, both measured in this run: prompts and decoding with
// the heads of Llama-3.2-1B and others. Decoding takes the cache from memory: copies are used in turn, so that no cache
// of the processor holds the next one. Times are the least processor time of a call, divided by the threads: other
// programs on the same cores matter little then.
//   build/bin/bench_cpu_attention [seconds for each row of the table] [threads] [text in the names of rows]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <limits>
#include <random>

#include "kernel/cpu/isa.hpp"
#include "kernel/cpu/limits.hpp"
#include "op/schema/reference.hpp"
#include "select/bound_op.hpp"
#include "select/select.hpp"

namespace cermet {
namespace {

struct Row {
  const char* what;
  std::int64_t sequences, queries, context;  ///< per sequence
  DType cache;
  std::int64_t heads = 32, kv_heads = 8, head_size = 64;
  std::int64_t value_size = 0;  ///< values are the first elements of the keys; 0: in a cache of their own
  std::int64_t longest = 0;     ///< context of the first sequence, where that is another one

  std::int64_t context_of(std::int64_t b) const { return b == 0 && longest > 0 ? longest : context; }
  std::int64_t keys() const { return context_of(0) + (sequences - 1) * context; }
  std::int64_t output_size() const { return value_size > 0 ? value_size : head_size; }
  std::int64_t cached_size() const { return value_size > 0 ? head_size : 2 * head_size; }  ///< elements of a token
};

constexpr std::int64_t block = 16;

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

/// Of all threads of this process.
double processor_seconds() {
  timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

/// The same numbers over and over: what they are does not change the time.
OwnedTensor random_tensor(DType dtype, const Shape& shape, std::uint64_t seed) {
  OwnedTensor tensor(dtype, shape);
  std::mt19937_64 random(seed);
  const std::int64_t period = std::min<std::int64_t>(shape.elements(), 1 << 16);
  for (std::int64_t i = 0; i < period; ++i) {
    const double value = static_cast<double>(random() >> 40) * 0x1p-24 - 0.5;
    store(tensor.view, i, dtype == DType::i8 ? std::round(200 * value) : value);
  }
  auto* const data = tensor.view.as<std::byte>();
  const std::int64_t bytes = shape.elements() * byte_size(dtype), first = period * byte_size(dtype);
  for (std::int64_t at = first; at < bytes; at += first) std::copy_n(data, std::min(first, bytes - at), data + at);
  return tensor;
}

OwnedTensor indices(const std::vector<std::int32_t>& list, const Shape& shape) {
  OwnedTensor tensor(DType::i32, shape);
  std::copy(list.begin(), list.end(), tensor.view.as<std::int32_t>());
  return tensor;
}

/// Least processor seconds of a call, for each thread.
double measure(const Row& row, double seconds, ThreadPool& pool) {
  const std::int64_t pages = (row.context_of(0) + block - 1) / block, blocks = row.sequences * pages,
                     tokens = row.sequences * row.queries;
  const Shape cache_shape{blocks, row.kv_heads, block, row.head_size};
  const std::int64_t cache_bytes = blocks * row.kv_heads * block * row.cached_size() * byte_size(row.cache);
  const std::size_t copies =
      row.queries > 1
          ? 1
          : static_cast<std::size_t>(std::clamp<std::int64_t>((std::int64_t{1} << 27) / cache_bytes, 1, 512));
  const OwnedTensor q = random_tensor(DType::bf16, {tokens, row.heads, row.head_size}, 1);
  std::vector<OwnedTensor> keys, values;
  for (std::size_t i = 0; i < copies; ++i) {
    keys.push_back(random_tensor(row.cache, cache_shape, 2));
    if (row.value_size == 0) values.push_back(random_tensor(row.cache, cache_shape, 3));
  }
  const auto values_of = [&](std::size_t copy) {
    if (row.value_size == 0) return values[copy].view;
    TensorView part = keys[copy].view;
    part.shape[3] = row.value_size;
    return part;
  };
  std::vector<std::int32_t> table, starts;
  for (std::int64_t i = 0; i < blocks; ++i) table.push_back(static_cast<std::int32_t>(i * 7919 % blocks));
  for (std::int64_t b = 0; b <= row.sequences; ++b) starts.push_back(static_cast<std::int32_t>(b * row.queries));
  const OwnedTensor tables = indices(table, {row.sequences, pages}),
                    query_starts = indices(starts, {row.sequences + 1});
  std::vector<std::int32_t> lengths;
  for (std::int64_t b = 0; b < row.sequences; ++b) lengths.push_back(static_cast<std::int32_t>(row.context_of(b)));
  const OwnedTensor contexts = indices(lengths, {row.sequences});
  OwnedTensor scales(DType::f32, {row.kv_heads});
  std::fill_n(scales.view.as<float>(), row.kv_heads, 0.005f);
  std::vector<TensorView> inputs{q.view, keys[0].view, values_of(0), tables.view, contexts.view, query_starts.view};
  if (row.cache == DType::i8) inputs.insert(inputs.end(), 2, scales.view);
  std::vector<std::optional<TensorType>> types;
  for (const TensorView& input : inputs) types.push_back(input.type());
  const Problem problem = make_problem(*find_operator("incre_flash_attention"), types, {});
  inputs.resize(problem.inputs.size());
  BoundOp op(problem, select_kernel(problem), pool);
  OwnedTensor o(DType::bf16, {tokens, row.heads, row.output_size()});
  const TensorView outputs[] = {o.view};
  double least = std::numeric_limits<double>::infinity();
  std::size_t calls = 0;
  for (const double start = now(); calls < 5 || now() - start < seconds; ++calls) {
    inputs[1] = keys[calls % copies].view;
    inputs[2] = values_of(calls % copies);
    const double begin = processor_seconds();
    op.run(inputs, outputs);
    least = std::min(least, processor_seconds() - begin);
  }
  return least / pool.size();
}

void run(double seconds, int threads, std::string_view wanted) {
  ThreadPool pool(threads);
  const cpu::Limits limits = cpu::measure_limits(pool, std::max(0.3, seconds), std::int64_t{1} << 28);
  fmt::print("{} threads, {}: read {:.1f} GB/s, f32 {:.0f} GFLOP/s, bf16 {:.0f} GFLOP/s\n", pool.size(),
             name_of(cpu::active_isa()), limits.read_bytes_per_second / 1e9, limits.f32_flops / 1e9,
             std::max({limits.f32_flops, limits.bf16_flops, limits.amx_bf16_flops}) / 1e9);
  fmt::print("{:<22} {:>5} {:>4} {:>4} {:>7} {:>11} {:>10} {:>14} {:>14} {:>9}\n", "", "cache", "B", "Q", "context",
             "heads", "time", "this", "limit", "fraction");
  const Row rows[] = {{"prompt", 1, 512, 512, DType::bf16},
                      {"prompt", 1, 512, 512, DType::f16},
                      {"prompt", 1, 512, 512, DType::i8},
                      {"prompt", 1, 512, 512, DType::f32},
                      {"prompt after 512", 1, 512, 1024, DType::bf16},
                      {"prompt after 4096", 1, 512, 4608, DType::bf16},
                      {"prompt after 4096", 1, 512, 4608, DType::f16},
                      {"prompt after 4096", 1, 512, 4608, DType::i8},
                      {"prompt", 1, 512, 512, DType::bf16, 32, 8, 128},
                      {"prompt", 1, 512, 512, DType::bf16, 8, 1, 256},
                      {"prompt, MLA", 1, 128, 512, DType::bf16, 16, 1, 576, 512},
                      {"decode", 1, 1, 512, DType::bf16},
                      {"decode", 1, 1, 512, DType::f32},
                      {"decode", 1, 1, 4096, DType::bf16},
                      {"decode", 1, 1, 16384, DType::bf16},
                      {"decode", 1, 1, 16384, DType::f16},
                      {"decode", 1, 1, 16384, DType::i8},
                      {"decode", 1, 1, 16384, DType::f32},
                      {"decode", 1, 1, 4096, DType::bf16, 32, 8, 128},
                      {"decode", 1, 1, 4096, DType::f16, 32, 8, 128},
                      {"decode", 1, 1, 4096, DType::i8, 32, 8, 128},
                      {"decode", 1, 1, 4096, DType::bf16, 8, 1, 256},
                      {"decode, MLA", 1, 1, 4096, DType::bf16, 16, 1, 576, 512},
                      {"decode, a kv head each", 1, 1, 2048, DType::bf16, 32, 32, 64},
                      {"decode, 4 queries", 1, 4, 4096, DType::bf16},
                      {"decode, batch", 16, 1, 1024, DType::bf16},
                      {"one 8192, 1 kv head", 64, 1, 128, DType::bf16, 4, 1, 64, 0, 8192},
                      {"one 8192, 8 kv heads", 64, 1, 128, DType::bf16, 32, 8, 64, 0, 8192},
                      {"one 1024, 3 kv heads", 22, 1, 128, DType::bf16, 12, 3, 64, 0, 1024}};
  for (const Row& row : rows) {
    if (std::string_view(row.what).find(wanted) == std::string_view::npos) continue;
    const double time = measure(row, seconds, pool);
    const double skipped =
        0.5 * static_cast<double>(row.queries * (row.queries - 1));  // pairs that the causal mask hides
    const double pairs = static_cast<double>(row.queries * row.keys()) - static_cast<double>(row.sequences) * skipped;
    const double flops = 2 * pairs * static_cast<double>(row.heads * (row.head_size + row.output_size()));
    const double bytes =
        static_cast<double>(row.keys() * row.kv_heads * row.cached_size()) * static_cast<double>(size_of(row.cache));
    const bool by_memory = bytes / limits.read_bytes_per_second > flops / limits.f32_flops;
    const double limit = by_memory ? bytes / limits.read_bytes_per_second : flops / limits.f32_flops;
    const auto rate = [&](double t) {
      return by_memory ? fmt::format("{:.1f} GB/s", bytes / t / 1e9) : fmt::format("{:.0f} GFLOP/s", flops / t / 1e9);
    };
    fmt::print("{:<22} {:>5} {:>4} {:>4} {:>7} {:>11} {:>7.3f} ms {:>14} {:>14} {:>8.1f}%\n", row.what,
               name_of(row.cache), row.sequences, row.queries, row.context,
               fmt::format("{}/{} x {}", row.heads, row.kv_heads, row.head_size), time * 1e3, rate(time), rate(limit),
               100 * limit / time);
    std::fflush(stdout);
  }
}

}  // namespace
}  // namespace cermet

int main(int argc, char** argv) {
  cermet::run(argc > 1 ? std::atof(argv[1]) : 1.0, argc > 2 ? std::atoi(argv[2]) : 0, argc > 3 ? argv[3] : "");
}
