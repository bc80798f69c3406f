// Recurrent layers. Layout 1 has the batch first; the operators have the time first.
#include "onnx/lowering.hpp"

namespace cermet::onnx {
namespace {

/// Operand i with its first two axes exchanged where `swapped`; none where it is not given.
Operand state_operand(Lowering& l, std::size_t i, bool swapped) {
  const Operand x = l.in_or_none(i);
  return x && swapped ? l.transpose(x, {1, 0, 2}) : x;
}

/// `further`: operands behind those that all layers have.
void set_recurrent(Lowering& l, OpKind kind, Attributes attributes, std::size_t further = 0) {
  const bool batch_first = l.integer("layout", 0) != 0;
  l.expect(l.rank(l.in(0)) == 3, "expected [time, batch, inputs], found {}", l.type(l.in(0)).to_string());
  std::vector<Operand> operands{state_operand(l, 0, batch_first), l.in(1), l.in(2), l.in_or_none(3), l.in_or_none(4), state_operand(l, 5, batch_first)};
  if (further > 0) operands.push_back(state_operand(l, 6, batch_first));
  if (further > 1) operands.push_back(l.in_or_none(7));
  attributes.set("direction", l.text("direction", "forward"));
  attributes.set("activations", l.texts("activations"));
  attributes.set("activation_alpha", l.numbers("activation_alpha"));
  attributes.set("activation_beta", l.numbers("activation_beta"));
  attributes.set("clip", l.number("clip", 0));
  std::vector<Operand> results = l.ops(kind, operands, attributes);
  if (l.wants(0)) l.set(0, batch_first ? l.transpose(results[0], {2, 0, 1, 3}) : results[0]);
  for (std::size_t o = 1; o < results.size(); ++o)
    if (l.wants(o)) l.set(o, batch_first ? l.transpose(results[o], {1, 0, 2}) : results[o]);
}

}  // namespace

void lower_lstm(Lowering& l) { set_recurrent(l, OpKind::lstm, {{"input_forget", l.integer("input_forget", 0) != 0}}, 2); }
void lower_gru(Lowering& l) { set_recurrent(l, OpKind::gru, {{"linear_before_reset", l.integer("linear_before_reset", 0) != 0}}); }
void lower_rnn(Lowering& l) { set_recurrent(l, OpKind::rnn, {}); }

}  // namespace cermet::onnx
