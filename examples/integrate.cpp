// A linear layer of another framework on Cermet. Memory, device and stream are the framework's; the weight is packed
// once and serves every batch size.
#include <cermet/cermet.hpp>
#include <cstdio>

class Linear {
 public:
  // w: [N, K] on the host or on the device of the handle. Batches have up to most_rows rows.
  Linear(const cermet::handle& device, const cermet::tensor& w, std::int64_t most_rows)
      : weight_(w, device),
        product_(device, "linear", {rows(w, most_rows), cermet::weight(weight_)}),
        rounded_(device, "linear", {rows(w, most_rows), cermet::weight(weight_)}, {{"out_dtype", "bf16"}}) {
    weight_.detach();  // both products use one copy; the framework may free its own
  }
  // x: [M, K], y: [M, N], on the device of the handle. On a GPU the work is enqueued on the stream.
  void forward(const DLTensor& x, const DLTensor& y, void* stream = nullptr) {
    const cermet::tensor result = cermet::tensor::view(y);
    (result.type() == cermet::dtype::bf16 ? rounded_ : product_)
        .run({cermet::tensor::view(x)}, {result}, cermet::stream(stream));
  }

 private:
  static cermet::descriptor rows(const cermet::tensor& w, std::int64_t most) {
    return {w.type(), {cermet::up_to('M', most), w.shape()[1]}};
  }

  cermet::shared_weight weight_;
  cermet::operation product_, rounded_;
};

int main() {
  float w[2][3] = {{1, 2, 3}, {4, 5, 6}}, x[4][3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}, {1, 1, 1}}, y[4][2];
  const cermet::handle device("cpu");  // "cuda:1" for tensors on the second GPU
  Linear layer(device, cermet::tensor::view(w, {2, 3}, cermet::dtype::f32), 4096);
  for (std::int64_t m : {1, 4}) {
    std::int64_t x_shape[] = {m, 3}, y_shape[] = {m, 2};
    layer.forward({x, {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, x_shape, nullptr, 0},
                  {y, {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, y_shape, nullptr, 0});
    for (std::int64_t i = 0; i < m; ++i) std::printf("%g %g%s", y[i][0], y[i][1], i + 1 < m ? ", " : "\n");
  }
  try {
    std::int64_t shape[] = {1, 3};
    layer.forward({x, {kDLCUDA, 0}, 2, {kDLFloat, 32, 1}, shape, nullptr, 0},
                  {y, {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, shape, nullptr, 0});
  } catch (const cermet::error& error) {
    std::printf("%s\n", error.what());
  }
}
