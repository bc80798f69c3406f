#include <algorithm>
#include <cstring>

#include "kernel/cpu/by_size.hpp"
#include "kernel/kernel.hpp"

namespace cermet::cpu {
namespace {

void reshape(const LaunchArgs& args) {
  const TensorView &x = args.inputs[0], &y = args.outputs[0];
  if (x.data == y.data && x.is_dense() && y.is_dense()) return;
  const Rows from(x), to(y);
  const auto bytes = byte_size(x.dtype);
  args.pool->parallel_for(x.elements(), rows_per_thread(bytes), [&](std::int64_t begin, std::int64_t end) {
    while (begin < end) {  // the longest run that ends no row on either side
      const std::int64_t i = begin % from.length(), j = begin % to.length();
      const std::int64_t run = std::min({from.length() - i, to.length() - j, end - begin});
      std::memcpy(to.row(begin / to.length()) + j * bytes, from.row(begin / from.length()) + i * bytes,
                  static_cast<std::size_t>(run * bytes));
      begin += run;
    }
  });
}

}  // namespace

extern const Kernel movement_reshape{
    .name = "movement.reshape",
    .op = OpKind::reshape,
    .summary = "copies runs between rows of different length; nothing where operand and result share dense memory",
    .bind = [](const Problem&) -> Launcher { return reshape; },
};

}  // namespace cermet::cpu
