// Recurrent layers. Layout 1 has the batch first; the operators have the time first.
#include "onnx/lowering.hpp"

namespace cermet::onnx {
namespace {

/// Operand i with its first two axes exchanged where `swapped`; none where it is not given.
Operand state_operand(Lowering& l, std::size_t i, bool swapped) {
  const Operand x = l.in_or_none(i);
  return x && swapped ? l.transpose(x, {1, 0, 2}) : x;
}

/// `further`: operands after those that all layers have.
void set_recurrent(Lowering& l, OpKind kind, Operand weight, Operand recurrence, Attributes attributes,
                   std::size_t further = 0) {
  const bool batch_first = l.integer("layout", 0) != 0;
  l.expect(l.rank(l.in(0)) == 3, "expected [time, batch, inputs], found {}", l.type(l.in(0)).to_string());
  std::vector<Operand> operands{state_operand(l, 0, batch_first), weight, recurrence, l.in_or_none(3), l.in_or_none(4),
                                state_operand(l, 5, batch_first)};
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

/// Operand i, a quantized weight [directions, inputs, gates] with a scale and a zero point for each direction, or for
/// each of its gates: as the operators have weights, [directions, gates, inputs] of float32.
Operand dequantized_weight(Lowering& l, std::size_t i, std::size_t scale_at) {
  const Operand w = l.in(i);
  l.expect(l.rank(w) == 3, "operand {}: expected [directions, inputs, gates], found {}", i, l.type(w).to_string());
  const auto spread = [&](Operand parameter) {
    const Dim directions = l.dim(w, 0), gates = l.dim(w, 2), count = product(l.dims(parameter));
    l.expect(count == directions || count == directions * gates,
             "scale and zero point of operand {}: expected [{}] or [{}, {}], found {}", i, directions.to_string(),
             directions.to_string(), gates.to_string(), l.type(parameter).to_string());
    return l.reshape(parameter, {directions, 1, count == directions ? Dim(1) : gates});
  };
  std::vector<Operand> operands{w, spread(l.in(scale_at))};
  if (l.has(scale_at + 1)) operands.push_back(spread(l.in(scale_at + 1)));
  return l.transpose(l.op(OpKind::dequantize, operands, {{"granularity", "broadcast"}}), {0, 2, 1});
}

}  // namespace

void lower_lstm(Lowering& l) {
  set_recurrent(l, OpKind::lstm, l.in(1), l.in(2), {{"input_forget", l.integer("input_forget", 0) != 0}}, 2);
}
void lower_gru(Lowering& l) {
  set_recurrent(l, OpKind::gru, l.in(1), l.in(2), {{"linear_before_reset", l.integer("linear_before_reset", 0) != 0}});
}
void lower_rnn(Lowering& l) { set_recurrent(l, OpKind::rnn, l.in(1), l.in(2), {}); }

/// The values that the weights stand for; inputs and states stay float32, where ONNX Runtime rounds them to 8 bits at
/// each step.
void lower_dynamic_quantize_lstm(Lowering& l) {
  set_recurrent(l, OpKind::lstm, dequantized_weight(l, 1, 8), dequantized_weight(l, 2, 10),
                {{"input_forget", l.integer("input_forget", 0) != 0}}, 2);
}

}  // namespace cermet::onnx
