// One product in three forms: for tensors of any shape, by kernel name and configuration, and as a function.
#include <cermet/ops.hpp>
#include <cstdio>

int main() {
  const cermet::handle cpu("cpu");
  const cermet::tensor x({2, 3}, {1, 2, 3, 4, 5, 6}), w({2, 3}, {1, 0, 0, 0, 1, 1}), y({2, 2});
  const auto print = [](const char* form, const cermet::tensor& t) {
    std::printf("%s: %g %g, %g %g\n", form, t.values()[0], t.values()[1], t.values()[2], t.values()[3]);
  };

  auto linear = cpu.get_op("linear", x, w);  // validates, infers, chooses a kernel for these types and shapes
  print("get_op", linear(x, w));             // a new tensor
  linear(x, w, cermet::out(y));              // into memory of the caller, of other shapes too

  auto packed = cpu.get_op("linear", {x, cermet::weight(w)}, {{"out_dtype", "f32"}}, {"gemm.linear.packed", ""});
  print(packed.kernel().c_str(), packed(x));  // the constant is packed once

  print("function", cermet::linear(x, w));  // for every operator, with named attributes:
  cermet::topk_options options;
  options.k = 1;
  std::printf("largest: %g\n", cermet::topk(y, options).values.values()[1]);
}
