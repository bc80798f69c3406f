// The cells of lstm, gru and rnn on one sequence's row, as vectors over the hidden size: include after
// <hwy/foreach_target.h>.
#if defined(CERMET_RECURRENT_CELLS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef CERMET_RECURRENT_CELLS_INL
#undef CERMET_RECURRENT_CELLS_INL
#else
#define CERMET_RECURRENT_CELLS_INL
#endif

#include "kernel/cpu/math-inl.hpp"
#include "op/recurrent.hpp"

HWY_BEFORE_NAMESPACE();
namespace cermet::cpu::HWY_NAMESPACE {

inline Floats activate(const RecurrentActivation& activation, float clip, Floats vector) {
  Real x = vector;
  if (clip > 0) x = maximum(minimum(x, Real(clip)), Real(-clip));
  [[maybe_unused]] const Real alpha = activation.alpha, beta = activation.beta;
  switch (activation.function) {
#define RECURRENT(name, text, parameters, alpha_default, beta_default, expression) \
  case RecurrentFunction::name:                                                    \
    return Real(expression).v;
#include "op/recurrent.inc"
#undef RECURRENT
  }
  return x.v;
}

/// A sequence's row: its sums of inputs with biases, its products with the state, and its states. Gates lie `hidden`
/// apart.
struct CellRow {
  const float *inputs, *products;
  float *h, *c;
  std::size_t hidden;
  const RecurrentActivation* functions;
  float clip;

  HWY_INLINE Floats input(int gate, std::size_t i, std::size_t n) const {
    return load_n(inputs + static_cast<std::size_t>(gate) * hidden + i, n);
  }
  HWY_INLINE Floats product(int gate, std::size_t i, std::size_t n) const {
    return load_n(products + static_cast<std::size_t>(gate) * hidden + i, n);
  }
  HWY_INLINE Floats sum(int gate, std::size_t i, std::size_t n) const {
    return hn::Add(input(gate, i, n), product(gate, i, n));
  }
};

/// Gates i, o, f, c. `peepholes`: [3][hidden] for i, o, f, or null.
inline void lstm_cell(const CellRow& row, const float* peepholes, bool coupled) {
  const auto seen = [&](Floats sum, int gate, Floats c, std::size_t i, std::size_t n) HWY_ATTR {
    return peepholes ? hn::MulAdd(load_n(peepholes + static_cast<std::size_t>(gate) * row.hidden + i, n), c, sum) : sum;
  };
  for_vectors(row.hidden, [&](std::size_t k, std::size_t n) HWY_ATTR {
    const auto before = load_n(row.c + k, n);
    const auto i = activate(row.functions[0], row.clip, seen(row.sum(0, k, n), 0, before, k, n));
    const auto f = coupled ? hn::Sub(hn::Set(FloatTag(), 1.0f), i)
                           : activate(row.functions[0], row.clip, seen(row.sum(2, k, n), 2, before, k, n));
    const auto c = hn::MulAdd(f, before, hn::Mul(i, activate(row.functions[1], row.clip, row.sum(3, k, n))));
    const auto o = activate(row.functions[0], row.clip, seen(row.sum(1, k, n), 1, c, k, n));
    store_n(c, row.c + k, n);
    store_n(hn::Mul(o, activate(row.functions[2], 0, c)), row.h + k, n);
  });
}

/// Gates z and r, which is multiplied with h where the candidate's product takes that.
inline void gru_gates(const CellRow& row, float* z, float* r, bool reset_after) {
  for_vectors(row.hidden, [&](std::size_t k, std::size_t n) HWY_ATTR {
    store_n(activate(row.functions[0], row.clip, row.sum(0, k, n)), z + k, n);
    const auto reset = activate(row.functions[0], row.clip, row.sum(1, k, n));
    store_n(reset_after ? reset : hn::Mul(reset, load_n(row.h + k, n)), r + k, n);
  });
}

/// The candidate and the new state; `r` is null where the product has it already.
inline void gru_cell(const CellRow& row, const float* z, const float* r) {
  for_vectors(row.hidden, [&](std::size_t k, std::size_t n) HWY_ATTR {
    const auto update = load_n(z + k, n), product = row.product(2, k, n);
    const auto candidate = activate(row.functions[1], row.clip,
                                    hn::Add(row.input(2, k, n), r ? hn::Mul(load_n(r + k, n), product) : product));
    const auto complement = hn::Sub(hn::Set(FloatTag(), 1.0f), update);
    store_n(hn::MulAdd(complement, candidate, hn::Mul(update, load_n(row.h + k, n))), row.h + k, n);
  });
}

inline void rnn_cell(const CellRow& row) {
  for_vectors(row.hidden, [&](std::size_t k, std::size_t n) HWY_ATTR {
    store_n(activate(row.functions[0], row.clip, row.sum(0, k, n)), row.h + k, n);
  });
}

}  // namespace cermet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
