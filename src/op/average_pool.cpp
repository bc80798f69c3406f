#include "op/pool_window.hpp"
#include "op/schema/infer.hpp"
#include "op/schema/reference.hpp"

namespace cermet::average_pool_op {
namespace {

std::vector<TensorType> infer(const Problem& p) { return {{p.input(0).dtype, pooled_dims(p)}}; }

void reference(const ReferenceCall& call) {
  const TensorView& view = call.inputs[0];
  const PoolWindow all = pool_window(call.attributes, view.shape.rank());
  const bool padding = call.attributes.flag("count_include_pad");
  const SpatialView x = dense_spatial_view(view, all.channels_last),
                    y = dense_spatial_view(call.outputs[0], all.channels_last);
  const PoolWindow window = all.over(x.size);
  for (std::int64_t i = 0; i < y.batch * y.channels * y.positions(); ++i) {
    const std::int64_t n = i / y.positions() / y.channels, c = i / y.positions() % y.channels;
    const Spatial at = position_of(y.size, i % y.positions());
    double sum = 0, magnitude = 0, count = 1;
    for_window(window, x.size, at, [&](const Spatial& from) {
      const double value = load(view, x.offset(n, c, from));
      sum += value;
      magnitude += std::abs(value);
    });
    for (int a = 0; a < 3; ++a)
      count *= static_cast<double>(
          counted_taps(window, a, at[static_cast<std::size_t>(a)], x.size[static_cast<std::size_t>(a)], padding));
    const std::int64_t to = y.offset(n, c, at);
    store(call.outputs[0], to, count > 0 ? sum / count : 0);
    if (count > 0) note_magnitude(call, 0, to, magnitude / count);
  }
}

std::vector<Case> cases() {
  std::vector<Case> list;
  const auto add = [&](const std::string& name, const CaseOperand& x, Attributes attributes) {
    for (bool padding : {false, true}) {
      attributes.set("count_include_pad", padding);
      list.push_back({padding ? name + "_with_pads" : name, {x}, attributes});
    }
  };
  using enum DType;
  const Ints ones{1, 1, 1, 1}, two{2, 2}, three{3, 3};
  for (const char* layout : {"nchw", "nhwc"}) {
    const auto named = [&](const char* name) { return fmt::format("{}_{}", layout, name); };
    const auto dims = [&](Dims spatial, std::int64_t channels = 6) {
      return pool_case_dims(layout, std::move(spatial), channels);
    };
    for (DType t : {f32, bf16, f16})
      add(fmt::format("{}_{}", layout, name_of(t)), {{t, dims({13, 37}, 11)}, normal(1, 2)},
          {{"kernel", three}, {"strides", two}, {"pads", ones}, {"layout", layout}});
    add(named("one_axis"), {{f32, dims({41})}},
        {{"kernel", Ints{4}}, {"strides", Ints{3}}, {"pads", Ints{2, 1}}, {"layout", layout}});
    add(named("three_axes"), {{f32, dims({5, 6, 19})}},
        {{"kernel", Ints{2, 3, 3}}, {"strides", Ints{1, 2, 2}}, {"pads", Ints{1, 0, 1, 0, 1, 1}}, {"layout", layout}});
    add(named("dilated"), {{f32, dims({12, 33})}},
        {{"kernel", Ints{3, 2}},
         {"dilations", Ints{2, 5}},
         {"strides", Ints{1, 3}},
         {"pads", Ints{4, 5, 1, 3}},
         {"layout", layout}});
    // The last window of each axis reaches beyond the padding, whose elements alone are counted.
    add(named("ceil"), {{f32, dims({8, 23})}},
        {{"kernel", three},
         {"strides", Ints{2, 4}},
         {"pads", Ints{0, 1, 1, 1}},
         {"ceil_mode", true},
         {"layout", layout}});
    add(named("strided"), {{f32, dims({7, 9})}, normal(), 3}, {{"kernel", two}, {"layout", layout}});
    add(named("wide_steps"), {{f16, dims({9, 40})}}, {{"kernel", two}, {"strides", Ints{4, 5}}, {"layout", layout}});
    add(named("whole"), {{f32, dims({7, 7}, 33)}}, {{"layout", layout}});
    add(named("whole_strided"), {{bf16, dims({3, 7, 5}, 3)}, normal(), 2}, {{"layout", layout}});
    add(named("tall"), {{f32, dims({70, 3})}}, {{"kernel", Ints{67, 2}}, {"layout", layout}});
    add(named("nan"), {{f32, dims({5, 9})}, values({1, -2, NAN, 4, INFINITY, 3, 0.5, 1, 1, 1, 1, 1, 1})},
        {{"kernel", two}, {"pads", ones}, {"layout", layout}});
    add(named("nothing_inside"), {{f32, dims({1, 3})}},
        {{"kernel", Ints{2, 1}}, {"dilations", Ints{2, 1}}, {"pads", Ints{1, 0, 1, 0}}, {"layout", layout}});
    add(named("empty"), {{f32, dims({6, 6}, 0)}}, {{"kernel", two}, {"layout", layout}});
  }
  return list;
}

}  // namespace

OpSpec define() {
  std::vector<AttributeSpec> attributes = pool_attributes();
  attributes.push_back({"count_include_pad", false, "whether elements of the padding count, as zeros"});
  return {
      .category = "Convolution and pooling",
      .summary = "Mean of each window",
      .semantics =
          "The windows are those of max_pool. y is the sum of a window's elements that x has, in float32 and any "
          "order, divided by their number; with "
          "count_include_pad by that of its elements in x or its padding, but not beyond. 0 where there are none.",
      .inputs = {{"x", dtypes::real, "[N, C, ..]", "samples", Mapping::many_to_many}},
      .outputs = {{"y", dtypes::real, "[N, C, ..]", "means"}},
      .attributes = std::move(attributes),
      .infer = infer,
      .reference = reference,
      .operations =
          [](const Problem& p) {
            return (window_elements(p) + 1) * static_cast<double>(p.outputs[0].elements().value(p.maximum));
          },
      .rounding_depth = [](const Problem& p) { return window_elements(p) + 2; },
      .cases = cases,
  };
}

}  // namespace cermet::average_pool_op
