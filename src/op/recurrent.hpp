// What lstm, gru and rnn share: their operands, their activation functions, and the walk over time steps.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "op/operands.hpp"
#include "op/schema/operator.hpp"
#include "op/schema/reference.hpp"

namespace cermet {

enum class RecurrentFunction : std::uint8_t {
#define RECURRENT(name, text, parameters, alpha, beta, expression) name,
#include "op/recurrent.inc"
#undef RECURRENT
};

struct RecurrentActivation {
  RecurrentFunction function;
  double alpha, beta;
};

/// Operands and results: those of lstm, whose last two gru and rnn lack.
namespace recurrent {
using enum op::lstm::Operand;
enum Result : std::size_t { y, y_h, y_c };
}  // namespace recurrent

/// An operator of the family. Gates are blocks of rows of w and r, in ONNX's order.
struct RecurrentKind {
  int gates;
  std::vector<std::string> activations;  ///< of one direction, where the attribute is empty
};
const RecurrentKind& recurrent_kind(OpKind op);

struct RecurrentSizes {
  std::int64_t steps, batch, input, hidden;
  int directions;
};
/// Of operands that inference accepted.
RecurrentSizes recurrent_sizes(const TensorView& x, const TensorView& r);

/// Activations of all directions, one direction after the other. As ONNX says, functions that have parameters take
/// them from the lists in turn.
std::vector<RecurrentActivation> recurrent_activations(const Attributes& attributes, const RecurrentKind& kind);
/// Whether direction `d` runs from the last time step to the first.
bool runs_backwards(const Attributes& attributes, int direction);

std::vector<TensorType> infer_recurrent(const Problem& p);
double recurrent_operations(const Problem& p);
double recurrent_depth(const Problem& p);
std::vector<OperandSpec> recurrent_inputs(int gates);
std::vector<OperandSpec> recurrent_outputs();
std::vector<AttributeSpec> recurrent_attributes();

/// A number with the magnitude of its error: what float32 rounds while it computes the number is at most rounding_depth
/// * 2^-24 * magnitude, to first order.
struct Tracked {
  double value = 0, magnitude = 0;

  friend Tracked operator+(Tracked a, Tracked b) { return rounded(a.value + b.value, a.magnitude + b.magnitude); }
  friend Tracked operator-(Tracked a, Tracked b) { return rounded(a.value - b.value, a.magnitude + b.magnitude); }
  friend Tracked operator*(Tracked a, Tracked b) {
    return rounded(a.value * b.value, std::abs(a.value) * b.magnitude + std::abs(b.value) * a.magnitude);
  }
  static Tracked rounded(double value, double magnitude) { return {value, magnitude + std::abs(value)}; }
};
Tracked activated(const RecurrentActivation& activation, Tracked tracked);
/// x limited to [-clip, clip]; 0 does not limit.
Tracked clipped(Tracked x, double clip);

/// One time step of one sequence in one direction, for the reference of a cell.
struct RecurrentStep {
  const ReferenceCall& call;
  int direction;
  std::int64_t time, sequence, hidden;
  std::vector<Tracked>& h;  ///< in: of the step before; a cell writes the new one
  std::vector<Tracked>& c;
  const RecurrentActivation* activations;
  double clip;

  /// Row j of gate `gate` of w, times x.
  Tracked input(int gate, std::int64_t j) const;
  /// The same of r, times a state.
  Tracked recurrent(int gate, std::int64_t j, const std::vector<Tracked>& state) const;
  /// Of w's half of the bias (0) or of r's (1).
  Tracked bias(int half, int gate, std::int64_t j) const;
  /// All of a gate's sum with the old state.
  Tracked sum(int gate, std::int64_t j) const {
    return input(gate, j) + recurrent(gate, j, h) + bias(0, gate, j) + bias(1, gate, j);
  }
  Tracked activate(int which, Tracked x) const { return activated(activations[which], clipped(x, clip)); }
  int gates() const;
};
/// Runs a cell over all directions, sequences and time steps and writes the results.
void run_recurrent(const ReferenceCall& call, OpKind op, void (*cell)(RecurrentStep& step));

/// Cases that all three list.
std::vector<Case> recurrent_cases(OpKind op);

}  // namespace cermet
