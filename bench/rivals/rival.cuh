// What the C++ rivals of bench/gpu_suite.py share: rows read from standard input, random operands, and times taken as
// Cermet takes its own. A rival reads one row a line, after the seconds to spend on it ("0.5 product i8 8192 4096
// 4096"), and answers each with one line of JSON: seconds, method and sets, or error.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include <cuda_bf16.h>
#include <cuda_fp8.h>

namespace rival {

inline void check(cudaError_t status, const char* what) {
  if (status != cudaSuccess) throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(status));
}

/// Device memory of `count` elements.
template <class T>
class Array {
 public:
  explicit Array(std::int64_t count = 0) : count_(count) {
    if (count > 0)
      check(cudaMalloc(reinterpret_cast<void**>(&data_), static_cast<std::size_t>(count) * sizeof(T)), "cudaMalloc");
  }
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;
  ~Array() { cudaFree(data_); }
  T* data() const { return data_; }
  T* at(std::int64_t element) const { return data_ + element; }
  std::int64_t size() const { return count_; }

 private:
  std::int64_t count_;
  T* data_ = nullptr;
};

__host__ __device__ inline std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

/// Every element drawn on its own: bytes evenly, real types from a normal distribution, float32 (scales) evenly from
/// [0.001, 0.02].
template <class T>
__global__ void draw(T* to, std::int64_t count, std::uint64_t seed) {
  for (std::int64_t i = blockIdx.x * static_cast<std::int64_t>(blockDim.x) + threadIdx.x; i < count;
       i += static_cast<std::int64_t>(gridDim.x) * blockDim.x) {
    const std::uint64_t bits = mixed(seed ^ mixed(static_cast<std::uint64_t>(i)));
    const float u = static_cast<float>((bits >> 40) + 1) * 0x1p-24f,
                v = static_cast<float>((bits >> 8) & 0xffffff) * 0x1p-24f;
    const float normal = sqrtf(-2 * logf(u)) * cospif(2 * v);
    if constexpr (std::is_same_v<T, std::int8_t>) to[i] = static_cast<std::int8_t>(bits);
    else if constexpr (std::is_same_v<T, float>) to[i] = 0.001f + 0.019f * v;
    else to[i] = T(normal);
  }
}

template <class T>
void fill(const Array<T>& array, std::uint64_t seed) {
  draw<<<1024, 256>>>(array.data(), array.size(), seed);
  check(cudaGetLastError(), "draw");
}

/// Sets of operands that together exceed the L2 four times.
inline std::int64_t sets_for(std::int64_t set_bytes) {
  int l2 = 0;
  check(cudaDeviceGetAttribute(&l2, cudaDevAttrL2CacheSize, 0), "cudaDeviceGetAttribute");
  return std::min<std::int64_t>(8192, 4 * static_cast<std::int64_t>(l2) / set_bytes + 2);
}

/// Median seconds of launch(set, stream) over replays of a captured graph that takes the sets in turn.
inline double replay_seconds(std::int64_t sets, double seconds,
                             const std::function<void(std::int64_t, cudaStream_t)>& launch) {
  cudaStream_t stream;
  cudaEvent_t begin, end;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
  check(cudaEventCreate(&begin), "cudaEventCreate");
  check(cudaEventCreate(&end), "cudaEventCreate");
  const auto capture = [&](std::int64_t launches) {
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
    for (std::int64_t i = 0; i < launches; ++i) launch(i % sets, stream);
    check(cudaStreamEndCapture(stream, &graph), "cudaStreamEndCapture");
    check(cudaGraphInstantiate(&exec, graph, 0), "cudaGraphInstantiate");
    cudaGraphDestroy(graph);
    return exec;
  };
  const auto replay = [&](cudaGraphExec_t exec) {
    check(cudaGraphLaunch(exec, stream), "cudaGraphLaunch");  // the one before the first event hides the launch
    check(cudaEventRecord(begin, stream), "cudaEventRecord");
    check(cudaGraphLaunch(exec, stream), "cudaGraphLaunch");
    check(cudaEventRecord(end, stream), "cudaEventRecord");
    check(cudaEventSynchronize(end), "cudaEventSynchronize");
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, begin, end), "cudaEventElapsedTime");
    return milliseconds * 1e-3;
  };
  launch(0, stream);
  check(cudaStreamSynchronize(stream), "the first launch");
  std::int64_t launches = sets;
  cudaGraphExec_t exec = capture(launches);
  const double once = replay(exec);
  constexpr double shortest = 0.002;
  if (once < shortest && sets < 4096) {
    launches = sets * std::max<std::int64_t>(
                          1, std::min<std::int64_t>(static_cast<std::int64_t>(shortest / once) + 1, 4096 / sets));
    cudaGraphExecDestroy(exec);
    exec = capture(launches);
  }
  replay(exec);
  std::vector<double> times;
  using Clock = std::chrono::steady_clock;
  for (const auto start = Clock::now();
       times.size() < 5 || std::chrono::duration<double>(Clock::now() - start).count() < seconds;)
    times.push_back(replay(exec) / static_cast<double>(launches));
  cudaGraphExecDestroy(exec);
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  cudaStreamDestroy(stream);
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

/// One way to compute a row: a name and its launch. A launch that throws is left out.
struct Variant {
  std::string name;
  std::function<void(std::int64_t, cudaStream_t)> launch;
};

/// Measures all variants briefly and the two best again for `seconds`; the answer of the fastest.
inline std::string best_of(const std::string& library, const std::vector<Variant>& variants, std::int64_t sets,
                           double seconds) {
  std::vector<std::pair<double, const Variant*>> found;
  std::string refusal = "no variant takes this shape";
  for (const Variant& variant : variants) try {
      found.emplace_back(replay_seconds(sets, 0.005, variant.launch), &variant);
    } catch (const std::exception& error) {
      refusal = variant.name + ": " + error.what();
      if (cudaGetLastError(); cudaDeviceSynchronize() != cudaSuccess) throw;  // a fault of the device ends the process
    }
  if (found.empty()) throw std::runtime_error(refusal);
  const auto faster = [](const auto& a, const auto& b) { return a.first < b.first; };
  std::sort(found.begin(), found.end(), faster);
  found.resize(std::min<std::size_t>(found.size(), 2));
  for (auto& [time, variant] : found) time = replay_seconds(sets, seconds, variant->launch);
  std::sort(found.begin(), found.end(), faster);
  std::ostringstream json;
  json.precision(9);
  json << "{\"seconds\": " << found[0].first << ", \"method\": \"" << library << ", " << found[0].second->name
       << ", best of " << variants.size() << "\", \"sets\": " << sets << "}";
  return json.str();
}

/// Words of a row; empty ones past its end.
struct Row {
  std::vector<std::string> words;
  std::string word(std::size_t i) const { return i < words.size() ? words[i] : ""; }
  std::int64_t number(std::size_t i) const { return std::stoll(word(i)); }
};

/// Answers the rows of standard input; `version` goes first, in a line of its own.
inline int serve(const std::string& version, const std::function<std::string(const Row&, double seconds)>& answer) {
  std::cout << "{\"version\": \"" << version << "\"}" << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream text(line);
    double seconds = 0;
    text >> seconds;
    Row row;
    for (std::string word; text >> word;) row.words.push_back(word);
    try {
      std::cout << answer(row, seconds) << std::endl;
    } catch (const std::exception& error) {
      std::string what = error.what();
      std::replace_if(
          what.begin(), what.end(), [](char c) { return c == '"' || c == '\\' || static_cast<unsigned char>(c) < ' '; },
          ' ');
      std::cout << "{\"error\": \"" << what << "\"}" << std::endl;
    }
  }
  return 0;
}

}  // namespace rival
