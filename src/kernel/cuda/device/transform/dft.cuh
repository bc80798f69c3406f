// dft: a block for each line. Powers of two take a radix-2 transform whose stages reorder as they go (Stockham), other
// lengths are summed directly.
#pragma once

#include "kernel/cuda/device/movement/axes.cuh"
#include "kernel/cuda/device/team.cuh"
#include "kernel/cuda/device/transform/dft.hpp"

namespace cermet::dft {

struct Config {
  DType type;
};

CERMET_DEVICE Complex operator+(Complex a, Complex b) { return {a.re + b.re, a.im + b.im}; }
CERMET_DEVICE Complex operator-(Complex a, Complex b) { return {a.re - b.re, a.im - b.im}; }
CERMET_DEVICE Complex operator*(Complex a, Complex b) { return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }

/// exp(-+ 2 pi i j / n); j < n.
CERMET_DEVICE Complex root(int64_t j, int64_t n, bool inverse) {
  double sine, cosine;
  sincospi(2.0 * static_cast<double>(j) / static_cast<double>(n), &sine, &cosine);
  return {static_cast<float>(cosine), static_cast<float>(inverse ? sine : -sine)};
}

/// One work item: a line.
template <Config C>
struct Task {
  using Params = dft::Params;
  using T = Element<C.type>;

  /// Stage by stage: halves of n / 2 elements apart become neighbours, so that results are in order at the end. Returns
  /// where they are.
  template <class Team>
  static __device__ Complex* transform(const Params& p, Team team, Complex* from, Complex* to) {
    const int64_t half = p.length / 2;
    for (int64_t width = 1; width < p.length; width *= 2) {
      for (int64_t i = team.rank(); i < half; i += Team::size) {
        const int64_t k = i % width;  // place in a transform of `width` that is done
        const Complex even = from[i], odd = from[i + half] * root(k, 2 * width, p.inverse);
        to[2 * i - k] = even + odd;
        to[2 * i - k + width] = even - odd;
      }
      team.sync();
      Complex* const done = to;
      to = from;
      from = done;
    }
    return from;
  }

  static CERMET_DEVICE Complex sum(const Params& p, const Complex* x, int64_t k) {
    Complex total{0, 0};
    int64_t turn = 0;  // j * k modulo the length
    for (int64_t j = 0; j < p.given; ++j) {
      total = total + x[j] * root(turn, p.length, p.inverse);
      turn += k;
      if (turn >= p.length) turn -= p.length;
    }
    return total;
  }

  template <class Team>
  static __device__ void run(const Params& p, uint32_t item, Team team, char*) {
    int64_t offset[2];
    offsets_at(p.lines, item, offset);
    const T* x = static_cast<const T*>(p.x) + offset[0];
    T* y = static_cast<T*>(p.y) + offset[1];
    Complex* line = p.work + static_cast<int64_t>(item) * 2 * p.length;
    for (int64_t j = team.rank(); j < p.length; j += Team::size) {
      const T* number = x + j * p.x_stride;
      line[j] = j < p.given ? Complex{to_float(number[0]), p.complex ? to_float(number[1]) : 0.0f} : Complex{0, 0};
    }
    team.sync();
    const bool power_of_two = (p.length & (p.length - 1)) == 0;
    const Complex* done = power_of_two ? transform(p, team, line, line + p.length) : nullptr;
    const float scale = p.inverse ? 1.0f / static_cast<float>(p.length) : 1.0f;
    for (int64_t k = team.rank(); k < p.results; k += Team::size) {
      const Complex result = done ? done[k] : sum(p, line, k);
      y[k * p.y_stride] = from_float<T>(result.re * scale);
      y[k * p.y_stride + 1] = from_float<T>(result.im * scale);
    }
    team.sync();
  }
};

}  // namespace cermet::dft
