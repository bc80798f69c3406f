#include <cermet/cermet.hpp>
#include <cstdio>

int main() {
  const cermet::tensor x({1, 4}, {2, 2, 2, 2});
  std::printf("%.3f\n", cermet::get_op("rms_norm", {x})({x}).values()[3]);
}
