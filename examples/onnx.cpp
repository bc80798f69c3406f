// An ONNX file: compiled once for every batch from 1 to 8.
#include <cermet/onnx.hpp>
#include <cstdio>
#include <vector>

int main(int count, char** arguments) {
  if (count != 2) return std::fprintf(stderr, "usage: %s FILE.onnx\n", arguments[0]), 2;
  cermet::onnx_model model = cermet::compile(arguments[1], {{"batch", 1, 8}});
  for (std::int64_t batch = 1; batch <= 2; ++batch) {
    const cermet::tensor x({batch, 4}, std::vector<float>(static_cast<std::size_t>(batch) * 4, 1.0f));
    const auto results = model.run({{"x", x}});
    for (const float p : results.at("probabilities").values()) std::printf("%.3f ", static_cast<double>(p));
    std::printf("\n");
  }
  std::printf("compiled: %lld\n", static_cast<long long>(model.compiled()));
}
