// Engines of several ranks, and what they compute.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <filesystem>
#include <vector>

#include "model/parallel/replicas.hpp"
#include "model/parallel/spread_batch.hpp"

namespace cermet::test {

inline EngineOptions shared_by(int ranks) {
  EngineOptions options;
  options.threads = 2;
  options.max_context = 256;
  options.tensor_parallel = ranks;
  return options;
}

/// `count` engines, each of `tensor` ranks that share the matrices, and `experts` ranks that have different experts.
inline EngineOptions engines(int count, int tensor, int experts = 1) {
  EngineOptions options = shared_by(tensor);
  options.data_parallel = count;
  options.expert_parallel = experts;
  return options;
}

/// The root mean square of a difference, relative to that of the first.
inline double difference(const std::vector<float>& a, const std::vector<float>& b) {
  double error = 0, size = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    error += std::pow(b[i] - a[i], 2);
    size += std::pow(a[i], 2);
  }
  return std::sqrt(error / size);
}

/// What the engines generate for `count` prompts, two of them at a time.
inline std::vector<std::vector<std::int32_t>> tokens_of(const std::filesystem::path& model, EngineOptions options,
                                                        std::size_t count = 7) {
  options.max_sequences = 2;
  std::vector<BatchRequest> requests(count);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    requests[i].prompt = {static_cast<std::int32_t>(i + 3), 7, 11};
    requests[i].options.max_new_tokens = static_cast<std::int64_t>(6 + i);
  }
  std::vector<std::vector<std::int32_t>> tokens(requests.size());
  std::vector<int> ended(requests.size());
  run_replicas(model, options, [&](Engine& engine, Communicator& peers) {
    const std::atomic<bool> cancelled{false};
    BatchGenerator::Events events;
    if (peers.rank() == 0)
      events = {[&](std::size_t i, std::int32_t id) { tokens[i].push_back(id); },
                [&](std::size_t i, const Generation& result) {
                  ended[i] += result.ids == tokens[i] && result.prompt_tokens == 3;
                }};
    generate_spread(engine, peers, requests, events, cancelled);
  });
  EXPECT_EQ(ended, std::vector<int>(requests.size(), 1)) << options.data_parallel << " engines";
  return tokens;
}

}  // namespace cermet::test
