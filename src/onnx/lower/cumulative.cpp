// Running sums and products.
#include "onnx/lowering.hpp"

namespace cermet::onnx {

void lower_cum_sum(Lowering& l) {
  const Operand x = l.in(0);
  const Ints axis = l.ints_in(l.in(1));
  l.expect(axis.size() == 1, "axis: expected one, found {}", axis.size());
  l.set(0, l.op(OpKind::cumsum, {x},
                {{"axis", std::int64_t{l.axis(axis[0], l.rank(x))}},
                 {"exclusive", l.integer("exclusive", 0) != 0},
                 {"reverse", l.integer("reverse", 0) != 0}}));
}

/// Products of 1, 2, 4, .. elements in turn: each step multiplies with what is so many positions before.
void lower_cum_prod(Lowering& l) {
  Operand y = l.in(0);
  const Ints axis = l.ints_in(l.in(1));
  l.expect(axis.size() == 1, "axis: expected one, found {}", axis.size());
  const int a = l.axis(axis[0], l.rank(y));
  const bool reverse = l.integer("reverse", 0) != 0;
  const std::int64_t n = l.size(y, a);
  const auto shifted = [&](Operand x, std::int64_t by) {
    const Operand kept = reverse ? l.slice(x, a, by, n) : l.slice(x, a, 0, n - by);
    Ints pads(2 * static_cast<std::size_t>(l.rank(x)));
    pads[static_cast<std::size_t>(reverse ? a + l.rank(x) : a)] = by;
    return l.op(OpKind::pad, {kept}, {{"pads", pads}, {"mode", "constant"}, {"value", 1.0}});
  };
  if (l.integer("exclusive", 0) != 0 && n > 0) y = shifted(y, 1);
  for (std::int64_t by = 1; by < n; by *= 2) y = l.binary(OpKind::mul, y, shifted(y, by));
  l.set(0, y);
}

}  // namespace cermet::onnx
