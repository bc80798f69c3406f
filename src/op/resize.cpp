#include "op/resize.hpp"

#include <algorithm>

#include "op/schema/axes.hpp"
#include "op/schema/dims_attribute.hpp"
#include "op/schema/infer.hpp"
#include "op/schema/operator.hpp"
#include "op/schema/reference.hpp"

namespace cermet::resize_op {
namespace {

constexpr DTypeSet blended = dtypes::real | DTypeSet{DType::u8, DType::i8, DType::i32};
constexpr std::array<const char*, 3> modes{"nearest", "linear", "cubic"};
constexpr std::array<const char*, 7> transforms{"half_pixel",           "half_pixel_symmetric", "pytorch_half_pixel",
                                                "tf_half_pixel_for_nn", "align_corners",        "asymmetric",
                                                "tf_crop_and_resize"};
constexpr std::array<const char*, 4> nearest_modes{"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"};

template <class Enum, std::size_t n>
Enum choice(const Attributes& attributes, std::string_view name, const std::array<const char*, n>& names) {
  return static_cast<Enum>(std::find(names.begin(), names.end(), attributes.text(name)) - names.begin());
}

/// floor(size * scale); a symbolic size needs a scale that is a small fraction of a power of two.
Dim scaled(const Problem& p, std::size_t axis, const Dim& size, double scale) {
  if (scale == 1) return size;
  if (size.is_constant()) {
    const double out = std::floor(static_cast<double>(size.constant()) * scale);
    if (out >= 0x1p31) bad_attribute(p, "scales", "sizes below 2^31");
    return static_cast<std::int64_t>(out);
  }
  for (std::int64_t divisor = 1; divisor <= 1 << 12; divisor *= 2) {
    const double factor = scale * static_cast<double>(divisor);
    if (factor == std::floor(factor) && factor < 0x1p20)
      return floor_div(size * static_cast<std::int64_t>(factor), divisor);
  }
  bad_operand(p, 0, fmt::format("a constant dimension {} for a scale of {}", axis, scale), p.input(0).to_string());
}

std::vector<TensorType> infer(const Problem& p) {
  TensorType y = p.input(0);
  const auto rank = static_cast<std::size_t>(y.rank());
  const Ints& sizes = p.attributes.integers("sizes");
  const Floats &scales = p.attributes.numbers("scales"), &roi = p.attributes.numbers("roi");
  if (!sizes.empty() && sizes.size() != rank)
    bad_attribute(p, "sizes", fmt::format("{} entries, one for each axis", rank));
  if (!scales.empty() && scales.size() != rank)
    bad_attribute(p, "scales", fmt::format("{} entries, one for each axis", rank));
  const Dims dims = dims_attribute(p, "dims");
  if (!dims.empty() && (dims.size() != rank || !sizes.empty()))
    bad_attribute(p, "dims", fmt::format("{} dimensions, one for each axis, in place of sizes", rank));
  const bool crops = p.attributes.text("coordinate_transformation_mode") == "tf_crop_and_resize",
             nearest = p.attributes.text("mode") == "nearest";
  if (crops ? roi.size() != 2 * rank : !roi.empty())
    bad_attribute(p, "roi",
                  crops ? fmt::format("{} entries: where each axis begins, then where each ends", 2 * rank)
                        : "nothing without tf_crop_and_resize");
  for (const double bound : roi)
    if (!std::isfinite(bound)) bad_attribute(p, "roi", "finite numbers");
  if (nearest && p.attributes.flag("antialias")) bad_attribute(p, "antialias", "false in mode nearest");
  if (!nearest && !blended.contains(y.dtype))
    bad_operand(p, 0, fmt::format("{} in mode {}", blended.to_string(), p.attributes.text("mode")), y.to_string());
  for (std::size_t a = 0; a < rank; ++a) {
    const Dim in = y.dims[a];
    if (!sizes.empty() && sizes[a] != -1) {
      if (sizes[a] < 0 || sizes[a] >= std::int64_t{1} << 31)
        bad_attribute(p, "sizes", "entries in [0, 2^31), or -1 for that of x");
      y.dims[a] = sizes[a];
      if (in == Dim(0) && sizes[a] > 0)
        bad_operand(p, 0, fmt::format("dimension {} of at least 1", a), p.input(0).to_string());
    }
    if (!dims.empty()) {
      if (in == Dim(0) && dims[a] != Dim(0))
        bad_operand(p, 0, fmt::format("dimension {} of at least 1", a), p.input(0).to_string());
      if (p.attributes.flag("antialias") && !dims[a].is_constant() && dims[a] != in)
        bad_attribute(p, "antialias", "false where dims are symbolic");
      y.dims[a] = dims[a];
    }
    if (!scales.empty()) {
      // Below 2^-24 the weights of a filter would not fit memory.
      if (!(scales[a] >= 0x1p-24 && scales[a] <= 0x1p24)) bad_attribute(p, "scales", "numbers in [2^-24, 2^24]");
      if (sizes.empty() && dims.empty()) y.dims[a] = scaled(p, a, in, scales[a]);
    }
  }
  return {std::move(y)};
}

void reference(const ReferenceCall& call) {
  const TensorView &x = call.inputs[0], &y = call.outputs[0];
  const ResizePlan plan = ResizeAttributes(call.attributes, x.shape.rank()).plan(x.shape, y.shape);
  struct Term {
    std::int64_t index;
    double weight;
  };
  for (std::int64_t i = 0; i < y.elements(); ++i) {
    const Shape at = coordinates(y.shape, i);
    std::vector<Term> terms{{0, 1}};
    bool outside = false;
    for (int a = 0; a < plan.rank; ++a) {
      const auto axis = static_cast<std::size_t>(a);
      std::vector<std::int64_t> places{at[a]};
      std::vector<double> weights{1};
      if (plan.resized[axis]) {
        places.resize(static_cast<std::size_t>(plan.axes[axis].taps));
        weights.resize(places.size());
        outside = resize::sample(plan.rule, plan.axes[axis], at[a], places.data(), weights.data(), 1) || outside;
      }
      std::vector<Term> next;
      for (const Term& term : terms)
        for (std::size_t k = 0; k < places.size(); ++k)
          next.push_back({term.index * x.shape[a] + places[k], term.weight * weights[k]});
      terms = std::move(next);
    }
    if (outside) {
      store(y, i, plan.extrapolation);
    } else if (plan.rule.mode == resize::Mode::nearest) {
      copy_element(x, terms[0].index, y, i);
    } else {
      double sum = 0, magnitude = 0;
      for (const Term& term : terms) {
        sum += term.weight * load(x, term.index);
        magnitude += std::abs(term.weight * load(x, term.index));
      }
      store(y, i, sum);
      note_magnitude(call, 0, i, magnitude);
    }
  }
}

std::vector<Case> cases() {
  std::vector<Case> list;
  const auto add = [&](std::string name, CaseOperand x, Attributes attributes) {
    list.push_back({std::move(name), {std::move(x)}, std::move(attributes)});
  };
  using enum DType;
  for (DType t : {f32, bf16, f16, u8, i8, i32, boolean, i64, f64, f8_e4m3}) {
    const Fill fill = is_integer(t) ? integers(t == i8 ? -128 : 0, 127) : t == boolean ? integers(0, 1) : normal();
    add(fmt::format("nearest_{}_nchw", name_of(t)), {{t, {2, 3, 7, 19}}, fill},
        {{"sizes", Ints{-1, -1, 14, 38}}, {"coordinate_transformation_mode", "asymmetric"}});
    add(fmt::format("nearest_{}_nhwc", name_of(t)), {{t, {2, 7, 5, 33}}, fill},
        {{"scales", Floats{1, 2, 2, 1}}, {"nearest_mode", "floor"}});
    if (!blended.contains(t)) continue;
    for (const char* mode : {"linear", "cubic"}) {
      // With thirds and this coefficient no sum of integers is halfway between two others.
      add(fmt::format("{}_{}_nchw", mode, name_of(t)), {{t, {2, 3, 7, 19}}, fill},
          {{"mode", mode}, {"sizes", Ints{-1, -1, 21, 57}}, {"cubic_coeff_a", -0.618034}});
      add(fmt::format("{}_{}_nhwc", mode, name_of(t)), {{t, {1, 6, 5, 33}}, fill},
          {{"mode", mode}, {"scales", Floats{1, 3, 3, 1}}, {"cubic_coeff_a", -0.618034}});
    }
  }
  for (const char* mode : modes)
    for (const char* transform : transforms) {
      Attributes attributes{{"mode", mode},
                            {"coordinate_transformation_mode", transform},
                            {"scales", Floats{1, 1.7, 0.61}},
                            {"extrapolation_value", 2.5}};
      if (transform == std::string("tf_crop_and_resize")) attributes.set("roi", Floats{0, -0.25, 0.125, 1, 0.5, 1.25});
      add(fmt::format("{}_{}", mode, transform), {{f32, {3, 9, 23}}}, attributes);
      attributes.set("exclude_outside", true);
      if (mode != std::string("nearest"))
        add(fmt::format("{}_{}_exclude_outside", mode, transform), {{f32, {3, 9, 23}}}, attributes);
      attributes.set("antialias", true);
      attributes.set("scales", Floats{1, 0.3, 0.45});
      if (mode != std::string("nearest"))
        add(fmt::format("{}_{}_antialias_exclude_outside", mode, transform), {{f32, {3, 31, 43}}}, attributes);
      attributes.set("exclude_outside", false);
      if (mode != std::string("nearest"))
        add(fmt::format("{}_{}_antialias", mode, transform), {{f32, {3, 31, 43}}}, attributes);
    }
  for (const char* nearest : nearest_modes)
    for (const char* transform : {"half_pixel", "asymmetric", "align_corners"})
      add(fmt::format("nearest_{}_{}", nearest, transform), {{f32, {2, 8, 13}}},
          {{"nearest_mode", nearest}, {"coordinate_transformation_mode", transform}, {"sizes", Ints{2, 20, 9}}});
  for (const char* mode : modes) {
    const std::string name = mode;
    add(name + "_one_column", {{f32, {2, 4, 1}}}, {{"mode", mode}, {"sizes", Ints{-1, 3, 5}}});
    add(name + "_to_one", {{f32, {2, 4, 6}}},
        {{"mode", mode}, {"sizes", Ints{-1, 1, 1}}, {"coordinate_transformation_mode", "pytorch_half_pixel"}});
    add(name + "_every_axis", {{f32, {3, 4, 5, 6}}}, {{"mode", mode}, {"sizes", Ints{5, 3, 6, 9}}});
    add(name + "_one_axis", {{f32, {77}}}, {{"mode", mode}, {"sizes", Ints{200}}});
    add(name + "_far_apart", {{f32, {2, 300}}}, {{"mode", mode}, {"sizes", Ints{-1, 40}}});
    add(name + "_strided", {{f32, {2, 3, 7}}, normal(), 3}, {{"mode", mode}, {"sizes", Ints{-1, 5, 15}}});
    add(name + "_nothing", {{f32, {2, 3}}}, {{"mode", mode}});
    add(name + "_scalar", {{f32, {}}}, {{"mode", mode}});
    add(name + "_empty", {{f32, {2, 3, 0}}}, {{"mode", mode}, {"scales", Floats{1, 2, 2}}});
    add(name + "_mirrored", {{f32, {2, 30}}},
        {{"mode", mode},
         {"sizes", Ints{-1, 21}},
         {"coordinate_transformation_mode", "tf_crop_and_resize"},
         {"roi", Floats{0, 0.875, 1, 0.125}}});
    add(name + "_cropped", {{bf16, {4, 16, 5}}},
        {{"mode", mode},
         {"sizes", Ints{-1, 16, 5}},
         {"coordinate_transformation_mode", "tf_crop_and_resize"},
         {"roi", Floats{0, 0.25, 0, 1, 0.75, 1}}});
  }
  add("dims_as_text", {{f32, {2, 9, 23}}}, {{"mode", "linear"}, {"dims", Strings{"2", "6", "37"}}});
  add("sizes_and_scales", {{f32, {2, 9, 23}}},
      {{"mode", "linear"}, {"sizes", Ints{2, 6, 16}}, {"scales", Floats{1, 0.7, 0.7}}});
  add("cubic_saturates", {{u8, {1, 9, 9}}, values({0, 255, 255, 0, 0, 255, 255, 0})},
      {{"mode", "cubic"}, {"sizes", Ints{-1, 27, 27}}, {"cubic_coeff_a", -0.618034}});
  return list;
}

}  // namespace

OpSpec define() {
  return {
      .category = "Images",
      .summary = "Resampling to another size",
      .semantics =
          "ONNX's Resize over every axis of x. An axis of n elements gets sizes[a] (-1: n) or floor(n * scales[a]); s "
          "is its scale, scales[a] or sizes[a] / n, "
          "and w = n * s. An axis with s = 1 is copied. Element i of another one is at x(i) of x: half_pixel: (i + "
          "0.5) / s - 0.5; half_pixel_symmetric: the "
          "same "
          "plus n / 2 * (1 - size / w); pytorch_half_pixel: half_pixel, but -0.5 where w = 1; tf_half_pixel_for_nn: (i "
          "+ 0.5) / s; align_corners: i * (n - 1) "
          "/ (w - 1), 0 where w = 1; asymmetric: "
          "i "
          "/ s; tf_crop_and_resize: (begin + i * (end - begin) / (w - 1)) * (n - 1), the middle of the crop where w = "
          "1, with begin and end from roi; results "
          "that are then outside [0, n - 1] on some axis are extrapolation_value. Coordinates are float64. nearest "
          "takes the element at x(i) rounded by "
          "nearest_mode, bit for bit; linear and cubic add elements at j with weights f(j - x(i)), f the triangle or "
          "Keys' cubic with coefficient "
          "cubic_coeff_a, in float32, with one rounding at the end (integers: to even, and saturate). An index outside "
          "x counts as the nearest inside; with "
          "exclude_outside its weight is 0 and the others are divided by their sum. antialias stretches f by 1 / s "
          "where s < 1, and divides weights by their "
          "sum.",
      .inputs = {{"x", dtypes::any, "[..]", "elements; f32, bf16, f16, u8, i8 or i32 but in mode nearest",
                  Mapping::many_to_many}},
      .outputs = {{"y", dtypes::any, "[..]", "x resampled"}},
      .attributes =
          {{"mode", std::string("nearest"), "how elements are made", {modes.begin(), modes.end()}},
           {"sizes", Ints{}, "size of y along every axis, -1: that of x; x's own, or what scales gives, where empty"},
           {"scales", Floats{}, "size of y along every axis over that of x; with sizes, too, only where elements are"},
           {"coordinate_transformation_mode",
            std::string("half_pixel"),
            "where an element of y is in x",
            {transforms.begin(), transforms.end()}},
           {"nearest_mode",
            std::string("round_prefer_floor"),
            "how nearest rounds coordinates",
            {nearest_modes.begin(), nearest_modes.end()}},
           {"roi", Floats{},
            "crop of tf_crop_and_resize: where each axis begins, then where each ends, as fractions of n - 1"},
           {"extrapolation_value", 0.0, "results outside of x, of tf_crop_and_resize"},
           {"cubic_coeff_a", -0.75, "coefficient of the cubic"},
           {"exclude_outside", false, "whether linear and cubic leave out elements outside of x"},
           {"antialias", false, "whether linear and cubic filter what they shrink"},
           {"dims", Strings{}, "in place of sizes, all of them as text where some are symbolic: \"B\", \"2*H\""}},
      .infer = infer,
      .reference = reference,
      .operations =
          [](const Problem& p) {
            const int taps = p.attributes.text("mode") == "nearest" ? 0 : p.attributes.text("mode") == "linear" ? 2 : 4;
            return static_cast<double>(2 * taps) * static_cast<double>(p.outputs[0].elements().value(p.maximum));
          },
      .rounding_depth =
          [](const Problem& p) {
            if (p.attributes.text("mode") == "nearest") return 0.0;
            double terms = 1, roundings = 0;
            const ResizePlan plan = ResizeAttributes(p.attributes, p.input(0).rank())
                                        .plan(bind(p.input(0).dims, p.maximum), bind(p.outputs[0].dims, p.maximum));
            for (std::size_t a = 0; a < static_cast<std::size_t>(plan.rank); ++a) {
              terms *= plan.axes[a].taps;
              roundings += plan.resized[a] ? 2 : 0;
            }
            return terms + roundings;
          },
      .cases = cases,
  };
}

}  // namespace cermet::resize_op

namespace cermet {

ResizeAttributes::ResizeAttributes(const Attributes& attributes, int rank)
    : rule_{resize_op::choice<resize::Mode>(attributes, "mode", resize_op::modes),
            resize_op::choice<resize::Coordinates>(attributes, "coordinate_transformation_mode", resize_op::transforms),
            resize_op::choice<resize::Nearest>(attributes, "nearest_mode", resize_op::nearest_modes),
            attributes.flag("exclude_outside"),
            attributes.flag("antialias"),
            attributes.number("cubic_coeff_a")},
      rank_(rank),
      extrapolation_(attributes.number("extrapolation_value")) {
  const Floats &scales = attributes.numbers("scales"), &roi = attributes.numbers("roi");
  end_.fill(1);
  std::copy(scales.begin(), scales.end(), scale_.begin());
  if (roi.empty()) return;
  std::copy_n(roi.begin(), rank, begin_.begin());
  std::copy_n(roi.begin() + rank, rank, end_.begin());
}

ResizePlan ResizeAttributes::plan(const Shape& in, const Shape& out) const {
  ResizePlan plan{.rule = rule_, .rank = rank_, .extrapolation = extrapolation_};
  for (int a = 0; a < rank_; ++a) {
    const auto axis = static_cast<std::size_t>(a);
    const double scale = scale_[axis] != 0 ? scale_[axis] : static_cast<double>(out[a]) / static_cast<double>(in[a]);
    plan.axes[axis] = {in[a], out[a], scale, begin_[axis], end_[axis], 1};
    const bool whole = begin_[axis] == 0 && end_[axis] == 1;
    plan.resized[axis] = in[a] > 0 && out[a] > 0 && !(in[a] == out[a] && scale == 1 && whole);
    if (plan.resized[axis]) plan.axes[axis].taps = resize::count_taps(rule_, scale);
  }
  return plan;
}

}  // namespace cermet
