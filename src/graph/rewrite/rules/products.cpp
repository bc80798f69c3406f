// Scales, biases and sums of products with weights, folded into the weights while they load.
#include <algorithm>

#include "graph/rewrite/replace.hpp"
#include "op/schema/operator.hpp"

namespace cermet {
namespace {

using enum RoundingClass;

bool is_one_dimension(const TensorType& type, const Dim& size, std::size_t from_the_end) {
  const std::size_t rank = type.dims.size();
  if (rank < from_the_end || type.dtype != DType::f32) return false;
  for (std::size_t a = 0; a < rank; ++a)
    if (type.dims[a] != (a + from_the_end == rank ? size : Dim(1))) return false;
  return true;
}
bool keeps_type(const Match& m, std::size_t node) {
  return m.attributes(node).text("out_dtype").empty() && m.type("x").dtype == DType::f32;
}
bool is_float32(const Match& m, const char* name) { return !m.has(name) || m.type(name).dtype == DType::f32; }

/// s has a number for each column of the product, and everything is float32.
bool scales_columns(const Match& m) {
  return keeps_type(m, 0) && is_float32(m, "w") && is_float32(m, "b") &&
         is_one_dimension(m.type("s"), m.type("w").dims[0], 1);
}
/// s has a number for each element of a row of x.
bool scales_rows(const Match& m) {
  return keeps_type(m, 1) && is_float32(m, "w") && is_float32(m, "b") &&
         is_one_dimension(m.type("s"), m.type("w").dims[1], 1);
}
bool is_plain_product(const Match& m) { return keeps_type(m, 0) && is_float32(m, "w") && is_float32(m, "b"); }
bool are_plain(const Match& m) {
  return keeps_type(m, 0) && keeps_type(m, 1) && is_float32(m, "w1") && is_float32(m, "w2") && is_float32(m, "b1") &&
         is_float32(m, "b2");
}

/// A convolution without residual and activation over channels that are its second dimension; s has a number for each.
bool scales_channels(const Match& m) {
  const Attributes conv = m.attributes(0);
  const bool is_bare =
      conv.text("activation") == "identity" && conv.text("layout") == "nchw" && m.type("x").dtype == DType::f32;
  return is_bare && is_float32(m, "w") && is_float32(m, "b") &&
         is_one_dimension(m.type("s"), m.type("w").dims[0], static_cast<std::size_t>(m.type("y").rank()) - 1);
}
/// The weight seen with one number for each output channel in front.
Attributes as_kernels(const Match& m) {
  Ints shape(m.type("w").dims.size(), 1);
  shape[0] = -1;
  return {{"shape", shape}};
}
bool is_bare_conv(const Match& m) {
  const Attributes conv = m.attributes(0);
  return conv.text("activation") == "identity" && m.type("x").dtype == DType::f32 && is_float32(m, "w") &&
         is_float32(m, "b");
}

/// Products of stacks of matrices; the sum of two left or right sides is taken before the product.
bool matmuls_alike(const Match& m) { return m.attributes(0) == m.attributes(1) && m.type("a").dtype == DType::f32; }
bool is_plain_chain(const Match& m) {
  const Attributes first = m.attributes(0), second = m.attributes(1);
  const auto plain = [](const Attributes& a) {
    return !a.flag("transpose_a") && !a.flag("transpose_b") && a.text("out_dtype").empty();
  };
  return plain(first) && plain(second) && m.type("a").dtype == DType::f32 && m.type("b").dtype == DType::f32 &&
         m.type("c").dtype == DType::f32;
}
/// The transpose swaps the last two dimensions and nothing else.
bool swaps_last(const Match& m) {
  Ints permutation = m.attributes(0).integers("permutation");
  const int rank = m.type("t").rank();
  if (permutation.empty()) return rank == 2;
  std::swap(permutation[static_cast<std::size_t>(rank) - 1], permutation[static_cast<std::size_t>(rank) - 2]);
  return std::ranges::is_sorted(permutation);
}
bool swaps_last_of_many(const Match& m) { return m.type("t").rank() >= 2 && swaps_last(m); }
Attributes with_flipped(const Match& m, std::string_view name) {
  Attributes a = m.attributes(1);
  a.set(name, !a.flag(name));
  return a;
}

constexpr std::string_view columns = "own w; (f32; s has a number for each column)",
                           channels = "own w; (f32; s has a number for each channel)";
constexpr std::string_view plain = "own w; finite c; (f32)", own_two = "own w1; own w2; (f32)";

constexpr AlgebraRow product_rows[] = {
    // linear
    {"linear-then-scale", fast, "mul(linear(x, w@, -), s@) -> linear(x, mul(w, reshape(s) {shape = [-1, 1]}), -)",
     columns, scales_columns, nullptr},
    {"linear-bias-then-scale", fast,
     "mul(linear(x, w@, b@), s@) -> linear(x, mul(w, reshape(s) {shape = [-1, 1]}), mul(b, reshape(s) {shape = [-1]}))",
     columns, scales_columns, nullptr},
    {"linear-of-scaled", fast, "linear(mul(x, s@), w@, b?) -> linear(x, mul(w, reshape(s) {shape = [1, -1]}), b)",
     "own w; (f32; s has a number for each element of a row)", scales_rows, nullptr},
    {"linear-times-number", fast, "mul(linear(x, w@, -), c#) -> linear(x, mul(w, c), -)", plain, is_plain_product,
     nullptr},
    {"linear-bias-times-number", fast, "mul(linear(x, w@, b@), c#) -> linear(x, mul(w, c), mul(b, c))", plain,
     is_plain_product, nullptr},
    {"linear-over-number", fast, "div(linear(x, w@, -), c#) -> linear(x, div(w, c), -)", "own w; c != 0; (f32)",
     is_plain_product, nullptr},
    {"linear-bias-over-number", fast, "div(linear(x, w@, b@), c#) -> linear(x, div(w, c), div(b, c))",
     "own w; c != 0; (f32)", is_plain_product, nullptr},
    {"negative-linear", fast, "neg(linear(x, w@, -)) -> linear(x, neg(w), -)", "own w; (f32)", is_plain_product,
     nullptr},
    {"negative-linear-bias", fast, "neg(linear(x, w@, b@)) -> linear(x, neg(w), neg(b))", "own w; (f32)",
     is_plain_product, nullptr},
    {"linear-of-negative", strict, "linear(neg(x), w@, b?) -> linear(x, neg(w), b)", "own w; (f32)",
     [](const Match& m) { return keeps_type(m, 1) && is_float32(m, "w"); }, nullptr},
    {"linear-second-bias", fast, "add(linear(x, w@, b1@), b2@) -> linear(x, w, add(b1, b2))", "(f32)",
     [](const Match& m) {
       return keeps_type(m, 0) && is_float32(m, "w") && is_float32(m, "b1") && is_float32(m, "b2");
     },
     nullptr},
    {"linear-less-bias", fast, "sub(linear(x, w@, -), b@) -> linear(x, w, neg(b))", "(f32)", is_plain_product, nullptr},
    {"linear-of-linear", fast, "linear(linear(x, w1@, -), w2@, b?) -> linear(x, matmul(w2, w1), b)", own_two,
     [](const Match& m) { return are_plain(m) && is_float32(m, "b"); }, nullptr},
    {"add-linears", fast, "add(linear(x, w1@, -), linear(x, w2@, -)) -> linear(x, add(w1, w2), -)", own_two, are_plain,
     nullptr},
    {"add-linears-with-biases", fast,
     "add(linear(x, w1@, b1@), linear(x, w2@, b2@)) -> linear(x, add(w1, w2), add(b1, b2))", own_two, are_plain,
     nullptr},
    {"sub-linears", fast, "sub(linear(x, w1@, -), linear(x, w2@, -)) -> linear(x, sub(w1, w2), -)", own_two, are_plain,
     nullptr},
    {"add-rows-of-linears", fast, "add(linear(x, w, -), linear(z, w, -)) -> linear(add(x, z), w, -)", "(f32)",
     [](const Match& m) {
       return keeps_type(m, 0) && keeps_type(m, 1) && is_float32(m, "w") && m.type("x") == m.type("z");
     },
     nullptr},
    {"sub-rows-of-linears", fast, "sub(linear(x, w, -), linear(z, w, -)) -> linear(sub(x, z), w, -)", "(f32)",
     [](const Match& m) {
       return keeps_type(m, 0) && keeps_type(m, 1) && is_float32(m, "w") && m.type("x") == m.type("z");
     },
     nullptr},
    {"linears-scaled-apart", fast,
     "add(mul(linear(x, w, -), c), mul(linear(x, w, -), d)) -> mul(linear(x, w, -), add(c, d))"},
    {"linears-with-bias-scaled-apart", fast,
     "add(mul(linear(x, w, b), c), mul(linear(x, w, b), d)) -> mul(linear(x, w, b), add(c, d))"},
    // conv
    {"conv-then-scale", fast, "mul(conv(x, w@, -, -), s@) -> conv(x, mul(w, reshape(s)), -, -)", channels,
     scales_channels, as_kernels},
    {"conv-bias-then-scale", fast,
     "mul(conv(x, w@, b@, -), s@) -> conv(x, mul(w, reshape(s)), mul(b, reshape(s) {shape = [-1]}), -)", channels,
     scales_channels, as_kernels},
    {"conv-bias", strict, "add(conv(x, w, -, -), s@) -> conv(x, w, reshape(s) {shape = [-1]}, -)",
     "(f32; s has a number for each channel)", scales_channels, nullptr},
    {"conv-second-bias", fast, "add(conv(x, w, b@, -), s@) -> conv(x, w, add(b, reshape(s) {shape = [-1]}), -)",
     "(f32; s has a number for each channel)", scales_channels, nullptr},
    {"conv-less-bias", fast, "sub(conv(x, w, -, -), s@) -> conv(x, w, neg(reshape(s) {shape = [-1]}), -)",
     "(f32; s has a number for each channel)", scales_channels, nullptr},
    {"conv-times-number", fast, "mul(conv(x, w@, -, -), c#) -> conv(x, mul(w, c), -, -)", plain, is_bare_conv, nullptr},
    {"conv-bias-times-number", fast, "mul(conv(x, w@, b@, -), c#) -> conv(x, mul(w, c), mul(b, c), -)", plain,
     is_bare_conv, nullptr},
    {"conv-over-number", fast, "div(conv(x, w@, -, -), c#) -> conv(x, div(w, c), -, -)", "own w; c != 0; (f32)",
     is_bare_conv, nullptr},
    {"conv-bias-over-number", fast, "div(conv(x, w@, b@, -), c#) -> conv(x, div(w, c), div(b, c), -)",
     "own w; c != 0; (f32)", is_bare_conv, nullptr},
    // matmul
    {"matmul-of-scaled", fast, "matmul(mul(a, c#), b) -> mul(matmul(a, b), c)", "finite c"},
    {"matmul-with-scaled", fast, "matmul(a, mul(b, c#)) -> mul(matmul(a, b), c)", "finite c"},
    {"matmul-of-divided", fast, "matmul(div(a, c#), b) -> div(matmul(a, b), c)", "c != 0"},
    {"matmul-with-divided", fast, "matmul(a, div(b, c#)) -> div(matmul(a, b), c)", "c != 0"},
    {"scaled-matmul", fast, "mul(matmul(a, b), c#) -> matmul(mul(a, c), b)", "finite c"},
    {"scaled-matmul-right", fast, "mul(matmul(a, b), c#) -> matmul(a, mul(b, c))", "finite c"},
    {"negative-matmul-factors", strict, "matmul(neg(a), neg(b)) -> matmul(a, b)"},
    {"add-matmuls-of-left", fast, "add(matmul(a, b), matmul(a, c)) -> matmul(a, add(b, c))", "same b c; (f32; alike)",
     matmuls_alike, nullptr},
    {"add-matmuls-of-right", fast, "add(matmul(a, c), matmul(b, c)) -> matmul(add(a, b), c)", "same a b; (f32; alike)",
     matmuls_alike, nullptr},
    {"sub-matmuls-of-left", fast, "sub(matmul(a, b), matmul(a, c)) -> matmul(a, sub(b, c))", "same b c; (f32; alike)",
     matmuls_alike, nullptr},
    {"sub-matmuls-of-right", fast, "sub(matmul(a, c), matmul(b, c)) -> matmul(sub(a, b), c)", "same a b; (f32; alike)",
     matmuls_alike, nullptr},
    {"matmul-from-right", fast, "matmul(matmul(a, b), c) -> matmul(a, matmul(b, c))", "(f32; nothing is transposed)",
     is_plain_chain, nullptr},
    {"matmul-from-left", fast, "matmul(a, matmul(b, c)) -> matmul(matmul(a, b), c)", "(f32; nothing is transposed)",
     is_plain_chain, nullptr},
    {"matmul-with-transposed", strict, "t = transpose(b); y = matmul(a, t) -> y = matmul(a, b)",
     "(the last two dimensions are swapped)", swaps_last_of_many,
     [](const Match& m) { return with_flipped(m, "transpose_b"); }},
    {"matmul-of-transposed", strict, "t = transpose(a); y = matmul(t, b) -> y = matmul(a, b)",
     "(the last two dimensions are swapped)", swaps_last_of_many,
     [](const Match& m) { return with_flipped(m, "transpose_a"); }},
};

}  // namespace

std::span<const AlgebraRow> product_rules() { return product_rows; }

}  // namespace cermet
