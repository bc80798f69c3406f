// Rotation of heads by their positions' angles.
#include "onnx/lower/heads.hpp"

namespace cermet::onnx {
namespace {

/// Elements that are turned against one another, each [.., R / 2].
std::pair<Operand, Operand> halves(Lowering& l, Operand x, bool interleaved) {
  const int last = l.rank(x) - 1;
  const std::int64_t half = l.size(x, last) / 2;
  if (!interleaved) return {l.slice(x, last, 0, half), l.slice(x, last, half, 2 * half)};
  Dims pairs = l.dims(x);
  pairs.back() = half;
  pairs.push_back(2);
  const Operand split = l.reshape(x, pairs);
  return {l.squeeze(l.slice(split, last + 1, 0, 1), {last + 1}), l.squeeze(l.slice(split, last + 1, 1, 2), {last + 1})};
}

}  // namespace

Operand rotated(Lowering& l, Operand x, Operand cos, Operand sin, bool interleaved) {
  const int last = l.rank(x) - 1;
  const std::int64_t size = l.size(x, last), turned = 2 * l.size(cos, -1);
  const Operand part = l.widened(turned < size ? l.slice(x, last, 0, turned) : x);
  cos = l.widened(cos);
  sin = l.widened(sin);
  const auto [a, b] = halves(l, part, interleaved);
  const Operand real = l.binary(OpKind::sub, l.binary(OpKind::mul, a, cos), l.binary(OpKind::mul, b, sin));
  const Operand imaginary = l.binary(OpKind::add, l.binary(OpKind::mul, a, sin), l.binary(OpKind::mul, b, cos));
  Operand y;
  if (interleaved)
    y = l.reshape(l.concat({l.unsqueeze(real, {last + 1}), l.unsqueeze(imaginary, {last + 1})}, last + 1),
                  l.dims(part));
  else y = l.concat({real, imaginary}, last);
  y = l.cast(y, l.dtype(x));
  return turned < size ? l.concat({y, l.slice(x, last, turned, size)}, last) : y;
}

}  // namespace cermet::onnx
