#include "op/pool_window.hpp"
#include "op/schema/infer.hpp"
#include "op/schema/reference.hpp"

namespace cermet::lp_pool_op {
namespace {

std::vector<TensorType> infer(const Problem& p) {
  if (p.attributes.integer("p") < 1 || p.attributes.integer("p") > 64) bad_attribute(p, "p", "a number in [1, 64]");
  return {{p.input(0).dtype, pooled_dims(p)}};
}

void reference(const ReferenceCall& call) {
  const TensorView& view = call.inputs[0];
  const PoolWindow all = pool_window(call.attributes, view.shape.rank());
  const auto power = static_cast<double>(call.attributes.integer("p"));
  const SpatialView x = dense_spatial_view(view, all.channels_last),
                    y = dense_spatial_view(call.outputs[0], all.channels_last);
  const PoolWindow window = all.over(x.size);
  for (std::int64_t i = 0; i < y.batch * y.channels * y.positions(); ++i) {
    const std::int64_t n = i / y.positions() / y.channels, c = i / y.positions() % y.channels;
    const Spatial at = position_of(y.size, i % y.positions());
    double sum = 0;
    for_window(window, x.size, at,
               [&](const Spatial& from) { sum += std::pow(std::abs(load(view, x.offset(n, c, from))), power); });
    store(call.outputs[0], y.offset(n, c, at), std::pow(sum, 1 / power));
  }
}

std::vector<Case> cases() {
  std::vector<Case> list;
  using enum DType;
  const Ints ones{1, 1, 1, 1}, two{2, 2}, three{3, 3};
  for (const char* layout : {"nchw", "nhwc"}) {
    const auto add = [&](const std::string& name, const CaseOperand& x, Attributes attributes) {
      attributes.set("layout", layout);
      list.push_back({fmt::format("{}_{}", layout, name), {x}, std::move(attributes)});
    };
    const auto dims = [&](Dims spatial, std::int64_t channels = 6) {
      return pool_case_dims(layout, std::move(spatial), channels);
    };
    for (DType t : {f32, bf16, f16})
      for (std::int64_t power : {1, 2, 3})
        add(fmt::format("{}_p{}", name_of(t), power), {{t, dims({13, 21}, 11)}, normal(1, 2)},
            {{"kernel", three}, {"strides", two}, {"pads", ones}, {"p", power}});
    add("one_axis", {{f32, dims({41})}}, {{"kernel", Ints{4}}, {"strides", Ints{3}}, {"pads", Ints{2, 1}}});
    add("three_axes", {{f32, dims({5, 6, 9})}},
        {{"kernel", Ints{2, 3, 3}}, {"strides", Ints{1, 2, 2}}, {"pads", Ints{1, 0, 1, 0, 1, 1}}});
    add("dilated_ceil", {{f32, dims({12, 33})}},
        {{"kernel", Ints{3, 2}}, {"dilations", Ints{2, 5}}, {"strides", Ints{4, 3}}, {"ceil_mode", true}});
    add("whole", {{f32, dims({7, 7}, 33)}, normal(), 2}, {{"p", 4}});
    add("nan", {{f32, dims({5, 9})}, values({1, -2, NAN, 4, -INFINITY, 3, 0.5, 1, 1, 1, 1, 1, 1})}, {{"kernel", two}});
    add("empty", {{f32, dims({6, 6}, 0)}}, {{"kernel", two}});
  }
  return list;
}

}  // namespace

OpSpec define() {
  std::vector<AttributeSpec> attributes = pool_attributes();
  attributes.push_back({"p", 2, "the norm's exponent"});
  return {
      .category = "Convolution and pooling",
      .summary = "p-norm of each window",
      .semantics =
          "The windows are those of max_pool. y is (sum |x|^p)^(1/p) over a window's elements that x has, in float32; "
          "0 where there are none.",
      .inputs = {{"x", dtypes::real, "[N, C, ..]", "samples", Mapping::many_to_many}},
      .outputs = {{"y", dtypes::real, "[N, C, ..]", "norms"}},
      .attributes = std::move(attributes),
      .infer = infer,
      .reference = reference,
      .operations =
          [](const Problem& p) {
            return (window_elements(p) * 3 + 1) * static_cast<double>(p.outputs[0].elements().value(p.maximum));
          },
      // Roundings of the powers, of their sum and, p times less, of the root.
      .rounding_depth =
          [](const Problem& p) { return window_elements(p) + 4 * static_cast<double>(p.attributes.integer("p")) + 8; },
      .cases = cases,
  };
}

}  // namespace cermet::lp_pool_op
