// A block of sequences of lstm, gru or rnn, step by step: include after <hwy/foreach_target.h>.
#if defined(CERMET_RECURRENT_BLOCK_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef CERMET_RECURRENT_BLOCK_INL
#undef CERMET_RECURRENT_BLOCK_INL
#else
#define CERMET_RECURRENT_BLOCK_INL
#endif

#include <utility>

#include "kernel/cpu/by_dtype.hpp"
#include "kernel/cpu/gemm/tiles-inl.hpp"
#include "kernel/cpu/recurrent/cells-inl.hpp"
#include "kernel/cpu/recurrent/plan.hpp"

HWY_BEFORE_NAMESPACE();
namespace cermet::cpu::HWY_NAMESPACE {

/// A launch with its workspace.
struct RecurrentLaunch {
  const LaunchArgs& args;
  const RecurrentBinding& binding;
  RecurrentPlan plan;

  RecurrentLaunch(const LaunchArgs& a, const RecurrentBinding& b)
      : args(a),
        binding(b),
        plan(b, {a.inputs[0].shape[0], a.inputs[0].shape[1], a.inputs[0].shape[2], hidden(a), directions(a)},
             a.pool->size()) {}
  // Packed weights keep their logical shape.
  static std::int64_t hidden(const LaunchArgs& a) { return a.inputs[recurrent::r].shape[2]; }
  static int directions(const LaunchArgs& a) { return static_cast<int>(a.inputs[recurrent::r].shape[0]); }

  /// Time steps of a sequence.
  std::int64_t length(std::int64_t sequence) const {
    return args.has(recurrent::sequence_lens) ? args.inputs[recurrent::sequence_lens].as<const std::int32_t>()[sequence]
                                              : plan.n.steps;
  }

  float* floats(std::int64_t offset) const { return reinterpret_cast<float*>(args.workspace + offset); }
  float* scratch(int thread) const { return floats(plan.scratch + thread * plan.scratch_bytes); }
  const std::byte* w(int d) const {
    return (binding.packed_w ? args.inputs[recurrent::w].as<const std::byte>() : args.workspace + plan.packed_w) +
           d * plan.w_slice;
  }
  const std::byte* r(int d) const {
    return (binding.packed_r ? args.inputs[recurrent::r].as<const std::byte>() : args.workspace + plan.packed_r) +
           d * plan.r_slice;
  }
  /// What sums of inputs (0) and products with the state (1) begin with.
  float* bias(int d, int half) const { return floats(plan.biases) + (2 * d + half) * plan.padded; }
  /// [panel][row][32] of a direction; rows are those of x.
  float* products(int d) const { return floats(plan.products) + d * plan.n.steps * plan.n.batch * plan.padded; }

  /// tiles[panel - first][row][32] = bias + rows * panel for `count` rows that are packed as [k][row].
  void multiply(const float* rows, std::int64_t count, const std::byte* panels, std::int64_t length,
                const float* first_value, std::int64_t first, float* tiles, std::int64_t tile_step) const {
    const MultiplyPanel product = float_products(binding.dtype)[count - 1];
    const std::int64_t units = div_up(length, panel_unit(binding.dtype)), step = panel_bytes(binding.dtype, length);
    for (std::int64_t p = first; p < plan.panels; ++p) {
      float* const tile = tiles + (p - first) * tile_step;
      for (std::int64_t r = 0; r < count; ++r)
        std::copy_n(first_value + p * panel_columns, panel_columns, tile + r * panel_columns);
      product(rows, panels + p * step, units, Ahead::none(), tile);
    }
  }
};

/// Sequences [first, first + count) in one direction.
class SequenceBlock {
 public:
  SequenceBlock(const RecurrentLaunch& launch, int direction, std::int64_t first, std::int64_t count, float* scratch)
      : l_(launch), d_(direction), first_(first), count_(count), hidden_(launch.plan.n.hidden) {
    const auto take = [&](std::int64_t size) { return std::exchange(scratch, scratch + size); };
    h_ = take(count * hidden_);
    c_ = take(count * hidden_);
    z_ = take(count * hidden_);
    r_ = take(count * hidden_);
    packed_ = take(count * (hidden_ + 1));
    tiles_ = take(count * l_.plan.padded);
    inputs_ = take(l_.plan.padded);
    products_ = take(l_.plan.padded);
    start(recurrent::initial_h, h_);
    if (l_.binding.op != OpKind::lstm) return;
    start(recurrent::initial_c, c_);
    if (!l_.args.has(recurrent::peepholes)) return;
    peepholes_ = take(3 * hidden_);
    widen(Rows(l_.args.inputs[recurrent::peepholes]).row(d_), l_.binding.dtype, 0, 3 * hidden_, peepholes_);
  }

  void run() {
    std::int64_t longest = 0;
    for (std::int64_t i = 0; i < count_; ++i) longest = std::max(longest, l_.length(first_ + i));
    for (std::int64_t s = 0; s < longest; ++s) step(s);
    for (std::int64_t i = 0; i < count_; ++i) finish(i);
  }

 private:
  void start(std::size_t operand, float* state) const {
    if (!l_.args.has(operand)) {
      std::fill_n(state, count_ * hidden_, 0.0f);
      return;
    }
    const Rows rows(l_.args.inputs[operand]);
    for (std::int64_t i = 0; i < count_; ++i)
      widen(rows.row(state_row(i)), l_.binding.dtype, 0, hidden_, state + i * hidden_);
  }
  std::int64_t state_row(std::int64_t i) const { return d_ * l_.plan.n.batch + first_ + i; }
  /// Row r of a result; zeros where `state` is null.
  void write(std::size_t result, std::int64_t r, const float* state) const {
    const TensorView& y = l_.args.outputs[result];
    by_real_dtype(y.dtype, [&](auto zero) {
      auto* const to = reinterpret_cast<decltype(zero)*>(Rows(y).row(r));
      for_vectors(static_cast<std::size_t>(hidden_), [&](std::size_t k, std::size_t n) HWY_ATTR {
        store_n(state ? load_n(state + k, n) : hn::Zero(FloatTag()), to + k, n);
      });
    });
  }
  void write_y(std::int64_t t, std::int64_t i, const float* state) const {
    write(recurrent::y, (t * l_.plan.n.directions + d_) * l_.plan.n.batch + first_ + i, state);
  }

  /// The products of r with rows of a state, from panel `first` on.
  void multiply(float* state, std::int64_t first) const {
    const TensorView rows(state, DType::f32, {count_, hidden_});
    pack_block(Rows(rows), DType::f32, 0, count_, round_up(hidden_, 2), packed_);
    const std::int64_t step = count_ * panel_columns;
    l_.multiply(packed_, count_, l_.r(d_), hidden_, l_.bias(d_, 1), first, tiles_ + first * step, step);
  }

  /// The row of sequence i at time t.
  CellRow cell(std::int64_t i, std::int64_t t) const {
    const std::int64_t rows = l_.plan.n.steps * l_.plan.n.batch, from = t * l_.plan.n.batch + first_ + i;
    for (std::int64_t p = 0; p < l_.plan.panels; ++p) {
      std::copy_n(l_.products(d_) + (p * rows + from) * panel_columns, panel_columns, inputs_ + p * panel_columns);
      std::copy_n(tiles_ + (p * count_ + i) * panel_columns, panel_columns, products_ + p * panel_columns);
    }
    const RecurrentActivation* const functions = l_.binding.activations.data() + d_ * l_.binding.functions;
    return {inputs_,   products_,      h_ + i * hidden_, c_ + i * hidden_, static_cast<std::size_t>(hidden_),
            functions, l_.binding.clip};
  }

  /// Calls body(i, time) for the sequences that have step s.
  template <class Body>
  void for_rows(std::int64_t s, Body&& body) const {
    for (std::int64_t i = 0; i < count_; ++i) {
      const std::int64_t length = l_.length(first_ + i);
      if (s < length) body(i, l_.binding.backwards[d_] ? length - 1 - s : s);
    }
  }

  void step(std::int64_t s) const {
    const RecurrentBinding& binding = l_.binding;
    multiply(h_, 0);
    if (binding.op == OpKind::gru) {
      for_rows(s, [&](std::int64_t i, std::int64_t t) {
        gru_gates(cell(i, t), z_ + i * hidden_, r_ + i * hidden_, binding.reset_after);
      });
      if (!binding.reset_after) multiply(r_, 2 * hidden_ / panel_columns);
    }
    for_rows(s, [&](std::int64_t i, std::int64_t t) {
      const CellRow row = cell(i, t);
      if (binding.op == OpKind::lstm) lstm_cell(row, peepholes_, binding.coupled);
      else if (binding.op == OpKind::gru)
        gru_cell(row, z_ + i * hidden_, binding.reset_after ? r_ + i * hidden_ : nullptr);
      else rnn_cell(row);
      write_y(t, i, row.h);
    });
  }

  void finish(std::int64_t i) const {
    for (std::int64_t t = l_.length(first_ + i); t < l_.plan.n.steps; ++t) write_y(t, i, nullptr);
    write(recurrent::y_h, state_row(i), h_ + i * hidden_);
    if (l_.binding.op == OpKind::lstm) write(recurrent::y_c, state_row(i), c_ + i * hidden_);
  }

  const RecurrentLaunch& l_;
  int d_;
  std::int64_t first_, count_, hidden_;
  float *h_, *c_, *z_, *r_, *packed_, *tiles_, *inputs_, *products_;
  float* peepholes_ = nullptr;
};

}  // namespace cermet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
