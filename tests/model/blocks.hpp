// What tests look up in the blocks of a decoder.
#pragma once

#include <vector>

#include "model/config.hpp"

namespace cermet::test {

inline const Attention& attention_of(const DecoderModel& decoder, std::size_t layer = 0) {
  return *find_body<Attention>(decoder.layers.at(layer));
}

inline const FeedForward& feed_forward_of(const DecoderModel& decoder, std::size_t layer = 0) {
  return *find_body<FeedForward>(decoder.layers.at(layer));
}

inline const Mixture& mixture_of(const DecoderModel& decoder, std::size_t layer = 0) {
  return *find_body<Mixture>(decoder.layers.at(layer));
}

/// Of every layer: keys that a query sees; 0: all.
inline std::vector<std::int64_t> windows_of(const ModelConfig& config) {
  std::vector<std::int64_t> windows;
  for (std::size_t i = 0; i < config.decoder.layers.size(); ++i)
    windows.push_back(attention_of(config.decoder, i).window);
  return windows;
}

/// Of every layer: whether it has a mixture of experts.
inline std::vector<bool> sparse_layers(const ModelConfig& config) {
  std::vector<bool> sparse;
  for (const Layer& layer : config.decoder.layers) sparse.push_back(find_body<Mixture>(layer) != nullptr);
  return sparse;
}

}  // namespace cermet::test
