#include <numbers>

#include "op/schema/axes.hpp"
#include "op/schema/infer.hpp"
#include "op/schema/operator.hpp"
#include "op/schema/reference.hpp"

namespace cermet::dft_op {
namespace {

std::vector<TensorType> infer(const Problem& p) {
  expect_min_rank(p, 0, 2);
  const TensorType& x = p.input(0);
  const Dim parts = dim_of(p, 0, -1);
  if (parts != Dim(1) && parts != Dim(2))
    bad_operand(p, 0, "a last dimension of 1 (real) or 2 (complex)", x.to_string());
  const int axis = axis_attribute(p, "axis", x.rank());
  if (axis == x.rank() - 1) bad_attribute(p, "axis", "an axis before the last, which holds the parts of a number");
  const std::int64_t length = p.attributes.integer("length");
  if (length < 0) bad_attribute(p, "length", "a number that is not negative");
  const bool onesided = p.attributes.flag("onesided");
  if (onesided && p.attributes.flag("inverse")) bad_attribute(p, "onesided", "false for an inverse transform");
  if (onesided && parts != Dim(1))
    bad_operand(p, 0, "real numbers (a last dimension of 1) for a onesided transform", x.to_string());
  Dims dims = x.dims;
  Dim& count = dims[static_cast<std::size_t>(axis)];
  if (length > 0) count = length;
  if (count == Dim(0)) bad_operand(p, 0, "at least one number along the axis", x.to_string());
  if (onesided) count = floor_div(count, 2) + 1;
  dims.back() = 2;
  return {{x.dtype, std::move(dims)}};
}

/// Numbers that are transformed.
double transformed(const Problem& p) {
  const std::int64_t length = p.attributes.integer("length");
  return static_cast<double>(length > 0 ? length
                                        : p.size(0, wrap_axis(p.attributes.integer("axis"), p.input(0).rank())));
}

void reference(const ReferenceCall& call) {
  const TensorView &x = call.inputs[0], &y = call.outputs[0];
  const int axis = wrap_axis(call.attributes.integer("axis"), x.shape.rank());
  const std::int64_t given = x.shape[axis], own = call.attributes.integer("length"), n = own > 0 ? own : given,
                     parts = x.shape.back(), results = y.shape[axis];
  const bool inverse = call.attributes.flag("inverse");
  std::int64_t outer = 1, inner = 1;
  for (int a = 0; a < axis; ++a) outer *= x.shape[a];
  for (int a = axis + 1; a + 1 < x.shape.rank(); ++a) inner *= x.shape[a];
  for (std::int64_t o = 0; o < outer; ++o)
    for (std::int64_t i = 0; i < inner; ++i)
      for (std::int64_t k = 0; k < results; ++k) {
        double re = 0, im = 0, magnitude = 0;
        for (std::int64_t j = 0; j < std::min(n, given); ++j) {
          const std::int64_t at = ((o * given + j) * inner + i) * parts;
          const double a = load(x, at), b = parts == 2 ? load(x, at + 1) : 0;
          const double angle =
              2 * std::numbers::pi * static_cast<double>(j * k % n) / static_cast<double>(n) * (inverse ? 1 : -1);
          re += a * std::cos(angle) - b * std::sin(angle);
          im += a * std::sin(angle) + b * std::cos(angle);
          magnitude += std::abs(a) + std::abs(b);
        }
        const double scale = inverse ? 1 / static_cast<double>(n) : 1;
        const std::int64_t to = ((o * results + k) * inner + i) * 2;
        store(y, to, re * scale);
        store(y, to + 1, im * scale);
        for (const int part : {0, 1}) note_magnitude(call, 0, to + part, magnitude * scale);
      }
}

std::vector<Case> cases() {
  std::vector<Case> list;
  const auto add = [&](std::string name, DType t, Dims x, Attributes attributes = {}, std::int64_t padding = 0) {
    list.push_back({std::move(name), {CaseOperand{{t, std::move(x)}, normal(), padding}}, std::move(attributes)});
  };
  for (DType t : {DType::f32, DType::bf16, DType::f16})
    for (std::int64_t n : {1, 2, 7, 16, 33, 128})
      for (std::int64_t parts : {1, 2}) {
        add(fmt::format("{}_{}_{}", name_of(t), n, parts), t, {3, n, parts});
        add(fmt::format("{}_{}_{}_inverse", name_of(t), n, parts), t, {3, n, parts}, {{"inverse", true}});
      }
  for (std::int64_t n : {1, 2, 9, 32}) add(fmt::format("onesided_{}", n), DType::f32, {4, n, 1}, {{"onesided", true}});
  add("first_axis", DType::f32, {16, 3, 2}, {{"axis", 0}});
  add("middle_axis", DType::f32, {2, 10, 3, 1}, {{"axis", -3}});
  add("padded", DType::f32, {2, 10, 1}, {{"length", 16}});
  add("cut", DType::f32, {2, 20, 2}, {{"length", 15}});
  add("padded_onesided", DType::f32, {2, 10, 1}, {{"length", 16}, {"onesided", true}});
  add("long", DType::f32, {2, 1024, 2});
  add("long_odd", DType::f32, {1, 405, 1}, {{"onesided", true}});
  add("strided", DType::f32, {3, 8, 2}, {}, 3);
  add("no_rows", DType::f32, {0, 8, 2});
  return list;
}

}  // namespace

OpSpec define() {
  return {
      .category = "Linear algebra",
      .summary = "Discrete Fourier transform along one axis",
      .semantics =
          "The last dimension holds the real part of a number and, if it is 2, the imaginary one. With n numbers along "
          "the axis (`length` of them, cut off or "
          "followed by zeros): y[k] = sum over j of x[j] exp(-2 pi i j k / n); the inverse has the other sign and is "
          "divided by n. onesided gives the first "
          "n / 2 + 1 (rounded down) results of real numbers. This is ONNX's DFT but for onesided inverse transforms, "
          "which take the missing half from the "
          "importer. Sums in float32 of at least direct summation's accuracy, one rounding.",
      .inputs = {{"x", dtypes::real, "[.., n, .., 1 or 2]", "real or complex numbers", Mapping::barrier}},
      .outputs = {{"y", dtypes::real, "[.., n, .., 2]", "complex numbers"}},
      .attributes = {{"axis", -2, "axis of the transform; negative counts from the end"},
                     {"length", 0, "numbers that are transformed; those of x where 0"},
                     {"inverse", false, "the inverse transform"},
                     {"onesided", false, "leave out what conjugates give; real numbers only"}},
      .infer = infer,
      .reference = reference,
      .operations =
          [](const Problem& p) {
            return 2.5 * static_cast<double>(p.outputs[0].elements().value(p.maximum)) * std::log2(transformed(p) + 1);
          },
      .rounding_depth = [](const Problem& p) { return 8 + transformed(p); },
      .cases = cases,
  };
}

}  // namespace cermet::dft_op
