#include "kernel/cpu/recurrent/plan.hpp"

namespace cermet::cpu {

RecurrentBinding::RecurrentBinding(const Problem& p)
    : op(p.op->kind),
      dtype(p.input(0).dtype),
      gates(recurrent_kind(op).gates),
      functions(static_cast<int>(recurrent_kind(op).activations.size())),
      activations(recurrent_activations(p.attributes, recurrent_kind(op))),
      backwards{runs_backwards(p.attributes, 0), true},
      clip(static_cast<float>(p.attributes.number("clip"))),
      packed_w(p.is_constant(recurrent::w)),
      packed_r(p.is_constant(recurrent::r)) {
  if (op == OpKind::lstm) coupled = p.attributes.flag("input_forget");
  if (op == OpKind::gru) reset_after = p.attributes.flag("linear_before_reset");
}

RecurrentPlan::RecurrentPlan(const RecurrentBinding& binding, const RecurrentSizes& sizes, int threads)
    : n(sizes),
      columns(binding.gates * n.hidden),
      panels(panel_count(columns)),
      padded(panels * panel_columns),
      w_slice(round_up(panels_bytes(binding.dtype, columns, n.input), 64)),
      r_slice(round_up(panels_bytes(binding.dtype, columns, n.hidden), 64)) {
  std::int64_t at = 0;
  const auto take = [&](std::int64_t size) {
    const std::int64_t offset = at;
    at += round_up(size, 64);
    return offset;
  };
  constexpr auto each = static_cast<std::int64_t>(sizeof(float));
  packed_w = take(binding.packed_w ? 0 : n.directions * w_slice);
  packed_r = take(binding.packed_r ? 0 : n.directions * r_slice);
  biases = take(n.directions * 2 * padded * each);
  products = take(n.directions * n.steps * n.batch * padded * each);
  // Packed rows of x, or: h, c, two gates, a packed state and its products for each row; peepholes; both sums of one
  // row.
  const std::int64_t of_state = recurrent_rows * (5 * (n.hidden + 1) + padded) + 3 * n.hidden + 2 * padded,
                     of_input = recurrent_rows * (n.input + 1);
  scratch_bytes = round_up(std::max(of_state, of_input) * each, 64);
  scratch = take(threads * scratch_bytes);
  bytes = at;
}

}  // namespace cermet::cpu
