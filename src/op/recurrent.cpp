#include "op/recurrent.hpp"

#include <algorithm>

#include "op/pointwise_math.hpp"
#include "op/schema/infer.hpp"

namespace cermet {
namespace {

using std::abs, std::exp, std::expm1, std::log1p, std::tanh;

struct Function {
  std::string_view name;
  int parameters;
  double alpha, beta;
};

constexpr Function functions[] = {
#define RECURRENT(name, text, parameters, alpha, beta, expression) {text, parameters, alpha, beta},
#include "op/recurrent.inc"
#undef RECURRENT
};

const Function* find_function(std::string_view name) {
  const auto* found = std::ranges::find(functions, name, &Function::name);
  return found == std::end(functions) ? nullptr : found;
}

int directions_of(const Attributes& attributes) { return attributes.text("direction") == "bidirectional" ? 2 : 1; }

void check_activations(const Problem& p, const RecurrentKind& kind) {
  const Strings& names = p.attributes.texts("activations");
  const std::size_t count = kind.activations.size() * static_cast<std::size_t>(directions_of(p.attributes));
  if (!names.empty() && names.size() != count) bad_attribute(p, "activations", fmt::format("{} names, or none", count));
  std::vector<std::string_view> known;
  for (const Function& f : functions) known.push_back(f.name);
  for (const std::string& name : names)
    if (!find_function(name)) bad_attribute(p, "activations", fmt::format("names among {}", fmt::join(known, ", ")));
  if (p.attributes.number("clip") < 0) bad_attribute(p, "clip", "a number that is not negative");
}

}  // namespace

const RecurrentKind& recurrent_kind(OpKind op) {
  static const RecurrentKind lstm{4, {"Sigmoid", "Tanh", "Tanh"}}, gru{3, {"Sigmoid", "Tanh"}}, rnn{1, {"Tanh"}};
  return op == OpKind::lstm ? lstm : op == OpKind::gru ? gru : rnn;
}

RecurrentSizes recurrent_sizes(const TensorView& x, const TensorView& r) {
  return {x.shape[0], x.shape[1], x.shape[2], r.shape[2], static_cast<int>(r.shape[0])};
}

std::vector<RecurrentActivation> recurrent_activations(const Attributes& attributes, const RecurrentKind& kind) {
  std::vector<std::string> names = attributes.texts("activations");
  if (names.empty())
    for (int d = 0; d < directions_of(attributes); ++d)
      names.insert(names.end(), kind.activations.begin(), kind.activations.end());
  const Floats &alphas = attributes.numbers("activation_alpha"), &betas = attributes.numbers("activation_beta");
  std::vector<RecurrentActivation> list;
  std::size_t alpha = 0, beta = 0;
  for (const std::string& name : names) {
    const Function& f = *find_function(name);
    RecurrentActivation activation{static_cast<RecurrentFunction>(&f - functions), f.alpha, f.beta};
    if (f.parameters > 0 && alpha < alphas.size()) activation.alpha = alphas[alpha++];
    if (f.parameters > 1 && beta < betas.size()) activation.beta = betas[beta++];
    list.push_back(activation);
  }
  return list;
}

bool runs_backwards(const Attributes& attributes, int direction) {
  return direction == 1 || attributes.text("direction") == "reverse";
}

std::vector<TensorType> infer_recurrent(const Problem& p) {
  using namespace recurrent;
  const RecurrentKind& kind = recurrent_kind(p.op->kind);
  for (const std::size_t operand : {x, w, r}) expect_rank(p, operand, 3);
  const Dim steps = dim_of(p, x, 0), batch = dim_of(p, x, 1), hidden = dim_of(p, r, 2),
            directions = directions_of(p.attributes);
  expect_dims(p, w, {directions, kind.gates * hidden, dim_of(p, x, 2)}, "directions, rows of all gates, input size");
  expect_dims(p, r, {directions, kind.gates * hidden, hidden}, "directions, rows of all gates, hidden size");
  const DType dtype = p.input(x).dtype;
  const auto expect = [&](std::size_t operand, const Dims& dims, std::string_view meaning) {
    if (!p.has(operand)) return;
    expect_dims(p, operand, dims, meaning);
    if (operand != sequence_lens) expect_dtype(p, operand, dtype, "that of x");
  };
  for (const std::size_t operand : {w, r}) expect_dtype(p, operand, dtype, "that of x");
  expect(bias, {directions, 2 * kind.gates * hidden}, "directions, biases of w and of r");
  expect(sequence_lens, {batch}, "the batch");
  expect(initial_h, {directions, batch, hidden}, "directions, batch, hidden size");
  if (p.op->kind == OpKind::lstm) {
    expect(initial_c, {directions, batch, hidden}, "directions, batch, hidden size");
    expect(peepholes, {directions, 3 * hidden}, "directions, three gates");
  }
  check_activations(p, kind);
  std::vector<TensorType> results{{dtype, {steps, directions, batch, hidden}}, {dtype, {directions, batch, hidden}}};
  if (p.op->kind == OpKind::lstm) results.push_back(results[1]);
  return results;
}

double recurrent_operations(const Problem& p) {
  const double rows = static_cast<double>(p.size(0, 0)) * static_cast<double>(p.size(0, 1));
  return 2 * rows * (bytes_of(p.input(recurrent::w), p.maximum) + bytes_of(p.input(recurrent::r), p.maximum)) /
         static_cast<double>(size_of(p.input(1).dtype));
}

double recurrent_depth(const Problem& p) { return static_cast<double>(p.size(0, 2) + p.size(2, 2)) + 16; }

Tracked activated(const RecurrentActivation& activation, Tracked tracked) {
  const double x = tracked.value, alpha = activation.alpha, beta = activation.beta;
  const double slope = std::max({1.0, std::abs(alpha), std::abs(alpha * beta)});
  const auto value = [&]() -> double {
    switch (activation.function) {
#define RECURRENT(name, text, parameters, alpha_default, beta_default, expression) \
  case RecurrentFunction::name:                                                    \
    return expression;
#include "op/recurrent.inc"
#undef RECURRENT
    }
    return 0;
  }();
  return Tracked::rounded(value, slope * (tracked.magnitude + std::abs(x)) + std::abs(beta));
}

Tracked clipped(Tracked x, double clip) {
  if (clip > 0) x.value = std::clamp(x.value, -clip, clip);
  return x;
}

int RecurrentStep::gates() const { return static_cast<int>(call.inputs[recurrent::w].shape[1] / hidden); }

Tracked RecurrentStep::input(int gate, std::int64_t j) const {
  const TensorView &x = call.inputs[recurrent::x], &w = call.inputs[recurrent::w];
  const std::int64_t size = x.shape[2], row = (direction * w.shape[1] + gate * hidden + j) * size,
                     from = (time * x.shape[1] + sequence) * size;
  Tracked sum;
  for (std::int64_t k = 0; k < size; ++k) {
    const double term = load(x, from + k) * load(w, row + k);
    sum = {sum.value + term, sum.magnitude + std::abs(term)};
  }
  return sum;
}

Tracked RecurrentStep::recurrent(int gate, std::int64_t j, const std::vector<Tracked>& state) const {
  const TensorView& r = call.inputs[recurrent::r];
  const std::int64_t row = (direction * r.shape[1] + gate * hidden + j) * hidden;
  Tracked sum;
  for (std::int64_t k = 0; k < hidden; ++k) {
    const Tracked& s = state[static_cast<std::size_t>(k)];
    const double weight = load(r, row + k);
    sum = {sum.value + weight * s.value, sum.magnitude + std::abs(weight) * (std::abs(s.value) + s.magnitude)};
  }
  return sum;
}

Tracked RecurrentStep::bias(int half, int gate, std::int64_t j) const {
  if (!call.has(recurrent::bias)) return {};
  const std::int64_t rows = gates() * hidden;
  return Tracked::rounded(load(call.inputs[recurrent::bias], (2 * direction + half) * rows + gate * hidden + j), 0);
}

void run_recurrent(const ReferenceCall& call, OpKind op, void (*cell)(RecurrentStep& step)) {
  const RecurrentKind& kind = recurrent_kind(op);
  const RecurrentSizes n = recurrent_sizes(call.inputs[recurrent::x], call.inputs[recurrent::r]);
  const std::vector<RecurrentActivation> activations = recurrent_activations(call.attributes, kind);
  const auto write = [&](std::size_t result, std::int64_t first, const std::vector<Tracked>& state) {
    for (std::int64_t j = 0; j < n.hidden; ++j) {
      store(call.outputs[result], first + j, state[static_cast<std::size_t>(j)].value);
      note_magnitude(call, result, first + j, state[static_cast<std::size_t>(j)].magnitude);
    }
  };
  const auto initial = [&](std::size_t operand, std::int64_t first) {
    std::vector<Tracked> state(static_cast<std::size_t>(n.hidden));
    if (operand < call.inputs.size() && call.has(operand))
      for (std::int64_t j = 0; j < n.hidden; ++j)
        state[static_cast<std::size_t>(j)].value = load(call.inputs[operand], first + j);
    return state;
  };
  for (int d = 0; d < n.directions; ++d)
    for (std::int64_t b = 0; b < n.batch; ++b) {
      const std::int64_t row = (d * n.batch + b) * n.hidden;
      const std::int64_t length =
          call.has(recurrent::sequence_lens) ? load_index(call.inputs[recurrent::sequence_lens], b) : n.steps;
      check_index(definition(op).name, "4 (sequence_lens)", length, n.steps + 1);
      std::vector<Tracked> h = initial(recurrent::initial_h, row), c = initial(recurrent::initial_c, row);
      const auto y_row = [&](std::int64_t t) { return ((t * n.directions + d) * n.batch + b) * n.hidden; };
      for (std::int64_t s = 0; s < length; ++s) {
        const std::int64_t t = runs_backwards(call.attributes, d) ? length - 1 - s : s;
        RecurrentStep step{call,
                           d,
                           t,
                           b,
                           n.hidden,
                           h,
                           c,
                           activations.data() + static_cast<std::size_t>(d) * kind.activations.size(),
                           call.attributes.number("clip")};
        cell(step);
        write(recurrent::y, y_row(t), h);
      }
      for (std::int64_t t = length; t < n.steps; ++t)
        write(recurrent::y, y_row(t), std::vector<Tracked>(static_cast<std::size_t>(n.hidden)));
      write(recurrent::y_h, row, h);
      if (op == OpKind::lstm) write(recurrent::y_c, row, c);
    }
}

}  // namespace cermet
