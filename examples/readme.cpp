#include <cermet/cermet.hpp>
#include <cstdio>

int main() {
  cermet::tensor x({2, 4}, {1, 2, 3, 4, -4, -3, -2, -1});                      // two rows
  cermet::tensor w({3, 4}, {1, 0, 0, 0, 0, 1, 0, 0, 0.25, 0.25, 0.25, 0.25});  // three output features
  auto linear = cermet::get_op("linear", {x, cermet::weight(w)});  // checked, a kernel chosen, the weight packed
  auto softmax = cermet::get_op("softmax", {x});
  for (float v : linear({x}).values()) std::printf("%g ", v);
  std::printf("by %s\n", linear.kernel().c_str());
  for (float v : softmax({x}).values()) std::printf("%.3f ", v);
  try {
    cermet::get_op("linear", {x, cermet::tensor({3, 5})});
  } catch (const cermet::error& e) {
    std::printf("\n%s\n", e.what());
  }
}
