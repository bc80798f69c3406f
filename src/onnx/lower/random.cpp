// Random numbers: Philox with the seed as its key, made while a model is imported, so that every run of it has the same
// ones. Element i of a tensor is made of the counter (i, stream). With attribute seed, the stream is the iteration of
// the loops around the node; without, the key is 0 and the stream numbers the nodes without a seed in their order.
#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>

#include "base/buffer.hpp"
#include "onnx/lowering.hpp"
#include "op/philox.hpp"
#include "op/schema/reference.hpp"

namespace cermet::onnx {
namespace {

constexpr std::int64_t most_random = std::int64_t{1} << 22;

class RandomStream {
 public:
  explicit RandomStream(Lowering& l) : seeded_(l.has_attribute("seed")) {
    key_ = seeded_ ? std::bit_cast<std::uint32_t>(static_cast<float>(l.number("seed", 0))) : 0;
    stream_ = seeded_ ? l.iteration() : l.next_draw();
  }

  Philox4 bits(std::uint64_t i) const {
    return philox({{low(i), low(i >> 32), low(stream_), low(stream_ >> 32)}}, key_, seeded_ ? 1 : 0);
  }

 private:
  static std::uint32_t low(std::uint64_t x) { return static_cast<std::uint32_t>(x); }

  bool seeded_;
  std::uint32_t key_;
  std::uint64_t stream_;
};

/// In [0, 1), of 24 bits.
double uniform_of(const Philox4& bits) { return (bits.word[0] >> 8) * 0x1p-24; }
/// In [0, 1), of 53 bits.
double long_uniform_of(std::uint32_t a, std::uint32_t b) {
  return static_cast<double>((std::uint64_t{a} << 32 | b) >> 11) * 0x1p-53;
}
/// Box and Muller's.
double normal_of(const Philox4& bits) {
  const double radius = std::sqrt(-2 * std::log(1 - long_uniform_of(bits.word[0], bits.word[1])));
  return radius * std::cos(2 * std::numbers::pi * long_uniform_of(bits.word[2], bits.word[3]));
}

template <class Value>
Operand random_tensor(Lowering& l, DType dtype, const Dims& dims, Value&& value) {
  if (!is_floating(dtype) || size_of(dtype) < 2)
    l.unsupported("attribute dtype: expected a floating type of at least 16 bits, found {}", name_of(dtype));
  Shape shape;
  l.expect(dims.size() <= static_cast<std::size_t>(Shape::max_rank), "shape: expected at most {} dimensions, found {}",
           Shape::max_rank, dims.size());
  for (const Dim& d : dims) {
    shape.push_back(l.constant(d));
    l.expect(shape.back() >= 0 && shape.back() < (std::int64_t{1} << 40), "shape: expected sizes, found {}",
             shape.back());
  }
  std::int64_t count = 1;
  for (int a = 0; a < shape.rank(); ++a) count = shape[a] == 0 ? 0 : std::min(count, most_random + 1) * shape[a];
  if (count > most_random)
    l.unsupported("random tensors of more than {} elements are not supported, found {}", most_random, to_string(dims));
  static_cast<void>(l.listed(count));
  const RandomStream stream(l);
  const OwnedTensor memory(dtype, shape);
  for (std::int64_t i = 0; i < count; ++i) store(memory.view, i, value(stream.bits(static_cast<std::uint64_t>(i))));
  const auto* bytes = memory.view.as<const std::byte>();
  return l.constant({{dtype, dims}, std::span(bytes, static_cast<std::size_t>(dense_bytes(dtype, shape)))});
}

Operand normal_tensor(Lowering& l, DType dtype, const Dims& dims) {
  const double mean = l.number("mean", 0), scale = l.number("scale", 1);
  return random_tensor(l, dtype, dims, [&](const Philox4& bits) { return mean + scale * normal_of(bits); });
}

Operand uniform_tensor(Lowering& l, DType dtype, const Dims& dims, double low, double high) {
  const bool is_long = dtype == DType::f64;
  return random_tensor(l, dtype, dims, [&](const Philox4& bits) {
    return low + (high - low) * (is_long ? long_uniform_of(bits.word[0], bits.word[1]) : uniform_of(bits));
  });
}

DType stated_dtype(Lowering& l, DType fallback) {
  return l.has_attribute("dtype") ? l.dtype_of_code(l.integer("dtype", 0)) : fallback;
}

Dims stated_shape(Lowering& l) {
  const Ints shape = l.integers("shape");
  l.expect(l.has_attribute("shape"), "attribute shape: expected sizes, found none");
  return {shape.begin(), shape.end()};
}

}  // namespace

void lower_random_normal(Lowering& l) { l.set(0, normal_tensor(l, stated_dtype(l, DType::f32), stated_shape(l))); }
void lower_random_normal_like(Lowering& l) {
  l.set(0, normal_tensor(l, stated_dtype(l, l.dtype(l.in(0))), l.dims(l.in(0))));
}

void lower_random_uniform(Lowering& l) {
  l.set(0, uniform_tensor(l, stated_dtype(l, DType::f32), stated_shape(l), l.number("low", 0), l.number("high", 1)));
}

void lower_random_uniform_like(Lowering& l) {
  l.set(0,
        uniform_tensor(l, stated_dtype(l, l.dtype(l.in(0))), l.dims(l.in(0)), l.number("low", 0), l.number("high", 1)));
}

/// 1 with the probability that the operand has.
void lower_bernoulli(Lowering& l) {
  const Operand x = l.in(0), p = l.widened(x);
  l.set(0,
        l.cast(l.binary(OpKind::less, uniform_tensor(l, l.dtype(p), l.dims(x), 0, 1), p), stated_dtype(l, l.dtype(x))));
}

/// Draws from each row of unnormalized logarithms of probabilities: how many classes' sums of probabilities a random
/// fraction of all has passed.
void lower_multinomial(Lowering& l) {
  const Operand x = l.widened(l.in(0));
  l.expect(l.rank(x) == 2, "expected [batch, classes], found {}", l.type(x).to_string());
  const DType to = stated_dtype(l, DType::i32);
  if (to != DType::i32 && to != DType::i64)
    l.unsupported("attribute dtype: expected int32 or int64, found {}", name_of(to));
  const std::int64_t classes = l.size(x, 1), count = l.integer("sample_size", 1);
  l.expect(classes >= 1 && count >= 0, "expected at least one class and no negative sample_size, found {} and {}",
           classes, count);
  const Operand sums = l.op(OpKind::cumsum, {l.unary(OpKind::softmax, x)}, {{"axis", std::int64_t{1}}});
  const Operand all = l.slice(sums, 1, classes - 1, classes);
  const Operand at =
      l.binary(OpKind::mul, uniform_tensor(l, l.dtype(x), {l.dim(x, 0), count}, 0, 1), all);  // [B, draws]
  const Operand passed =
      l.binary(OpKind::less_equal, l.unsqueeze(l.slice(sums, 1, 0, classes - 1), {1}), l.unsqueeze(at, {2}));
  l.set(0, l.reduce(OpKind::reduce_sum, l.cast(passed, to), {2}, false));
}

}  // namespace cermet::onnx
