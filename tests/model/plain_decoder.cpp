// What plain decoders compute, and the quantization of their modules.
#include "tests/model/plain_decoder.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "format/element.hpp"
#include "model/rotary.hpp"
#include "model/weight_loader.hpp"

namespace cermet::test {
namespace {

double activated(Activation activation, double x) {
  if (activation == Activation::silu) return x / (1 + std::exp(-x));
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
}

double capped(double x, double softcap) { return softcap > 0 ? softcap * std::tanh(x / softcap) : x; }

float rounded_to(DType dtype, double value) {
  alignas(double) std::byte bytes[sizeof(double)];
  format::store_element(bytes, dtype, 0, value);
  return static_cast<float>(format::load_element(bytes, dtype, 0));
}

/// What a quantized value stands for, without its scale.
double code_of(bool fp8, float scaled) {
  if (fp8) return format::to_float(format::to_e4m3(scaled));
  return std::clamp(std::nearbyint(scaled), -128.0f, 127.0f);
}

}  // namespace

PlainDecoder::PlainDecoder(const std::filesystem::path& model) : folder_(model) {
  const Checkpoint checkpoint = Checkpoint::open(model);
  config_ = checkpoint.config();
  dtype_ = storage_type(checkpoint);
  for (const ExpectedTensor& expected : expected_tensors(config_)) {
    const StoredTensor& stored = checkpoint.require(expected);
    std::vector<std::byte> bytes(static_cast<std::size_t>(stored.bytes()));
    checkpoint.read(stored, 0, bytes);
    Vector& values = tensors_[stored.name];
    for (std::int64_t i = 0; i < stored.elements(); ++i)
      values.push_back(format::load_element(bytes.data(), stored.dtype, i));
    shapes_[stored.name] = stored.shape;
  }
}

void PlainDecoder::quantize(const std::string& module, const LinearScheme& scheme, float input_scale,
                            float input_offset) {
  if (scheme.weight == LinearScheme::Weight::real) return;
  Vector& weight = tensors_.at(module + ".weight");
  const std::int64_t rows = shapes_.at(module + ".weight")[0], columns = shapes_.at(module + ".weight")[1];
  Module& out = modules_[module];
  out = {scheme, {}, {}, input_scale, input_offset};
  for (std::int64_t r = 0; r < rows; ++r) {
    double* row = weight.data() + r * columns;
    double largest = 0;
    for (std::int64_t k = 0; k < columns; ++k) largest = std::max(largest, std::abs(row[k]));
    const float scale = rounded_to(dtype_, largest / (is_fp8(scheme) ? 448 : 127));
    out.scales.push_back(scale);
    for (std::int64_t k = 0; k < columns; ++k) {
      const double code = code_of(is_fp8(scheme), static_cast<float>(row[k]) / scale);
      out.quantized.emplace_back();
      format::store_element(out.quantized.data(), is_fp8(scheme) ? DType::f8_e4m3 : DType::i8,
                            static_cast<std::int64_t>(out.quantized.size()) - 1, code);
      const double value = code * static_cast<double>(scale);
      row[k] = scheme.input == LinearScheme::Input::real ? static_cast<double>(rounded_to(dtype_, value))
                                                         : value;  // weight-only: dequantized while loading
    }
  }
}

void PlainDecoder::round_biases() {
  for (auto& [name, module] : modules_) {
    const auto bias = tensors_.find(name + ".bias");
    if (bias == tensors_.end() || module.scheme.input != LinearScheme::Input::fixed) continue;
    for (std::size_t r = 0; r < bias->second.size(); ++r) {
      const double step = static_cast<double>(module.scales[r]) * static_cast<double>(module.input_scale);
      bias->second[r] = std::nearbyint(bias->second[r] / step) * step;
    }
  }
}

float PlainDecoder::input_scale_for(const std::vector<std::string>& modules) const {
  double largest = 0;
  for (const std::string& module : modules)
    if (const auto found = largest_.find(module); found != largest_.end()) largest = std::max(largest, found->second);
  return rounded_to(dtype_, std::max(0.9 * largest, 1e-3) / 127);
}

PlainDecoder::Vector PlainDecoder::apply(const Linear& linear, Vector x) {
  const std::string& module = linear.name;
  double& largest = largest_[module];
  for (const double v : x) largest = std::max(largest, std::abs(v));
  if (const auto found = modules_.find(module);
      found != modules_.end() && found->second.scheme.input != LinearScheme::Input::real) {
    const Module& m = found->second;
    float scale = m.input_scale, offset = m.input_offset;
    if (m.scheme.input == LinearScheme::Input::dynamic) {
      float peak = 0;
      for (const double v : x) peak = std::max(peak, static_cast<float>(std::abs(v)));
      scale = peak / (is_fp8(m.scheme) ? 448.0f : 127.0f);
      offset = 0;
    }
    for (double& v : x)
      v = (code_of(is_fp8(m.scheme), static_cast<float>(v) / scale + offset) - static_cast<double>(offset)) *
          static_cast<double>(scale);
  }
  const Vector& w = tensor(module + ".weight");
  Vector y(w.size() / x.size());
  for (std::size_t n = 0; n < y.size(); ++n)
    y[n] = std::inner_product(x.begin(), x.end(), w.begin() + static_cast<std::ptrdiff_t>(n * x.size()),
                              linear.bias ? tensor(module + ".bias")[n] : 0.0);
  return y;
}

PlainDecoder::Vector PlainDecoder::normalized(const Vector& x, const Norm& norm) const {
  const Vector& weight = tensor(norm.name + ".weight");
  const double mean = std::inner_product(x.begin(), x.end(), x.begin(), 0.0) / static_cast<double>(x.size());
  Vector y(x.size());
  for (std::size_t i = 0; i < x.size(); ++i)
    y[i] = x[i] / std::sqrt(mean + norm.eps) * (weight[i] + norm.weight_offset);
  return y;
}

PlainDecoder::Vector PlainDecoder::body(const FeedForward& part, const Vector& y, Cache&) {
  Vector gate = apply(part.gate, y);
  const Vector up = apply(part.up, y);
  for (std::size_t i = 0; i < gate.size(); ++i) gate[i] = activated(part.activation, gate[i]) * up[i];
  return apply(part.down, gate);
}

PlainDecoder::Vector PlainDecoder::body(const Mixture& mixture, const Vector& y, Cache& cache) {
  Vector scores = apply(mixture.router, y);
  const double peak = *std::max_element(scores.begin(), scores.end());
  double sum = 0;
  for (double& s : scores) sum += s = std::exp(s - peak);
  for (double& s : scores) s /= sum;
  std::vector<std::size_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return scores[a] > scores[b]; });
  order.resize(static_cast<std::size_t>(mixture.experts_per_token));
  double chosen = 0;
  for (const std::size_t e : order) chosen += scores[e];
  Vector out(y.size());
  for (const std::size_t e : order) {
    const Vector part = body(mixture.expert(static_cast<std::int64_t>(e)), y, cache);
    for (std::size_t i = 0; i < out.size(); ++i) out[i] += part[i] * scores[e] / (mixture.renormalize ? chosen : 1);
  }
  return out;
}

PlainDecoder::Vector PlainDecoder::body(const Attention& attention, const Vector& y, Cache& cache) {
  const std::size_t position = cache.keys.size();
  const auto d = static_cast<std::size_t>(attention.head_dim),
             half = static_cast<std::size_t>(attention.rotary_dim / 2);
  const RotaryTables tables(config_, DType::f32, static_cast<std::int64_t>(position) + 1, 0);
  const float *cos = tables.cos().as<float>() + position * half, *sin = tables.sin().as<float>() + position * half;
  const auto rotate = [&](Vector& heads, const std::optional<Norm>& norm) {
    for (std::size_t h = 0; h < heads.size(); h += d) {
      if (norm) {
        const Vector one = normalized(
            {heads.begin() + static_cast<std::ptrdiff_t>(h), heads.begin() + static_cast<std::ptrdiff_t>(h + d)},
            *norm);
        std::copy(one.begin(), one.end(), heads.begin() + static_cast<std::ptrdiff_t>(h));
      }
      for (std::size_t i = 0; i < half; ++i) {
        const double a = heads[h + i], b = heads[h + half + i], c = static_cast<double>(cos[i]),
                     s = static_cast<double>(sin[i]);
        heads[h + i] = a * c - b * s;
        heads[h + half + i] = b * c + a * s;
      }
    }
  };
  Vector q = apply(attention.q, y), k = apply(attention.k, y);
  cache.values.push_back(apply(attention.v, y));
  rotate(q, attention.q_norm);
  rotate(k, attention.k_norm);
  cache.keys.push_back(k);
  const auto window = static_cast<std::size_t>(attention.window);
  const std::size_t first = window > 0 && position >= window ? position + 1 - window : 0;
  Vector o(q.size());
  for (std::size_t h = 0; h < q.size() / d; ++h) {
    const std::size_t shared = h / static_cast<std::size_t>(attention.heads / attention.kv_heads) * d;
    Vector weights;
    double sum = 0;
    for (std::size_t t = first; t <= position; ++t) {
      double score = 0;
      for (std::size_t i = 0; i < d; ++i) score += q[h * d + i] * cache.keys[t][shared + i];
      weights.push_back(std::exp(capped(score * attention.scale, attention.softcap)));
      sum += weights.back();
    }
    for (std::size_t t = first; t <= position; ++t)
      for (std::size_t i = 0; i < d; ++i) o[h * d + i] += weights[t - first] / sum * cache.values[t][shared + i];
  }
  return apply(attention.o, o);
}

std::vector<double> PlainDecoder::logits(const std::vector<std::int32_t>& ids) {
  const DecoderModel& decoder = config_.decoder;
  const auto hidden_size = static_cast<std::size_t>(config_.hidden_size), layers = decoder.layers.size();
  std::vector<Cache> caches(layers);
  const auto add = [](Vector& x, const Vector& y) {
    for (std::size_t i = 0; i < x.size(); ++i) x[i] += y[i];
  };
  Vector all;
  for (std::size_t t = 0; t < ids.size(); ++t) {
    const auto row = tensor("model.embed_tokens.weight").begin() +
                     static_cast<std::ptrdiff_t>(static_cast<std::size_t>(ids[t]) * hidden_size);
    Vector x(row, row + static_cast<std::ptrdiff_t>(hidden_size));
    for (double& value : x) value *= decoder.embedding_scale;
    for (std::size_t l = 0; l < layers; ++l)
      for (const Block& block : decoder.layers[l]) {
        const Vector y = normalized(x, block.norm),
                     out = std::visit([&](const auto&kind) { return body(kind, y, caches[l]); }, block.body);
        add(x, block.post_norm ? normalized(out, *block.post_norm) : out);
      }
    Vector row_logits = apply(decoder.head, normalized(x, decoder.norm));
    for (double& logit : row_logits) logit = capped(logit, decoder.logit_softcap);
    all.insert(all.end(), row_logits.begin(), row_logits.end());
  }
  return all;
}

}  // namespace cermet::test
