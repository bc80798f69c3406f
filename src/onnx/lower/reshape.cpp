// The same elements with other dimensions.
#include "onnx/lowering.hpp"

namespace cermet::onnx {

void lower_reshape(Lowering& l) {
  const Operand x = l.in(0);
  const Dims from = l.dims(x);
  Dims to = l.version() < 5 ? [&] {
    const Ints shape = l.integers("shape");
    return Dims(shape.begin(), shape.end());
  }() : l.dims_in(l.in(1));
  const bool allow_zero = l.integer("allowzero", 0) != 0;
  std::optional<std::size_t> inferred;
  Dim known = 1;
  for (std::size_t i = 0; i < to.size(); ++i) {
    if (to[i] == Dim(0) && !allow_zero) {
      l.expect(i < from.size(), "shape: expected 0 only where the operand has a dimension, found it at {}", i);
      to[i] = from[i];
    }
    if (to[i] == Dim(-1)) {
      l.expect(!inferred, "shape: expected at most one -1, found several");
      inferred = i;
    } else {
      known = known * to[i];
    }
  }
  const Dim total = product(from);
  if (inferred) {
    if (total == Dim(0) && known == Dim(0)) {
      to[*inferred] = 0;
    } else {
      const std::optional<Dim> left = known == Dim(0) ? std::nullopt : exact_quotient(total, known);
      if (!left && !(total.is_constant() && known.is_constant()))
        static_cast<void>(l.constant(total.is_constant() ? known : total));
      l.expect(left.has_value(), "shape: expected dimensions that {} elements fill, found {}", total.to_string(),
               to_string(to));
      to[*inferred] = *left;
    }
  } else if (total != known) {
    if (!total.is_constant()) static_cast<void>(l.constant(total));
    if (!known.is_constant()) static_cast<void>(l.constant(known));
    l.expect(false, "shape: expected dimensions of {} elements, found {}", total.to_string(), to_string(to));
  }
  l.set(0, l.reshape(x, to));
}

void lower_flatten(Lowering& l) {
  const Operand x = l.in(0);
  const std::int64_t given = l.integer("axis", 1);
  const int at = given == l.rank(x) ? l.rank(x) : l.axis(given, l.rank(x));  // after the last too
  const Dims dims = l.dims(x);
  l.set(0, l.reshape(x, {product({dims.begin(), dims.begin() + at}), product({dims.begin() + at, dims.end()})}));
}

}  // namespace cermet::onnx
