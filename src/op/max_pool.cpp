#include <limits>

#include "op/pool_window.hpp"
#include "op/schema/infer.hpp"
#include "op/schema/reference.hpp"

namespace cermet::max_pool_op {
namespace {

constexpr DTypeSet types = dtypes::real | DTypeSet{DType::i8, DType::u8};

std::vector<TensorType> infer(const Problem& p) {
  const TensorType y{p.input(0).dtype, pooled_dims(p)};
  const std::int64_t order = p.attributes.integer("storage_order");
  if (order != 0 && order != 1) bad_attribute(p, "storage_order", "0 or 1");
  if (p.attributes.flag("with_indices")) return {y, {DType::i64, y.dims}};
  return {y};
}

void reference(const ReferenceCall& call) {
  const TensorView& view = call.inputs[0];
  const PoolWindow all = pool_window(call.attributes, view.shape.rank());
  const bool columns = call.attributes.integer("storage_order") == 1, indices = call.attributes.flag("with_indices");
  const SpatialView x = dense_spatial_view(view, all.channels_last),
                    y = dense_spatial_view(call.outputs[0], all.channels_last);
  const PoolWindow window = all.over(x.size);
  for (std::int64_t i = 0; i < y.batch * y.channels * y.positions(); ++i) {
    const std::int64_t plane = i / y.positions(), n = plane / y.channels, c = plane % y.channels;
    const Spatial at = position_of(y.size, i % y.positions());
    std::int64_t best = -1;
    double most = 0;
    Spatial where{};
    for_window(window, x.size, at, [&](const Spatial& from) {
      const std::int64_t place = x.offset(n, c, from);
      const double value = load(view, place);
      if (best >= 0 && (std::isnan(most) || !(value > most || std::isnan(value)))) return;
      best = place;
      most = value;
      where = from;
    });
    const std::int64_t to = y.offset(n, c, at);
    if (best >= 0) copy_element(view, best, call.outputs[0], to);
    else store(call.outputs[0], to, -std::numeric_limits<double>::infinity());
    if (!indices) continue;
    const std::int64_t inside = columns ? (where[2] * x.size[1] + where[1]) * x.size[0] + where[0]
                                        : (where[0] * x.size[1] + where[1]) * x.size[2] + where[2];
    store_integer(call.outputs[1], to, best < 0 ? -1 : plane * x.positions() + inside);
  }
}

std::vector<Case> cases() {
  std::vector<Case> list;
  const auto add = [&](const std::string& name, CaseOperand x, Attributes attributes) {
    list.push_back({name, {x}, attributes});
    attributes.set("with_indices", true);
    list.push_back({name + "_indices", {std::move(x)}, std::move(attributes)});
  };
  using enum DType;
  const Ints ones{1, 1, 1, 1}, two{2, 2}, three{3, 3};
  for (DType t : {f32, bf16, f16, i8, u8})
    for (const char* layout : {"nchw", "nhwc"}) {
      const Dims dims = layout == std::string("nchw") ? Dims{2, 5, 13, 37} : Dims{2, 13, 17, 37};
      const Fill fill = t == i8 ? integers(-128, 127) : t == u8 ? integers(0, 255) : normal();
      add(fmt::format("{}_{}", name_of(t), layout), {{t, dims}, fill},
          {{"kernel", three}, {"strides", two}, {"pads", ones}, {"layout", layout}});
    }
  for (const char* layout : {"nchw", "nhwc"}) {
    const auto named = [&](const char* name) { return fmt::format("{}_{}", layout, name); };
    const auto dims = [&](Dims spatial, std::int64_t channels = 6) {
      return pool_case_dims(layout, std::move(spatial), channels);
    };
    add(named("one_axis"), {{f32, dims({41})}},
        {{"kernel", Ints{4}}, {"strides", Ints{3}}, {"pads", Ints{2, 1}}, {"layout", layout}});
    add(named("three_axes"), {{f32, dims({5, 6, 19})}},
        {{"kernel", Ints{2, 3, 3}},
         {"strides", Ints{1, 2, 2}},
         {"pads", Ints{1, 0, 1, 0, 1, 1}},
         {"layout", layout},
         {"storage_order", 1}});
    add(named("dilated"), {{f32, dims({12, 33})}},
        {{"kernel", Ints{3, 2}},
         {"dilations", Ints{2, 5}},
         {"strides", Ints{1, 3}},
         {"pads", Ints{4, 5, 1, 3}},
         {"layout", layout},
         {"storage_order", 1}});
    add(named("ceil"), {{f32, dims({8, 23})}},
        {{"kernel", three},
         {"strides", Ints{2, 4}},
         {"pads", Ints{0, 1, 1, 2}},
         {"ceil_mode", true},
         {"layout", layout}});
    add(named("strided"),
        {{
             f32,
             dims({7, 9}),
         },
         normal(),
         3},
        {{"kernel", two}, {"layout", layout}});
    add(named("wide_steps"), {{f32, dims({9, 40})}}, {{"kernel", two}, {"strides", Ints{4, 5}}, {"layout", layout}});
    add(named("whole"), {{f32, dims({7, 7}, 33)}}, {{"layout", layout}});
    add(named("whole_strided"), {{bf16, dims({3, 7, 5}, 3)}, normal(), 2}, {{"layout", layout}});
    add(named("tall"), {{f32, dims({70, 3})}}, {{"kernel", Ints{67, 2}}, {"layout", layout}});
    add(named("nan"), {{f32, dims({5, 9})}, values({1, -2, NAN, 4, INFINITY, -INFINITY, 0.5})},
        {{"kernel", three}, {"pads", ones}, {"layout", layout}});
    add(named("negative"), {{f32, dims({5, 9})}, uniform(-9, -1)},
        {{"kernel", three}, {"pads", ones}, {"layout", layout}});
    add(named("ties"), {{f32, dims({9, 9})}, integers(0, 2)}, {{"kernel", three}, {"layout", layout}});
    // The only element is between the taps of the window.
    add(named("nothing_inside"), {{f32, dims({1, 3})}},
        {{"kernel", Ints{2, 1}}, {"dilations", Ints{2, 1}}, {"pads", Ints{1, 0, 1, 0}}, {"layout", layout}});
    add(named("empty"), {{f32, dims({6, 6}, 0)}}, {{"kernel", two}, {"layout", layout}});
  }
  return list;
}

}  // namespace

OpSpec define() {
  std::vector<AttributeSpec> attributes = pool_attributes();
  attributes.push_back({"with_indices", false, "whether there is a second result"});
  attributes.push_back(
      {"storage_order", 0,
       "0: indices count the spatial axes of x row by row; 1: column by column, the first spatial axis fastest"});
  return {
      .category = "Convolution and pooling",
      .summary = "Largest element of each window",
      .semantics =
          "Window o of a spatial axis has the elements o * stride - pads_begin + k * dilation of x, 0 <= k < kernel, "
          "that x has; y is the largest of "
          "each sample's and channel's, NaN where one is NaN, the lowest value of the type where x has none. A spatial "
          "axis of y has "
          "floor((size + pads_begin + pads_end - span) / stride) + 1 elements, span = (kernel - 1) * dilation + 1; "
          "with ceil_mode the quotient is rounded up, "
          "but "
          "no window starts behind the last element of x. indices[..] is the place of the first largest element (the "
          "first NaN) in x, counted as if x were "
          "dense "
          "and [N, C, spatial..] whatever the layout; -1 where there is none.",
      .inputs = {{"x", types, "[N, C, ..]", "samples", Mapping::many_to_many}},
      .outputs = {{"y", types, "[N, C, ..]", "largest elements"},
                  {"indices", {DType::i64}, "[N, C, ..]", "their places, with with_indices"}},
      .attributes = std::move(attributes),
      .infer = infer,
      .reference = reference,
      .operations =
          [](const Problem& p) {
            return window_elements(p) * static_cast<double>(p.outputs[0].elements().value(p.maximum));
          },
      .rounding_depth = [](const Problem&) { return 0.0; },
      .cases = cases,
  };
}

}  // namespace cermet::max_pool_op
