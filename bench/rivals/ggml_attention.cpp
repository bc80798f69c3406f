// Attention of ggml (llama.cpp, ik_llama.cpp) on CPUs, timed as bench/cpu_attention.cpp does: the least processor time
// of a call, divided by the threads. Build llama.cpp first; then, with its folder in GGML:
//   g++ -O2 -std=c++17 bench/rivals/ggml_attention.cpp -I$GGML/ggml/include -L$GGML/build/bin -lggml-cpu -lggml-base \
//       -Wl,-rpath,$GGML/build/bin -o ggml_attention
// Of ik_llama.cpp: -L$GGML/build/ggml/src -lggml -Wl,-rpath,$GGML/build/ggml/src.
//   ./ggml_attention QUERIES CONTEXT HEADS KV_HEADS HEAD_SIZE CACHE THREADS SECONDS    # CACHE: f32, f16, bf16 or q8_0
#include <ggml.h>
#if __has_include(<ggml-cpu.h>)
#include <ggml-cpu.h>
#endif

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace {

double processor_seconds() {
  timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

ggml_type type_named(const std::string& name) {
  for (const ggml_type type : {GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_BF16, GGML_TYPE_Q8_0})
    if (name == ggml_type_name(type)) return type;
  std::fprintf(stderr, "no cache of type %s\n", name.c_str());
  std::exit(1);
}

void fill(ggml_tensor* tensor, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<float> values(1 << 16);
  for (float& x : values) x = static_cast<float>(random() >> 8) * 0x1p-24f - 0.5f;
  std::vector<char> run(ggml_row_size(tensor->type, static_cast<int64_t>(values.size())));
  ggml_quantize_chunk(tensor->type, values.data(), run.data(), 0, 1, static_cast<int64_t>(values.size()), nullptr);
  if (tensor->type == GGML_TYPE_F32) std::memcpy(run.data(), values.data(), run.size());
  for (std::size_t at = 0; at < ggml_nbytes(tensor); at += run.size())
    std::memcpy(static_cast<char*>(tensor->data) + at, run.data(), std::min(run.size(), ggml_nbytes(tensor) - at));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 9) return 1;
  const int64_t queries = std::atoll(argv[1]), context = std::atoll(argv[2]), heads = std::atoll(argv[3]),
                kv_heads = std::atoll(argv[4]), head_size = std::atoll(argv[5]);
  const ggml_type type = type_named(argv[6]);
  const int threads = std::atoi(argv[7]);
  const double seconds = std::atof(argv[8]);
  const std::size_t cache_bytes = 2 * ggml_row_size(type, head_size) * static_cast<std::size_t>(context * kv_heads);
  const std::size_t copies = queries > 1 ? 1 : std::clamp<std::size_t>((std::size_t{1} << 27) / cache_bytes, 1, 512);
#if __has_include(<ggml-cpu.h>)
  ggml_cpu_init();
#endif
  ggml_context* memory = ggml_init({copies * (cache_bytes + (1 << 20)) + (std::size_t{1} << 29), nullptr, false});
  ggml_tensor* q = ggml_new_tensor_3d(memory, GGML_TYPE_F32, head_size, queries, heads);
  fill(q, 1);
  ggml_tensor* mask = ggml_new_tensor_2d(memory, GGML_TYPE_F16, context, (queries + 63) / 64 * 64);
  for (int64_t r = 0; r < mask->ne[1]; ++r)
    for (int64_t j = 0; j < context; ++j)
      static_cast<ggml_fp16_t*>(mask->data)[r * context + j] =
          ggml_fp32_to_fp16(r < queries && j <= context - queries + r ? 0.0f : -INFINITY);
  std::vector<ggml_cgraph*> graphs;
  for (std::size_t i = 0; i < copies; ++i) {
    ggml_tensor* k = ggml_new_tensor_3d(memory, type, head_size, context, kv_heads);
    ggml_tensor* v = ggml_new_tensor_3d(memory, type, head_size, context, kv_heads);
    fill(k, 2);
    fill(v, 3);
    graphs.push_back(ggml_new_graph_custom(memory, 8, false));
    ggml_tensor* o = ggml_flash_attn_ext(memory, q, k, v, mask, 1 / std::sqrt(static_cast<float>(head_size)), 0, 0);
    ggml_build_forward_expand(graphs.back(), o);
  }
#if __has_include(<ggml-cpu.h>)
  ggml_threadpool_params parameters = ggml_threadpool_params_default(threads);
  ggml_threadpool* pool = ggml_threadpool_new(&parameters);
  ggml_cplan plan = ggml_graph_plan(graphs[0], threads, pool);
#else
  ggml_cplan plan = ggml_graph_plan(graphs[0], threads);
#endif
  std::vector<uint8_t> work(plan.work_size);
  plan.work_data = work.data();
  double least = std::numeric_limits<double>::infinity();
  std::size_t calls = 0;
  const auto start = std::chrono::steady_clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
  for (; calls < 5 || elapsed() < seconds; ++calls) {
    const double begin = processor_seconds();
    ggml_graph_compute(graphs[calls % copies], &plan);
    least = std::min(least, processor_seconds() - begin);
  }
  std::printf("ggml %s Q %s context %s heads %s/%s x %s, %d threads: %.3f ms\n", argv[6], argv[1], argv[2], argv[3],
              argv[4], argv[5], threads, least / threads * 1e3);
}
