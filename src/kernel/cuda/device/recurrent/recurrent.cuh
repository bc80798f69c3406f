// lstm, gru and rnn: a block for each direction and sequence walks through the time steps. A warp takes a gate's row of
// both weights at a time, then a thread an element of the state. Sums and states are float32 and lie in scratch memory
// of the block.
#pragma once

#include "kernel/cuda/device/pointwise/math.cuh"
#include "kernel/cuda/device/recurrent/recurrent.hpp"
#include "kernel/cuda/device/team.cuh"

namespace cermet::recurrent {

enum class Function : uint32_t {
#define RECURRENT(name, text, parameters, alpha, beta, expression) name,
#include "op/recurrent.inc"
#undef RECURRENT
};

CERMET_DEVICE float activate(const Activation& activation, float clip, float value) {
  if (clip > 0) value = value != value ? value : fminf(fmaxf(value, -clip), clip);
  const Real x = value;
  [[maybe_unused]] const Real alpha = activation.alpha, beta = activation.beta;
  switch (static_cast<Function>(activation.function)) {
#define RECURRENT(name, text, parameters, alpha_default, beta_default, expression) \
  case Function::name:                                                             \
    return Real(expression).v;
#include "op/recurrent.inc"
#undef RECURRENT
  }
  return value;
}

/// One work item: a direction of a sequence.
template <Config C>
struct Task {
  using Params = recurrent::Params;
  using T = Element<C.type>;
  static constexpr int gates = C.cell == Cell::lstm ? 4 : C.cell == Cell::gru ? 3 : 1;

  static CERMET_DEVICE const T* at(const Strided& operand, int64_t i, int64_t j = 0, int64_t k = 0) {
    return static_cast<const T*>(operand.data) + i * operand.stride[0] + j * operand.stride[1] + k * operand.stride[2];
  }
  static CERMET_DEVICE float value(const Strided& operand, const T* row, int64_t i) {
    return operand.data ? to_float(row[i]) : 0.0f;
  }

  /// The product of two rows, in all lanes of a warp.
  template <class X>
  static CERMET_DEVICE float dot(const T* row, const X* x, int64_t length) {
    float sum = 0;
    for (int64_t k = lane_index(); k < length; k += 32) sum += to_float(row[k]) * to_float(x[k]);
#pragma unroll
    for (int mask = 16; mask > 0; mask /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, mask);
    return sum;
  }

  /// What a block works on.
  struct Sequence {
    int64_t d, b, length;
    float *inputs, *products, *h, *c,
        *reset;  ///< sums of x with w and of the state with r: [gates * hidden]; states: [hidden]
    const Activation* functions;
  };

  template <class Team>
  static CERMET_DEVICE void sum_gates(const Params& p, const Sequence& s, Team team, int64_t time) {
    const int64_t rows = gates * p.hidden;
    const T* bias = at(p.bias, s.d);
    for (int64_t n = team.warp(); n < rows; n += Team::warps) {
      const float input = dot(at(p.w, s.d, n), at(p.x, time, s.b), p.input),
                  product = dot(at(p.r, s.d, n), s.h, p.hidden);
      if (lane_index() != 0) continue;
      s.inputs[n] = input + value(p.bias, bias, n);
      s.products[n] = product + value(p.bias, bias, rows + n);
    }
    team.sync();
  }

  /// gru: the candidate's products with r * h.
  template <class Team>
  static CERMET_DEVICE void reset_state(const Params& p, const Sequence& s, Team team) {
    for (int64_t j = team.rank(); j < p.hidden; j += Team::size)
      s.reset[j] = activate(s.functions[0], p.clip, s.inputs[p.hidden + j] + s.products[p.hidden + j]) * s.h[j];
    team.sync();
    const T* bias = at(p.bias, s.d);
    for (int64_t j = team.warp(); j < p.hidden; j += Team::warps) {
      const int64_t n = 2 * p.hidden + j;
      const float product = dot(at(p.r, s.d, n), s.reset, p.hidden);
      if (lane_index() == 0) s.products[n] = product + value(p.bias, bias, gates * p.hidden + n);
    }
    team.sync();
  }

  static CERMET_DEVICE float next_state(const Params& p, const Sequence& s, int64_t j) {
    const auto sum = [&](int gate) { return s.inputs[gate * p.hidden + j] + s.products[gate * p.hidden + j]; };
    const auto act = [&](int which, float x) { return activate(s.functions[which], p.clip, x); };
    if constexpr (C.cell == Cell::rnn) {
      return act(0, sum(0));
    } else if constexpr (C.cell == Cell::gru) {
      const float z = act(0, sum(0));
      float product = s.products[2 * p.hidden + j];
      if (p.reset_after) product *= act(0, sum(1));
      return (1 - z) * act(1, s.inputs[2 * p.hidden + j] + product) + z * s.h[j];
    } else {
      const T* peepholes = at(p.peepholes, s.d);
      const auto seen = [&](int gate, float c) {
        return p.peepholes.data ? to_float(peepholes[gate * p.hidden + j]) * c : 0.0f;
      };
      const float before = s.c[j];
      const float i = act(0, sum(0) + seen(0, before)), f = p.coupled ? 1 - i : act(0, sum(2) + seen(2, before));
      const float c = f * before + i * act(1, sum(3));
      s.c[j] = c;
      return act(0, sum(1) + seen(1, c)) * activate(s.functions[2], 0, c);
    }
  }

  static CERMET_DEVICE void write(const Strided& result, int64_t i, int64_t j, int64_t k, int64_t column, float x) {
    const_cast<T*>(at(result, i, j, k))[column] = from_float<T>(x);
  }

  template <class Team>
  static __device__ void run(const Params& p, uint32_t item, Team team, char*) {
    float* scratch = p.scratch + static_cast<int64_t>(item) * scratch_floats(gates, p.hidden);
    Sequence s;
    s.d = item / p.batch;
    s.b = item % p.batch;
    s.length = p.lengths ? max_of<int64_t>(0, min_of<int64_t>(p.lengths[s.b], p.steps)) : p.steps;
    s.inputs = scratch;
    s.products = s.inputs + gates * p.hidden;
    s.h = s.products + gates * p.hidden;
    s.c = s.h + p.hidden;
    s.reset = s.c + p.hidden;
    s.functions = p.functions + 3 * s.d;
    const T *h = at(p.initial_h, s.d, s.b), *c = at(p.initial_c, s.d, s.b);
    for (int64_t j = team.rank(); j < p.hidden; j += Team::size) {
      s.h[j] = value(p.initial_h, h, j);
      s.c[j] = value(p.initial_c, c, j);
    }
    team.sync();
    for (int64_t step = 0; step < s.length; ++step) {
      const int64_t time = p.reverse >> s.d & 1 ? s.length - 1 - step : step;
      sum_gates(p, s, team, time);
      if constexpr (C.cell == Cell::gru)
        if (!p.reset_after) reset_state(p, s, team);
      for (int64_t j = team.rank(); j < p.hidden; j += Team::size) {
        const float next = next_state(p, s, j);
        s.h[j] = next;
        write(p.y, time, s.d, s.b, j, next);
      }
      team.sync();
    }
    for (int64_t j = team.rank(); j < p.hidden; j += Team::size) {
      for (int64_t time = s.length; time < p.steps; ++time) write(p.y, time, s.d, s.b, j, 0);
      write(p.y_h, s.d, s.b, 0, j, s.h[j]);
      if constexpr (C.cell == Cell::lstm) write(p.y_c, s.d, s.b, 0, j, s.c[j]);
    }
    team.sync();
  }
};

}  // namespace cermet::recurrent
