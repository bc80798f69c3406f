// lstm, gru and rnn: the products of all inputs first, as panels of weights times blocks of rows, then the recurrence
// step by step, for blocks of sequences that threads share out by direction and sequence.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/cpu/recurrent/recurrent.cpp"
#include <hwy/foreach_target.h>

#include "kernel/cpu/recurrent/block-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace cermet::cpu::HWY_NAMESPACE {
namespace {

static_assert(block_rows <= recurrent_rows);

void pack_weights(const RecurrentLaunch& l, std::size_t operand, std::byte* to, std::int64_t slice) {
  const TensorView& w = l.args.inputs[operand];
  for (int d = 0; d < l.plan.n.directions; ++d) {
    const TensorView matrix(w.as<std::byte>() + d * w.strides[0] * byte_size(w.dtype), w.dtype,
                            {w.shape[1], w.shape[2]}, {w.strides[1], w.strides[2]});
    panel_layout(w.dtype)->pack(matrix, to + d * slice, *l.args.pool);
  }
}

/// Both biases meet before the step, but for that of the candidate's product where a gate comes after it.
void prepare_biases(const RecurrentLaunch& l) {
  const std::int64_t columns = l.plan.columns;
  for (int d = 0; d < l.plan.n.directions; ++d) {
    float *const inputs = l.bias(d, 0), *const products = l.bias(d, 1);
    std::fill_n(inputs, 2 * l.plan.padded, 0.0f);
    if (!l.args.has(recurrent::bias)) continue;
    const TensorView& bias = l.args.inputs[recurrent::bias];
    const std::byte* const row = Rows(bias).row(d);
    widen(row, bias.dtype, 0, columns, inputs);
    widen(row, bias.dtype, columns, columns, products);
    const std::int64_t apart = l.binding.reset_after ? 2 * l.plan.n.hidden : columns;
    for (std::int64_t i = 0; i < apart; ++i) {
      inputs[i] += products[i];
      products[i] = 0;
    }
  }
}

void multiply_inputs(const RecurrentLaunch& l) {
  const TensorView& x = l.args.inputs[recurrent::x];
  const Rows rows(x);
  const RowBlocks blocks{0, l.plan.n.steps * l.plan.n.batch};
  const std::int64_t items = blocks.last == 0 ? 0 : blocks.count() * l.plan.n.directions;
  l.args.pool->run([&](int thread) {
    for (std::int64_t item = thread; item < items; item += l.args.pool->size()) {
      const int d = static_cast<int>(item / blocks.count());
      const std::int64_t first = blocks.begin(item % blocks.count()), last = blocks.begin(item % blocks.count() + 1);
      pack_block(rows, x.dtype, first, last, round_up(l.plan.n.input, 2), l.scratch(thread));
      l.multiply(l.scratch(thread), last - first, l.w(d), l.plan.n.input, l.bias(d, 0), 0,
                 l.products(d) + first * panel_columns, blocks.last * panel_columns);
    }
  });
}

void run_sequences(const RecurrentLaunch& l) {
  const RecurrentSizes& n = l.plan.n;
  const std::int64_t shares =
      div_up(l.args.pool->size(), n.directions);  // blocks of a direction that keep all threads busy
  const std::int64_t size = std::clamp<std::int64_t>(div_up(n.batch, shares), 1, block_rows),
                     blocks = div_up(n.batch, size);
  l.args.pool->run([&](int thread) {
    for (std::int64_t item = thread; item < blocks * n.directions; item += l.args.pool->size()) {
      const std::int64_t first = item % blocks * size;
      SequenceBlock(l, static_cast<int>(item / blocks), first, std::min(size, n.batch - first), l.scratch(thread))
          .run();
    }
  });
}

}  // namespace

void run_recurrent(const LaunchArgs& args, const RecurrentBinding& binding) {
  const RecurrentLaunch l(args, binding);
  if (l.plan.n.batch == 0 || l.plan.n.hidden == 0) return;
  for (std::int64_t b = 0; b < l.plan.n.batch; ++b)
    check_index(definition(binding.op).name, "4 (sequence_lens)", l.length(b), l.plan.n.steps + 1);
  if (!binding.packed_w) pack_weights(l, recurrent::w, args.workspace + l.plan.packed_w, l.plan.w_slice);
  if (!binding.packed_r) pack_weights(l, recurrent::r, args.workspace + l.plan.packed_r, l.plan.r_slice);
  prepare_biases(l);
  multiply_inputs(l);
  run_sequences(l);
}

}  // namespace cermet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cermet::cpu {
namespace {

HWY_EXPORT(run_recurrent);

Launcher bind_recurrent(const Problem& p) {
  return [binding = RecurrentBinding(p)](const LaunchArgs& args) {
    HWY_DYNAMIC_DISPATCH(run_recurrent)(args, binding);
  };
}

const WeightLayout* recurrent_layout(const Problem& p, std::size_t operand) {
  const bool weight = operand == recurrent::w || operand == recurrent::r;
  return weight && p.is_constant(operand) ? panel_layout(p.input(operand).dtype) : nullptr;
}

std::int64_t recurrent_workspace(const Problem& p, int threads) {
  const RecurrentSizes sizes{p.size(0, 0), p.size(0, 1), p.size(0, 2), p.size(2, 2), static_cast<int>(p.size(2, 0))};
  return RecurrentPlan(RecurrentBinding(p), sizes, threads).bytes;
}

constexpr const char* const recurrent_summary =
    "the inputs of all steps as one product over packed panels, then step by step; directions and sequences spread "
    "over threads";

}  // namespace

extern const Kernel recurrent_lstm{.name = "recurrent.lstm",
                                   .op = OpKind::lstm,
                                   .summary = recurrent_summary,
                                   .bind = bind_recurrent,
                                   .weight_layout = recurrent_layout,
                                   .workspace = recurrent_workspace};
extern const Kernel recurrent_gru{.name = "recurrent.gru",
                                  .op = OpKind::gru,
                                  .summary = recurrent_summary,
                                  .bind = bind_recurrent,
                                  .weight_layout = recurrent_layout,
                                  .workspace = recurrent_workspace};
extern const Kernel recurrent_rnn{.name = "recurrent.rnn",
                                  .op = OpKind::rnn,
                                  .summary = recurrent_summary,
                                  .bind = bind_recurrent,
                                  .weight_layout = recurrent_layout,
                                  .workspace = recurrent_workspace};

}  // namespace cermet::cpu
#endif
