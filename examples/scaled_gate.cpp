// A scaled int8 product and a gated activation with quantization, as two launches and as a super-kernel region: the
// same bits, and the time of both. usage: example_scaled_gate [DEVICE [ROWS K N]]
#include <algorithm>
#include <cermet/graph.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

using cermet::dtype;
using cermet::tensor;

namespace {

struct Sizes {
  std::int64_t rows = 864, k = 7168, n = 4096;
};

/// Numbers that look random and are the same everywhere.
class Numbers {
 public:
  std::uint32_t next() { return state_ = state_ * 1664525u + 1013904223u; }
  tensor bytes(std::vector<std::int64_t> shape) {
    tensor t(std::move(shape), dtype::i8);
    for (std::int64_t i = 0; i < t.size(); ++i)
      static_cast<std::int8_t*>(t.data())[i] = static_cast<std::int8_t>(next() >> 24);
    return t;
  }
  tensor scales(std::vector<std::int64_t> shape, float most) {
    tensor t(std::move(shape), dtype::f32);
    for (std::int64_t i = 0; i < t.size(); ++i)
      static_cast<float*>(t.data())[i] = most * static_cast<float>((next() >> 8) + 1) / 16777216.0f;
    return t;
  }

 private:
  std::uint32_t state_ = 1;
};

/// q, scale = dequant_swiglu_quant(scaled_mm(x, w, per token, per channel) as bf16, a scale for every element).
cermet::session compiled(const cermet::handle& on, const Sizes& sizes, const tensor& w, const tensor& w_scale,
                         bool as_region) {
  cermet::graph graph("scaled_gate", on);
  const auto x = graph.input("x", dtype::i8, {sizes.rows, sizes.k}),
             x_scale = graph.input("x_scale", dtype::f32, {sizes.rows});
  const auto scales = graph.input("weight_scale", dtype::f32, {sizes.rows, sizes.n});
  const auto weight = graph.constant("w", w), channels = graph.constant("w_scale", w_scale);
  const auto add_nodes = [&] {
    cermet::nodes::scaled_mm_options options;
    options.a_scale = x_scale;
    options.b_scale = channels;
    options.out_dtype = "bf16";
    const auto gated = graph.dequant_swiglu_quant(graph.scaled_mm(x, weight, options), scales);
    graph.output("q", gated.q);
    graph.output("scale", gated.scale);
  };
  if (as_region) {
    const auto scope = graph.super_kernel("sp1", "stream-fusion=1:strict-scope-check=bypass");
    add_nodes();
  } else {
    add_nodes();
  }
  return graph.compile();
}

/// Copies tensors to the device: its results are there until its next run.
cermet::session placed(const cermet::handle& on, const std::vector<tensor>& inputs) {
  cermet::graph graph("placed", on);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const std::vector<cermet::extent> shape(inputs[i].shape().begin(), inputs[i].shape().end());
    const auto x = graph.input("x" + std::to_string(i), inputs[i].type(), shape);
    graph.output("y" + std::to_string(i), graph.reshape(x, {inputs[i].shape()}));
  }
  cermet::session session = graph.compile();
  session.run(inputs);
  return session;
}

/// The least time of a run, of those of half a second: results stay on the device.
double seconds_of(cermet::session& session, const std::vector<tensor>& inputs) {
  using Clock = std::chrono::steady_clock;
  session.run(inputs);
  double least = 1e9;
  for (const auto start = Clock::now(); std::chrono::duration<double>(Clock::now() - start).count() < 0.5;) {
    const auto begin = Clock::now();
    session.run(inputs);
    least = std::min(least, std::chrono::duration<double>(Clock::now() - begin).count());
  }
  return least;
}

bool same_bytes(const tensor& a, const tensor& b, std::size_t size) {
  return std::memcmp(a.data(), b.data(), static_cast<std::size_t>(a.size()) * size) == 0;
}

}  // namespace

int main(int argc, char** argv) try {
  Sizes sizes;
  if (argc == 5) sizes = {std::atoll(argv[2]), std::atoll(argv[3]), std::atoll(argv[4])};
  const cermet::handle on(argc > 1 ? argv[1] : "cpu");
  Numbers numbers;
  const tensor x = numbers.bytes({sizes.rows, sizes.k}), w = numbers.bytes({sizes.n, sizes.k});
  const tensor x_scale = numbers.scales({sizes.rows}, 0.01f), w_scale = numbers.scales({sizes.n}, 0.01f),
               scales = numbers.scales({sizes.rows, sizes.n}, 2.0f);
  auto apart = compiled(on, sizes, w, w_scale, false), region = compiled(on, sizes, w, w_scale, true);
  const std::vector<tensor> inputs{x, x_scale, scales}, one = apart.all(inputs), two = region.all(inputs);
  std::printf("results of %zu launches and of the region: %s\n", apart.steps(),
              same_bytes(one[0], two[0], 1) && same_bytes(one[1], two[1], 4) ? "the same bits" : "different");
  auto place = placed(on, inputs);
  const std::vector<tensor> there{place.result(0), place.result(1), place.result(2)};
  std::fprintf(stderr, "%s: %.1f us apart, %.1f us as a region\n", cermet_device(on.get()),
               1e6 * seconds_of(apart, there), 1e6 * seconds_of(region, there));
} catch (const cermet::error& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
