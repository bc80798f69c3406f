#include "op/schema/axes.hpp"
#include "op/schema/dims_attribute.hpp"
#include "op/schema/infer.hpp"
#include "op/schema/operator.hpp"
#include "op/schema/reference.hpp"

namespace cermet::iota_op {
namespace {

constexpr DTypeSet counted = dtypes::real | DTypeSet{DType::i32, DType::i64};

std::vector<TensorType> infer(const Problem& p) {
  const TensorType& start = p.input(0);
  if (start.elements() != Dim(1)) bad_operand(p, 0, "one element", start.to_string());
  Dims dims = dims_attribute(p, "dims");
  if (dims.empty() || dims.size() > Shape::max_rank)
    bad_attribute(p, "dims", fmt::format("1 to {} dimensions", Shape::max_rank));
  const std::int64_t axis = p.attributes.integer("axis"), rank = std::ssize(dims);
  if (axis < -rank || axis >= rank) bad_attribute(p, "axis", fmt::format("an axis in [-{}, {})", rank, rank));
  const double step = p.attributes.number("step");
  if (!std::isfinite(step)) bad_attribute(p, "step", "a finite number");
  if (is_integer(start.dtype) && (step != std::floor(step) || std::abs(step) > 0x1p53))
    bad_attribute(p, "step", "a whole number of at most 2^53");
  return {{start.dtype, std::move(dims)}};
}

void reference(const ReferenceCall& call) {
  const TensorView &start = call.inputs[0], &y = call.outputs[0];
  const int axis = wrap_axis(call.attributes.integer("axis"), y.shape.rank());
  const double step = call.attributes.number("step");
  for (std::int64_t i = 0; i < y.elements(); ++i) {
    const std::int64_t at = coordinates(y.shape, i)[axis];
    if (is_integer(y.dtype)) {
      const auto sum = static_cast<std::uint64_t>(load_integer(start, 0)) +
                       static_cast<std::uint64_t>(static_cast<std::int64_t>(step)) * static_cast<std::uint64_t>(at);
      store_integer(y, i, y.dtype == DType::i32 ? static_cast<std::int32_t>(sum) : static_cast<std::int64_t>(sum));
    } else {
      const double first = load(start, 0), distance = step * static_cast<double>(at);
      store(y, i, first + distance);
      note_magnitude(call, 0, i, std::abs(first) + std::abs(distance));
    }
  }
}

std::vector<Case> cases() {
  std::vector<Case> list;
  const auto add = [&](std::string name, DType t, Strings dims, std::int64_t axis, double start, double step) {
    list.push_back({std::move(name),
                    {CaseOperand{{t, {}}, constant(start)}},
                    {{"dims", std::move(dims)}, {"axis", axis}, {"step", step}}});
  };
  for (DType t : {DType::f32, DType::bf16, DType::f16, DType::i32, DType::i64}) {
    add(std::string(name_of(t)), t, {"130"}, 0, 0, 1);
    add(fmt::format("{}_columns", name_of(t)), t, {"5", "33"}, -1, -7, 3);
    add(fmt::format("{}_rows", name_of(t)), t, {"3", "20", "7"}, 1, 5, -2);
  }
  add("fractions", DType::f32, {"1000"}, 0, 0.1, 0.7);
  add("large", DType::i64, {"9", "600"}, 0, 1e12, 1e15);
  add("one", DType::f32, {"1"}, 0, 2.5, 1);
  add("empty", DType::i32, {"0", "4"}, 1, 0, 1);
  list.push_back({"start_of_rank_1", {CaseOperand{{DType::i32, {1}}, constant(3)}}, {{"dims", Strings{"12"}}}});
  return list;
}

}  // namespace

OpSpec define() {
  return {
      .category = "Data movement",
      .summary = "Positions along an axis of given dimensions",
      .semantics =
          "y[.., i, ..] = start + step * i for position i along the axis, rounded once. Integers wrap. The dimensions "
          "may be expressions of the sizes that a run gives: \"T\", \"2*T+1\".",
      .inputs = {{"start", counted, "[] or [1]", "value at position 0; its type is that of y", Mapping::barrier}},
      .outputs = {{"y", counted, "[..]", "start, start + step, .."}},
      .attributes = {{"dims", Strings{}, "dimensions of y as text: \"T\", \"16\"; must be given"},
                     {"axis", 0, "axis along which values rise; negative counts from the end"},
                     {"step", 1.0, "difference of neighbours; a whole number for integers"}},
      .infer = infer,
      .reference = reference,
      .operations = [](const Problem& p) { return 2 * static_cast<double>(p.outputs[0].elements().value(p.maximum)); },
      .rounding_depth = [](const Problem&) { return 2.0; },
      .cases = cases,
  };
}

}  // namespace cermet::iota_op
