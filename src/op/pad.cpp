#include "op/pad.hpp"

#include "op/schema/axes.hpp"
#include "op/schema/dims_attribute.hpp"
#include "op/schema/infer.hpp"
#include "op/schema/operator.hpp"
#include "op/schema/reference.hpp"

namespace cermet::pad_op {
namespace {

PadMode mode_of(const Attributes& attributes) {
  const std::string& mode = attributes.text("mode");
  return mode == "constant" ? PadMode::constant : mode == "reflect" ? PadMode::reflect : PadMode::edge;
}

/// Dimension of y as text, beside pads of which one may be open; pads that are open in numbers get their value.
Dim padded_to(const Problem& p, const Dim& from, const Dim& to, std::int64_t& before, std::int64_t& after) {
  if (before < 0 && after < 0) bad_attribute(p, "pads", "at most one -1 for each axis");
  if (before >= 0 && after >= 0 && to != from + before + after)
    bad_attribute(p, "dims", fmt::format("{} beside these pads", (from + before + after).to_string()));
  const Dim rest = to + from * -1 + std::max<std::int64_t>(before, 0) * -1 + std::max<std::int64_t>(after, 0) * -1;
  if (rest.is_constant() && rest.constant() < 0) bad_attribute(p, "dims", "dimensions that are not smaller than x");
  for (std::int64_t* const pad : {&before, &after})
    if (*pad < 0) *pad = rest.is_constant() ? rest.constant() : 0;  // else known when the operator runs
  return to;
}

std::vector<TensorType> infer(const Problem& p) {
  TensorType y = p.input(0);
  const Ints& pads = p.attributes.integers("pads");
  const auto rank = static_cast<std::size_t>(y.rank());
  if (pads.size() != 2 * rank) bad_attribute(p, "pads", fmt::format("{} entries, two for each axis", 2 * rank));
  const Dims dims = dims_attribute(p, "dims");
  if (!dims.empty() && dims.size() != rank) bad_attribute(p, "dims", fmt::format("{} dimensions, or none", rank));
  const PadMode mode = mode_of(p.attributes);
  for (std::size_t a = 0; a < rank; ++a) {
    std::int64_t before = pads[a], after = pads[a + rank];
    if (before < (dims.empty() ? 0 : -1) || after < (dims.empty() ? 0 : -1))
      bad_attribute(p, "pads", dims.empty() ? "non-negative entries" : "entries of 0 or more, or -1");
    const std::optional<Dim> given =
        dims.empty() ? std::nullopt : std::optional(padded_to(p, y.dims[a], dims[a], before, after));
    const std::int64_t needed = before == 0 && after == 0  ? 0
                                : mode == PadMode::reflect ? std::max(before, after) + 1
                                : mode == PadMode::edge    ? 1
                                                           : 0;
    if (y.dims[a].is_constant() && y.dims[a].constant() < needed)
      bad_operand(p, 0, fmt::format("dimension {} of at least {} for these pads", a, needed), p.input(0).to_string());
    y.dims[a] = given ? *given : y.dims[a] + before + after;
  }
  return {std::move(y)};
}

void reference(const ReferenceCall& call) {
  const TensorView &x = call.inputs[0], &y = call.outputs[0];
  const PadMode mode = mode_of(call.attributes);
  const Ints& pads = call.attributes.integers("pads");
  for (std::int64_t i = 0; i < y.elements(); ++i) {
    Shape at = coordinates(y.shape, i);
    bool inside = true;
    for (int a = 0; a < at.rank(); ++a) {
      const auto [before, after] = pads_of(pads, a, x.shape, y.shape);
      at[a] = padded_source(mode, at[a], before, x.shape[a]);
      inside = inside && at[a] >= 0;
    }
    if (inside) copy_element(x, dense_index(x.shape, at), y, i);
    else store(y, i, call.attributes.number("value"));
  }
}

std::vector<Case> cases() {
  std::vector<Case> list;
  const auto add = [&](std::string name, DType t, Dims dims, Ints pads, std::string mode, double value = 0,
                       std::int64_t padding = 0) {
    list.push_back({std::move(name),
                    {CaseOperand{{t, std::move(dims)}, integers(0, 1), padding}},
                    {{"pads", std::move(pads)}, {"mode", std::move(mode)}, {"value", value}}});
  };
  for (const char* mode : {"constant", "reflect", "edge"}) {
    const std::string name = mode;
    for (DType t : {DType::f32, DType::bf16, DType::f16, DType::i8, DType::i64, DType::boolean, DType::f8_e4m3})
      add(fmt::format("{}_{}", name, name_of(t)), t, {5, 33}, {1, 2, 3, 4}, mode, 1);
    add(name + "_columns", DType::f32, {4, 9}, {0, 8, 0, 8}, mode, -2.5);
    add(name + "_rows", DType::f32, {4, 9}, {3, 0, 2, 0}, mode, -2.5);
    add(name + "_three_axes", DType::f32, {3, 4, 5}, {2, 1, 3, 1, 3, 2}, mode, 7);
    add(name + "_nothing", DType::f32, {4, 9}, {0, 0, 0, 0}, mode);
    add(name + "_strided", DType::f32, {4, 9}, {1, 1, 1, 1}, mode, 3, 2);
    add(name + "_vector", DType::f32, {130}, {100, 29}, mode, 1);
    add(name + "_no_rows", DType::f32, {0, 5}, {0, 2, 0, 2}, mode);
  }
  add("constant_from_nothing", DType::f32, {0, 2}, {1, 1, 1, 1}, "constant", 5);
  add("constant_infinite", DType::bf16, {2, 2}, {1, 1, 1, 1}, "constant", -INFINITY);
  add("constant_saturates", DType::i8, {2, 2}, {1, 1, 1, 1}, "constant", 300);
  add("constant_scalar", DType::f32, {}, {}, "constant");
  add("edge_one", DType::f32, {1, 1}, {2, 3, 1, 0}, "edge");
  for (const char* mode : {"constant", "reflect", "edge"}) {
    add(fmt::format("{}_dims_as_text", mode), DType::f32, {4, 9}, {-1, 1, 2, -1}, mode, 1, 2);
    list.back().attributes.set("dims", Strings{"7", "13"});
  }
  return list;
}

}  // namespace

OpSpec define() {
  return {
      .category = "Data movement",
      .summary = "Elements added around a tensor",
      .semantics =
          "Axis a of y has pads[a] elements before those of x and pads[rank + a] after them. `constant` fills with "
          "`value` rounded to the element type "
          "(integers "
          "saturate); `reflect` mirrors around the first and last element without repeating them, so a pad is smaller "
          "than its dimension; `edge` repeats them. `dims`, where "
          "given, are the dimensions of y, which may be symbolic; on each axis one entry of pads may then be -1, which "
          "takes what is left.",
      .inputs = {{"x", dtypes::any, "[..]", "elements", Mapping::barrier}},
      .outputs = {{"y", dtypes::any, "[..]", "x with the padding"}},
      .attributes = {{"pads", Ints{}, "elements before each axis, then after each axis"},
                     {"mode", std::string("constant"), "what the padding holds", {"constant", "reflect", "edge"}},
                     {"value", 0.0, "the constant"},
                     {"dims", Strings{}, "dimensions of y as text, where a pad is symbolic: \"T\", \"16\""}},
      .infer = infer,
      .reference = reference,
      .cases = cases,
  };
}

}  // namespace cermet::pad_op
