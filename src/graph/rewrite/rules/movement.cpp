// Operators that move elements, or store them in another type: those that cancel, and those that merge.
#include <algorithm>
#include <numeric>

#include "graph/rewrite/replace.hpp"
#include "op/schema/axes.hpp"

namespace cermet {
namespace {

using enum RoundingClass;

/// z as a shape of x: dimensions of x that stay in place, numbers, and at most one that follows from the others.
std::optional<Ints> shape_from(const Dims& from, const Dims& to) {
  Ints shape;
  for (std::size_t a = 0; a < to.size(); ++a) {
    const bool stays = a < from.size() && to[a] == from[a];
    shape.push_back(stays ? 0 : to[a].is_constant() ? to[a].constant() : -1);
    if (!stays && to[a] == Dim(0)) return std::nullopt;
  }
  if (std::ranges::count(shape, -1) > 1) return std::nullopt;
  return shape;
}
bool reshapes_at_once(const Match& m) { return shape_from(m.type("x").dims, m.type("y").dims).has_value(); }
Attributes with_direct_shape(const Match& m) { return {{"shape", *shape_from(m.type("x").dims, m.type("y").dims)}}; }

Ints permutation_of(const Match& m, std::size_t node, int rank) {
  Ints permutation = m.attributes(node).integers("permutation");
  if (!permutation.empty()) return permutation;
  permutation.resize(static_cast<std::size_t>(rank));
  std::iota(permutation.rbegin(), permutation.rend(), 0);
  return permutation;
}
bool is_identity(const Match& m) { return std::ranges::is_sorted(permutation_of(m, 0, m.type("x").rank())); }
Ints composed(const Match& m) {
  const int rank = m.type("x").rank();
  const Ints first = permutation_of(m, 0, rank), second = permutation_of(m, 1, rank);
  Ints both;
  for (const std::int64_t axis : second) both.push_back(first[static_cast<std::size_t>(axis)]);
  return both;
}
bool cancels(const Match& m) { return std::ranges::is_sorted(composed(m)); }
Attributes with_both_permutations(const Match& m) { return {{"permutation", composed(m)}}; }

/// Only dimensions of 1 change places with others.
bool keeps_order(const Match& m) {
  const Dims& dims = m.type("x").dims;
  std::int64_t last = -1;
  for (const std::int64_t axis : permutation_of(m, 0, m.type("x").rank())) {
    if (dims[static_cast<std::size_t>(axis)] == Dim(1)) continue;
    if (axis < last) return false;
    last = axis;
  }
  return reshapes_at_once(m);
}

/// Whether every value of a type is one of the other.
bool holds_all(DType from, DType to) {
  if (from == to || from == DType::boolean) return true;
  const auto digits = [](DType t) {
    switch (t) {
      case DType::bf16: return 8;
      case DType::f16: return 11;
      case DType::f32: return 24;
      case DType::f64: return 53;
      default: return static_cast<int>(size_of(t)) * 8;
    }
  };
  const auto is_natural = [](DType t) {
    return t == DType::u8 || t == DType::u16 || t == DType::u32 || t == DType::u64;
  };
  if (to == DType::boolean || dtypes::fp8.contains(from) || dtypes::fp8.contains(to)) return false;
  if (is_floating(from)) return is_floating(to) && size_of(to) > size_of(from);
  if (is_floating(to)) return to != DType::f16 && digits(from) <= digits(to);
  if (is_natural(to)) return is_natural(from) && digits(from) <= digits(to);
  return is_natural(from) ? digits(from) < digits(to) : digits(from) <= digits(to);
}
/// The value in between is that of x, and rounding it gives what rounding x gives.
bool widens_first(const Match& m) {
  const DType x = m.type("x").dtype, s = m.type("s").dtype, y = m.type("y").dtype;
  const bool clamps = is_integer(x) && is_floating(s) && is_integer(y);  // where an integer would lose its high bits
  return holds_all(x, s) && x != DType::boolean && (!clamps || holds_all(x, y));
}
Attributes of_last(const Match& m) { return m.attributes(m.nodes.size() - 1); }

bool has_unit_steps(const Match& m) {
  return std::ranges::all_of(m.attributes(0).integers("steps"), [](std::int64_t step) { return step == 1; });
}

struct CutAxis {
  int axis;
  std::int64_t start, end;
};
/// The one axis that a slice in steps of 1 cuts, where its bounds are numbers from the front.
std::optional<CutAxis> cut_of(const Match& m, std::size_t node) {
  const Attributes attributes = m.attributes(node);
  const Dims& dims = m.editor->value(m.editor->node(m.nodes[node]).inputs[0]).type.dims;
  const Ints &starts = attributes.integers("starts"), &ends = attributes.integers("ends"),
             &axes = attributes.integers("axes"), &steps = attributes.integers("steps");
  if (starts.size() != 1 || ends.size() != 1 || (axes.empty() && dims.size() != 1) || (!steps.empty() && steps[0] != 1))
    return {};
  const int axis = axes.empty() ? 0 : wrap_axis(axes[0], static_cast<int>(dims.size()));
  const Dim& dim = dims[static_cast<std::size_t>(axis)];
  if (!dim.is_constant()) return {};
  const auto clamped = [&](std::int64_t at) {
    return std::clamp<std::int64_t>(at < 0 ? at + dim.constant() : at, 0, dim.constant());
  };
  return CutAxis{axis, clamped(starts[0]), clamped(ends[0])};
}
/// A slice (node 1) of exactly one of two joined pieces.
bool cuts_piece(const Match& m, bool is_second) {
  const auto cut = cut_of(m, 1);
  const int axis = wrap_axis(m.attributes(0).integer("axis"), m.type("a").rank());
  const Dim &a = m.type("a").dims[static_cast<std::size_t>(axis)],
            &b = m.type("b").dims[static_cast<std::size_t>(axis)];
  if (!cut || cut->axis != axis || !a.is_constant() || !b.is_constant()) return false;
  return is_second ? cut->start == a.constant() && cut->end == a.constant() + b.constant()
                   : cut->start == 0 && cut->end == a.constant();
}
bool cuts_first(const Match& m) { return cuts_piece(m, false); }
bool cuts_second(const Match& m) { return cuts_piece(m, true); }
/// Two slices, one where the other ends, joined again along their axis.
bool joins_slices(const Match& m) {
  const auto first = cut_of(m, 0), second = cut_of(m, 1);
  if (!first || !second || first->axis != second->axis ||
      wrap_axis(m.attributes(2).integer("axis"), m.type("x").rank()) != first->axis)
    return false;
  return first->start == 0 && first->end == second->start &&
         second->end == m.type("x").dims[static_cast<std::size_t>(first->axis)].constant();
}
bool joins_split(const Match& m) {
  const int rank = m.type("x").rank();
  return wrap_axis(m.attributes(0).integer("axis"), rank) == wrap_axis(m.attributes(1).integer("axis"), rank);
}
/// The second slice is of an axis that the first one leaves alone.
bool slices_other_axis(const Match& m) {
  const auto first = cut_of(m, 0), second = cut_of(m, 1);
  return first && second && first->axis != second->axis;
}
Attributes both_slices(const Match& m) {
  const auto first = cut_of(m, 0), second = cut_of(m, 1);
  return {{"axes", Ints{first->axis, second->axis}},
          {"starts", Ints{first->start, second->start}},
          {"ends", Ints{first->end, second->end}}};
}
bool slices_same_axis(const Match& m) {
  const auto first = cut_of(m, 0), second = cut_of(m, 1);
  return first && second && first->axis == second->axis;
}
Attributes slice_of_slice(const Match& m) {
  const auto first = cut_of(m, 0), second = cut_of(m, 1);
  const std::int64_t start = first->start + second->start;
  return {{"axes", Ints{first->axis}},
          {"starts", Ints{start}},
          {"ends", Ints{std::max(start, first->start + second->end)}}};
}

bool expands_at_once(const Match& m) {
  return std::ranges::all_of(m.type("y").dims, [](const Dim& dim) { return dim.is_constant(); });
}
Attributes expanded_at_once(const Match& m) {
  Ints shape;
  for (const Dim& dim : m.type("y").dims) shape.push_back(dim.constant());
  return {{"shape", shape}};
}
bool pads_nothing(const Match& m) {
  return std::ranges::all_of(m.attributes(0).integers("pads"), [](std::int64_t pad) { return pad == 0; });
}

/// Scales that both sides read alike: one, or one for each element of the last dimension.
bool quantizes_back(const Match& m) {
  const Attributes back = m.attributes(0), forth = m.attributes(1);
  const std::string& granularity = back.text("granularity");
  const bool alike = granularity == "tensor" || granularity == "channel" || granularity == "broadcast";
  return alike && m.type("s").rank() <= 1 && back.text("mode") == forth.text("mode") &&
         back.text("out_dtype") == "f32" && m.type("q").dtype == DType::i8;
}

constexpr std::string_view numbers_alone = "any; (bounds are numbers)";

constexpr AlgebraRow movement_rows[] = {
    // Reshapes, transposes, casts.
    {"reshape-same", exact, "reshape(x) -> x", "any"},
    {"reshape-reshape", exact, "reshape(reshape(x)) -> reshape(x)", "any; (at most one dimension is inferred)",
     reshapes_at_once, with_direct_shape},
    {"transpose-nothing", exact, "transpose(x) -> x", "any; (the axes stay in order)", is_identity, nullptr},
    {"transpose-back", exact, "transpose(transpose(x)) -> x", "any; (one undoes the other)", cancels, nullptr},
    {"transpose-transpose", exact, "transpose(transpose(x)) -> transpose(x)", "any", nullptr, with_both_permutations},
    {"transpose-of-ones", exact, "transpose(x) -> reshape(x)", "any; (only dimensions of 1 move)", keeps_order,
     with_direct_shape},
    {"cast-same", exact, "cast(x) -> x", "any"},
    {"cast-of-wider", exact, "s = cast(x); y = cast(s) -> y = cast(x)",
     "any; (the type in between holds every value of x)", widens_first, of_last},
    {"expand-same", exact, "expand(x) -> x", "any"},
    {"expand-expand", exact, "expand(expand(x)) -> expand(x)", "any; (dimensions are numbers)", expands_at_once,
     expanded_at_once},
    {"pad-nothing", exact, "pad(x) -> x", "any; (no padding)", pads_nothing, nullptr},
    // Slices, joints and splits.
    {"slice-everything", exact, "slice(x) -> x", "any; (steps of 1)", has_unit_steps, nullptr},
    {"slice-of-first-piece", exact, "slice(concat(a, b)) -> a", numbers_alone, cuts_first, nullptr},
    {"slice-of-second-piece", exact, "slice(concat(a, b)) -> b", numbers_alone, cuts_second, nullptr},
    {"slice-other-axis", exact, "slice(slice(x)) -> slice(x)", numbers_alone, slices_other_axis, both_slices},
    {"slice-same-axis", exact, "slice(slice(x)) -> slice(x)", numbers_alone, slices_same_axis, slice_of_slice},
    {"concat-one", exact, "concat(x) -> x", "any"},
    {"concat-first", exact, "concat(concat(a, b), c) -> concat(a, b, c)", "any"},
    {"concat-last", exact, "concat(a, concat(b, c)) -> concat(a, b, c)", "any"},
    {"concat-slices", exact, "concat(slice(x), slice(x)) -> x", numbers_alone, joins_slices, nullptr},
    {"concat-halves", exact, "a, b = split(x); y = concat(a, b) -> x", "any; (one axis)", joins_split, nullptr},
    {"concat-thirds", exact, "a, b, c = split(x); y = concat(a, b, c) -> x", "any; (one axis)", joins_split, nullptr},
    {"quantize-back", fast, "quantize(dequantize(q, s, -), s, -, -) -> q",
     "any; s > 0; finite s; (i8 with a scale of all, or of each column)", quantizes_back, nullptr},
    // Broadcasting does what an expansion did.
    {"add-expanded", exact, "add(expand(a), b) -> add(a, b)", "number"},
    {"sub-expanded", exact, "sub(expand(a), b) -> sub(a, b)", "number"},
    {"sub-of-expanded", exact, "sub(a, expand(b)) -> sub(a, b)", "number"},
    {"mul-expanded", exact, "mul(expand(a), b) -> mul(a, b)", "number"},
    {"div-expanded", exact, "div(expand(a), b) -> div(a, b)", "number"},
    {"div-of-expanded", exact, "div(a, expand(b)) -> div(a, b)", "number"},
    {"max-expanded", strict, "max(expand(a), b) -> max(a, b)", "number"},
    {"min-expanded", strict, "min(expand(a), b) -> min(a, b)", "number"},
    {"choose-by-expanded", exact, "where(expand(c), a, b) -> where(c, a, b)", "any"},
    {"choose-expanded", exact, "where(c, expand(a), b) -> where(c, a, b)", "any"},
    {"choose-else-expanded", exact, "where(c, a, expand(b)) -> where(c, a, b)", "any"},
    // Two that are moved alike are moved once.
    {"add-transposed", exact, "add(transpose(a), transpose(b)) -> transpose(add(a, b))", "number; same a b"},
    {"sub-transposed", exact, "sub(transpose(a), transpose(b)) -> transpose(sub(a, b))", "number; same a b"},
    {"mul-transposed", exact, "mul(transpose(a), transpose(b)) -> transpose(mul(a, b))", "number; same a b"},
    {"div-transposed", exact, "div(transpose(a), transpose(b)) -> transpose(div(a, b))", "number; same a b"},
    {"max-transposed", exact, "max(transpose(a), transpose(b)) -> transpose(max(a, b))", "number; same a b"},
    {"min-transposed", exact, "min(transpose(a), transpose(b)) -> transpose(min(a, b))", "number; same a b"},
    {"add-reshaped", exact, "add(reshape(a), reshape(b)) -> reshape(add(a, b))", "number; same a b"},
    {"sub-reshaped", exact, "sub(reshape(a), reshape(b)) -> reshape(sub(a, b))", "number; same a b"},
    {"mul-reshaped", exact, "mul(reshape(a), reshape(b)) -> reshape(mul(a, b))", "number; same a b"},
    {"max-reshaped", exact, "max(reshape(a), reshape(b)) -> reshape(max(a, b))", "number; same a b"},
};

}  // namespace

std::span<const AlgebraRow> movement_rules() { return movement_rows; }

}  // namespace cermet
