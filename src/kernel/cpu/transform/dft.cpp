#include <algorithm>
#include <cmath>
#include <memory>
#include <numbers>
#include <vector>

#include "base/checked.hpp"
#include "kernel/cpu/by_dtype.hpp"
#include "kernel/cpu/movement/axes.hpp"
#include "kernel/cpu/scalar.hpp"
#include "kernel/kernel.hpp"
#include "op/schema/axes.hpp"

namespace cermet::cpu {
namespace {

struct Complex {
  float re, im;
  friend Complex operator+(Complex a, Complex b) { return {a.re + b.re, a.im + b.im}; }
  friend Complex operator*(Complex a, Complex b) { return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }
};

std::int64_t smallest_factor(std::int64_t n) {
  for (std::int64_t p = 2; p * p <= n; ++p)
    if (n % p == 0) return p;
  return n;
}

/// exp(-+ 2 pi i j / n) for j < n.
void write_roots(Complex* roots, std::int64_t n, bool inverse) {
  for (std::int64_t j = 0; j < n; ++j) {
    const double angle = 2 * std::numbers::pi * static_cast<double>(j) / static_cast<double>(n) * (inverse ? 1 : -1);
    roots[j] = {static_cast<float>(std::cos(angle)), static_cast<float>(std::sin(angle))};
  }
}

/// A transform of `length` numbers, and what one thread needs for it.
struct Transform {
  const Complex* roots;
  std::int64_t length;
  Complex* terms;  ///< as many as the largest prime factor

  /// to[0 .. n) = the transform of n numbers `step` apart, by the smallest prime factor of n and so on (Cooley and
  /// Tukey). n * step = length.
  void run(const Complex* from, std::int64_t n, std::int64_t step, Complex* to) const {
    if (n == 1) {
      *to = *from;
      return;
    }
    const std::int64_t p = smallest_factor(n), m = n / p;
    for (std::int64_t r = 0; r < p; ++r) run(from + r * step, m, step * p, to + r * m);
    for (std::int64_t k = 0; k < m; ++k)
      if (p == 2) {
        const Complex even = to[k], odd = to[m + k] * roots[k * step];
        to[k] = even + odd;
        to[m + k] = {even.re - odd.re, even.im - odd.im};
      } else {
        combine(to + k, p, m, k, n, step);
      }
  }

 private:
  /// to[q * m] = sum over r < p of to[r * m] * root^(r * (k + q * m)).
  void combine(Complex* to, std::int64_t p, std::int64_t m, std::int64_t k, std::int64_t n, std::int64_t step) const {
    for (std::int64_t r = 0; r < p; ++r) terms[r] = to[r * m];
    for (std::int64_t q = 0; q < p; ++q) {
      const std::int64_t turn = k + q * m;
      Complex sum = terms[0];
      for (std::int64_t r = 1, at = turn; r < p; ++r, at = at + turn < n ? at + turn : at + turn - n)
        sum = sum + terms[r] * roots[at * step];
      to[q * m] = sum;
    }
  }
};

struct Dft {
  int axis;
  std::int64_t length;  ///< 0: that of x
  bool inverse;
  std::shared_ptr<const std::vector<Complex>> roots;  ///< of the length that was bound
};

/// Bytes of a line of complex numbers.
std::int64_t line_bytes(std::int64_t n) { return round_up(n * static_cast<std::int64_t>(sizeof(Complex)), 64); }

template <class T>
void transform_lines(const LaunchArgs& args, const Dft& dft, const Complex* roots, std::int64_t n, std::byte* scratch) {
  const TensorView &x = args.inputs[0], &y = args.outputs[0];
  const int rank = x.shape.rank();
  StridedAxes<2> lines;
  for (int a = 0; a + 1 < rank; ++a)
    if (a != dft.axis) lines.push_back(x.shape[a], {x.strides[a], y.strides[a]});
  const std::int64_t given = std::min(n, x.shape[dft.axis]), results = y.shape[dft.axis],
                     from_step = x.strides[dft.axis], to_step = y.strides[dft.axis];
  const bool complex = x.shape.back() == 2;
  const float scale = dft.inverse ? 1.0f / static_cast<float>(n) : 1.0f;
  args.pool->run([&](int thread) {
    auto* const in = reinterpret_cast<Complex*>(scratch + thread * 3 * line_bytes(n));
    auto* const out = reinterpret_cast<Complex*>(scratch + (thread * 3 + 1) * line_bytes(n));
    const Transform transform{roots, n, reinterpret_cast<Complex*>(scratch + (thread * 3 + 2) * line_bytes(n))};
    const std::int64_t count = lines.shape.elements(), begin = count * thread / args.pool->size(),
                       end = count * (thread + 1) / args.pool->size();
    Walk<2> walk(lines, begin);
    for (std::int64_t line = begin; line < end; ++line, walk.next()) {
      const T* const from = x.as<const T>() + walk.offset[0];
      for (std::int64_t j = 0; j < n; ++j) {
        const T* const number = from + j * from_step;
        in[j] = j < given ? Complex{load_float(number[0]), complex ? load_float(number[1]) : 0.0f} : Complex{0, 0};
      }
      transform.run(in, n, 1, out);
      T* const to = y.as<T>() + walk.offset[1];
      for (std::int64_t k = 0; k < results; ++k) {
        store_float(to[k * to_step], out[k].re * scale);
        store_float(to[k * to_step + 1], out[k].im * scale);
      }
    }
  });
}

void transform_axis(const LaunchArgs& args, const Dft& dft) {
  const std::int64_t n = dft.length > 0 ? dft.length : args.inputs[0].shape[dft.axis];
  if (args.outputs[0].elements() == 0) return;
  const Complex* roots = dft.roots->data();
  if (n != static_cast<std::int64_t>(dft.roots->size())) {
    auto* const own = reinterpret_cast<Complex*>(args.workspace);
    write_roots(own, n, dft.inverse);
    roots = own;
  }
  by_real_dtype(args.inputs[0].dtype, [&](auto zero) {
    transform_lines<decltype(zero)>(args, dft, roots, n, args.workspace + line_bytes(n));
  });
}

std::int64_t longest(const Problem& p) {
  const std::int64_t length = p.attributes.integer("length");
  return length > 0 ? length : p.size(0, wrap_axis(p.attributes.integer("axis"), p.input(0).rank()));
}

}  // namespace

extern const Kernel transform_dft{
    .name = "transform.dft",
    .op = OpKind::dft,
    .summary = "a mixed-radix transform of each line; lines spread over threads",
    .bind = [](const Problem& p) -> Launcher {
      const bool inverse = p.attributes.flag("inverse");
      auto roots = std::make_shared<std::vector<Complex>>(static_cast<std::size_t>(longest(p)));
      write_roots(roots->data(), longest(p), inverse);
      const Dft dft{wrap_axis(p.attributes.integer("axis"), p.input(0).rank()), p.attributes.integer("length"), inverse,
                    std::move(roots)};
      return [dft](const LaunchArgs& args) { transform_axis(args, dft); };
    },
    .workspace = [](const Problem& p, int threads) { return (1 + 3 * std::int64_t{threads}) * line_bytes(longest(p)); },
};

}  // namespace cermet::cpu
