// What is known while a model is imported: elements of constants, and integers that depend on sizes.
#include <algorithm>
#include <cmath>

#include "base/buffer.hpp"
#include "graph/evaluate.hpp"
#include "onnx/importer.hpp"
#include "op/schema/operator.hpp"
#include "op/schema/reference.hpp"

namespace cermet::onnx {

namespace {

constexpr std::int64_t most_folded =
    1 << 16;  ///< elements of an operator that is evaluated while importing; larger ones are computed as weights load
constexpr int deepest_expression = 200;

bool is_counted(DType t) { return is_integer(t) || t == DType::boolean || t == DType::f32 || t == DType::f64; }

/// Whole numbers up to this one are exact, as sums and products of them are while they stay below it.
double most_exact(DType t) { return t == DType::f64 ? 0x1p53 : 0x1p24; }

/// Whether a type has all these numbers: others come out of an operator as it rounds and wraps, which dimensions do
/// not.
bool holds(DType t, DimRange range) {
  if (t == DType::i64 || t == DType::boolean) return true;
  const double least = t == DType::i32   ? -0x1p31
                       : is_floating(t)  ? -most_exact(t)
                       : t == DType::i16 ? -0x1p15
                       : t == DType::i8  ? -0x1p7
                                         : 0;
  const double most = is_floating(t)    ? most_exact(t)
                      : t == DType::i32 ? 0x1p31 - 1
                      : t == DType::i16 ? 0x1p15 - 1
                      : t == DType::i8  ? 0x1p7 - 1
                      : t == DType::u8  ? 0x1p8 - 1
                      : t == DType::u16 ? 0x1p16 - 1
                      : t == DType::u32 ? 0x1p32 - 1
                                        : 0x1p62;
  return static_cast<double>(range.least) >= least && static_cast<double>(range.greatest) <= most;
}

std::int64_t elements_of(const TensorType& type) {
  for (const Dim& d : type.dims)
    if (!d.is_constant()) return -1;
  return type.elements().constant();
}

/// Elements of an integer tensor as dimensions, or of another one that has whole numbers alone; nothing for others.
std::optional<Dims> dims_of(const TensorData& data) {
  const std::int64_t count = elements_of(data.type());
  TensorView view(const_cast<std::byte*>(data.bytes().data()), data.type().dtype, cermet::bind(data.type().dims, {}));
  Dims dims;
  for (std::int64_t i = 0; i < count; ++i) {
    if (!is_floating(view.dtype)) {
      dims.push_back(load_integer(view, i));
      continue;
    }
    const double number = load(view, i);
    if (!(std::abs(number) <= most_exact(view.dtype)) || number != std::floor(number)) return {};
    dims.push_back(static_cast<std::int64_t>(number));
  }
  return dims;
}

Slot slot_of(const TensorType& type, Dims elements) {
  Slot slot{.name = {}, .type = type, .data = {}, .symbolic = {}};
  if (!std::ranges::all_of(elements, &Dim::is_constant)) {
    slot.symbolic = std::move(elements);
    return slot;
  }
  OwnedTensor memory(type.dtype, cermet::bind(type.dims, {}));
  for (std::size_t i = 0; i < elements.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i);
    if (is_floating(type.dtype)) store(memory.view, at, static_cast<double>(elements[i].constant()));
    else store_integer(memory.view, at, elements[i].constant());
  }
  slot.data.emplace(type, std::span(memory.view.as<const std::byte>(),
                                    static_cast<std::size_t>(dense_bytes(type.dtype, memory.view.shape))));
  return slot;
}

}  // namespace

bool Importer::is_known(Operand x) const {
  const Slot& s = state_.slots.at(static_cast<std::size_t>(x.slot));
  if (s.elements) return is_known(s.elements);
  return s.data || s.tensor || s.expression;
}

const TensorData& Importer::known(Operand x) {
  Slot& s = slot(x);
  if (s.elements) return known(s.elements);
  if (s.depends_on_sizes())
    throw NeedsSizes{
        fmt::format("{} needs numbers and found {}", here(), s.symbolic ? to_string(*s.symbolic) : s.type.to_string())};
  if (!is_known(x)) throw NeedsElements{x};
  if (s.data) return *s.data;
  if (s.tensor) return s.data.emplace(s.tensor->data());
  const std::shared_ptr<const ConstantExpression> e = s.expression;
  std::vector<const TensorData*> inputs;
  std::vector<std::optional<TensorType>> types;
  for (const ValueId id : e->inputs) {
    const Operand operand{id.index};
    inputs.push_back(operand ? &known(operand) : nullptr);
    types.push_back(operand ? std::optional(inputs.back()->type()) : std::nullopt);
  }
  const Problem problem = make_problem(definition(e->op), std::move(types), e->attributes);
  evaluate_work(work_of_definition(problem));
  return slot(x).data.emplace(evaluate(problem, inputs).at(static_cast<std::size_t>(e->output)));
}

/// What was computed of something undecided is undecided, too, as long as it may be a shape or a condition.
void Importer::note_undecided(const std::vector<Operand>& inputs, const std::vector<Operand>& results) {
  for (const Operand x : inputs)
    if (x && !undecided_) undecided_ = slot(x).undecided;
  for (const Operand y : results)
    if (const std::int64_t count = elements_of(slot(y).type); count >= 0 && count <= 64) slot(y).undecided = undecided_;
}

std::optional<std::vector<Operand>> Importer::fold(OpKind kind, const std::vector<Operand>& inputs,
                                                   const Attributes& attributes) {
  const bool constant = std::ranges::all_of(inputs, [&](Operand x) { return !x || is_known(x); });
  if (!constant) {
    std::vector<std::pair<TensorType, Dims>> operands;
    bool any = false;
    for (const Operand x : inputs) {
      if (!x) return {};
      const Slot& s = slot(x);
      any = any || s.symbolic;
      if (s.symbolic) operands.emplace_back(s.type, *s.symbolic);
      else if (is_known(x) && is_counted(s.type.dtype) && elements_of(s.type) <= 64) {
        std::optional<Dims> numbers = dims_of(known(x));
        if (!numbers) return {};
        operands.emplace_back(slot(x).type, *std::move(numbers));
      } else return {};
    }
    if (!any) return {};
    const auto results = shape_arithmetic(kind, operands, attributes, ranges_, undecided_);
    if (!results) return {};
    for (const auto& [type, elements] : *results)
      if (!std::ranges::all_of(elements, [&, t = type.dtype](const Dim& d) { return holds(t, d.bounds(ranges_)); }))
        return {};
    std::vector<Operand> made;
    for (const auto& [type, elements] : *results) made.push_back(add(slot_of(type, elements)));
    return made;
  }
  const OpDefinition& op = definition(kind);
  std::vector<std::optional<TensorType>> types;
  for (const Operand x : inputs) types.push_back(x ? std::optional(slot(x).type) : std::nullopt);
  const Problem problem = make_problem(op, std::move(types), attributes);
  std::int64_t elements = 0;
  const auto count = [&](const TensorType& type) { elements += std::min(elements_of(type), most_folded + 1); };
  for (const Operand x : inputs)
    if (x) count(slot(x).type);
  for (const TensorType& type : problem.outputs) {
    if (elements_of(type) < 0) return {};
    count(type);
  }
  std::vector<Operand> made;
  if (elements <= most_folded && work_of_definition(problem) <= work_left()) {
    evaluate_work(work_of_definition(problem));
    std::vector<const TensorData*> data;
    for (const Operand x : inputs)
      if (x) known(x);  // before any address is taken
    for (const Operand x : inputs) data.push_back(x ? &known(x) : nullptr);
    for (TensorData& result : evaluate(problem, data)) {
      Slot s{.name = {}, .type = result.type(), .data = {}, .symbolic = {}};
      s.data = std::move(result);
      made.push_back(add(std::move(s)));
    }
    return made;
  }
  int depth = 0;
  for (const Operand x : inputs)
    if (x) depth = std::max(depth, slot(x).expression ? slot(x).depth + 1 : 0);
  for (const TensorType& type : problem.outputs) make_room(type);
  if (depth > deepest_expression) return {};
  for (std::size_t o = 0; o < problem.outputs.size(); ++o) {
    ConstantExpression e{kind, {}, attributes, static_cast<std::int32_t>(o)};
    for (const Operand x : inputs) e.inputs.push_back({x.slot});
    Slot s{.name = {}, .type = problem.outputs[o], .data = {}, .symbolic = {}};
    s.expression = std::make_shared<const ConstantExpression>(std::move(e));
    s.depth = depth;
    made.push_back(add(std::move(s)));
  }
  return made;
}

namespace {

bool is_elementwise(OpKind kind) {
  return kind == OpKind::cast || kind == OpKind::where || definition(kind).category == "Elementwise";
}

}  // namespace

/// Dimensions that broadcast for some sizes only are separated before the operator refuses them for all.
void Importer::check_broadcast(const std::vector<Operand>& inputs, OpKind kind) const {
  if (ranges_.empty() || !is_elementwise(kind)) return;
  Dims all;
  for (const Operand x : inputs) {
    if (!x) continue;
    const Dims& dims = state_.slots.at(static_cast<std::size_t>(x.slot)).type.dims;
    if (dims.size() > all.size()) all.insert(all.begin(), dims.size() - all.size(), Dim(1));
    for (std::size_t i = 0; i < dims.size(); ++i) {
      Dim& known = all[all.size() - dims.size() + i];
      if (known == Dim(1)) known = dims[i];
      if (dims[i] == known || dims[i] == Dim(1)) continue;
      for (const auto& [a, b] : {std::pair(dims[i], Dim(1)), std::pair(known, Dim(1)), std::pair(dims[i], known)})
        if (!equals(a, b, ranges_))
          throw NeedsSizes{
              fmt::format("{}: sizes in the range differ in whether {} is {}", here(), a.to_string(), b.to_string()),
              a - b};
    }
  }
}

}  // namespace cermet::onnx
