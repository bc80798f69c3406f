#include "op/activation.hpp"
#include "op/conv.hpp"
#include "op/schema/operator.hpp"

namespace cermet::conv_op {
namespace {

using enum DType;

struct CaseList {
  std::vector<Case> list;

  /// x, weight, bias and residual as the flags say; the residual's dimensions are those that inference finds.
  void add(std::string name, DType t, Dims x, Dims weight, const Attributes& attributes = {}, bool bias = true,
           bool residual = false, Fill fill = normal(), std::int64_t padding = 0, bool constant = true) {
    Case c{std::move(name),
           {CaseOperand{{t, x}, std::move(fill), padding}, CaseOperand{{t, weight}, normal(0.4), padding, constant}},
           attributes};
    if (bias || residual) c.inputs.push_back(bias ? std::optional(CaseOperand{{t, {weight[0]}}}) : std::nullopt);
    if (residual) {
      const Problem p = make_problem(definition(OpKind::conv),
                                     {TensorType{t, std::move(x)}, TensorType{t, std::move(weight)}}, attributes);
      c.inputs.push_back(CaseOperand{p.outputs[0], normal(), padding});
    }
    list.push_back(std::move(c));
  }

  /// The same in both layouts; x is given as [N, C, spatial..].
  void both(const std::string& name, DType t, const Dims& x, const Dims& weight, const Attributes& attributes = {},
            bool bias = true, bool residual = false, std::int64_t padding = 0) {
    add(name, t, x, weight, attributes, bias, residual, normal(), padding);
    Dims last = x;
    last.erase(last.begin() + 1);
    last.push_back(x[1]);
    Attributes other = attributes;
    other.set("layout", "nhwc");
    add(name + "_nhwc", t, last, weight, other, bias, residual, normal(), padding);
  }
};

void add_shapes(CaseList& c) {
  for (const DType t : {f32, f16, bf16}) {
    const std::string type(name_of(t));
    c.both(type, t, {2, 5, 7, 9}, {6, 5, 3, 3}, {{"pads", Ints{1, 1, 1, 1}}});
    c.both(type + "_1x1", t, {2, 33, 5, 7}, {35, 33, 1, 1}, {}, true, true);
    c.both(type + "_depthwise", t, {2, 35, 9, 11}, {35, 1, 3, 3},
           {{"group", 35}, {"pads", Ints{1, 1, 1, 1}}, {"activation", "relu"}});
    c.both(type + "_groups", t, {1, 12, 5, 6}, {8, 3, 3, 3}, {{"group", 4}});
  }
  c.both("first", f32, {1, 3, 23, 25}, {40, 3, 7, 7},
         {{"strides", Ints{2, 2}}, {"pads", Ints{3, 3, 3, 3}}, {"activation", "relu"}});
  c.both("strided_1x1", f32, {1, 19, 9, 8}, {37, 19, 1, 1}, {{"strides", Ints{2, 3}}});
  c.both("padded_1x1", f32, {1, 4, 3, 2}, {3, 4, 1, 1}, {{"pads", Ints{1, 0, 2, 1}}});
  c.both("stride_beyond_kernel", f32, {1, 3, 11, 13}, {5, 3, 2, 2}, {{"strides", Ints{4, 5}}});
  c.both("patches", f32, {1, 3, 16, 16}, {33, 3, 4, 4}, {{"strides", Ints{4, 4}}});
  c.both("dilated", f32, {1, 6, 12, 11}, {7, 6, 3, 2}, {{"dilations", Ints{2, 3}}, {"pads", Ints{2, 0, 2, 3}}});
  c.both("one_sided_pads", f32, {1, 4, 6, 7}, {5, 4, 3, 3}, {{"strides", Ints{2, 2}}, {"pads", Ints{0, 0, 1, 1}}});
  c.both("only_padding", f32, {1, 2, 2, 2}, {3, 2, 3, 3}, {{"pads", Ints{4, 4, 4, 4}}, {"strides", Ints{3, 3}}});
  c.both("wide_kernel", f32, {1, 3, 4, 30}, {4, 3, 1, 9}, {{"pads", Ints{0, 4, 0, 4}}});
  c.both("many_channels", f32, {1, 130, 6, 5}, {70, 130, 3, 3}, {{"pads", Ints{1, 1, 1, 1}}}, true, true);
  c.both("many_tiles", f32, {2, 16, 19, 17}, {48, 16, 3, 3}, {{"pads", Ints{1, 1, 1, 1}}});
  c.both("tiles_of_four", f32, {1, 48, 17, 19}, {45, 48, 3, 3}, {{"pads", Ints{1, 1, 1, 1}}, {"activation", "relu"}},
         true, true);
  c.both("tiles_of_four_cut", f32, {4, 32, 8, 9}, {40, 32, 3, 3}, {{"pads", Ints{0, 2, 1, 0}}}, false);
  c.both("tiles_of_four_strided", f32, {1, 32, 13, 16}, {64, 32, 3, 3}, {{"pads", Ints{1, 1, 1, 1}}}, true, true, 3);
  c.both("long_reduction", f32, {1, 300, 3, 3}, {33, 300, 3, 3}, {}, false);
  c.both("no_bias", f32, {1, 3, 5, 5}, {4, 3, 2, 2}, {}, false);
  c.both("residual_alone", f32, {2, 3, 5, 5}, {4, 3, 2, 2}, {{"activation", "relu"}}, false, true);
  c.both("one", f32, {1, 1, 1, 1}, {1, 1, 1, 1});
  c.both("batch", f32, {5, 8, 4, 4}, {9, 8, 3, 3}, {{"pads", Ints{1, 1, 1, 1}}}, true, true);
  c.both("strided_rows", f32, {2, 5, 7, 9}, {6, 5, 3, 3}, {{"pads", Ints{1, 1, 1, 1}}}, true, true, 3);
  c.both("empty_batch", f32, {0, 3, 5, 5}, {4, 3, 3, 3});
  c.both("no_outputs", f32, {2, 3, 5, 5}, {0, 3, 3, 3});
  c.both("no_inputs", f32, {2, 0, 4, 4}, {3, 0, 3, 3});
}

void add_axes(CaseList& c) {
  c.both("line", f32, {2, 6, 31}, {9, 6, 5}, {{"pads", Ints{2, 3}}, {"strides", Ints{2}}});
  c.both("line_depthwise", f32, {1, 20, 29}, {20, 1, 4}, {{"group", 20}, {"pads", Ints{3, 0}}, {"activation", "silu"}});
  c.both("line_1", f16, {2, 17, 13}, {34, 17, 1});
  c.both("volume", f32, {1, 4, 5, 6, 7}, {5, 4, 3, 2, 3},
         {{"pads", Ints{1, 0, 1, 1, 1, 1}}, {"strides", Ints{2, 1, 2}}});
  c.both("volume_groups", f32, {2, 6, 4, 4, 4}, {9, 2, 2, 2, 2}, {{"group", 3}, {"dilations", Ints{1, 2, 1}}}, true,
         true);
  c.both("volume_depthwise", bf16, {1, 18, 4, 5, 6}, {18, 1, 3, 3, 3},
         {{"group", 18}, {"pads", Ints{1, 1, 1, 1, 1, 1}}});
}

void add_groups(CaseList& c) {
  const Attributes same{{"pads", Ints{2, 2, 2, 2}}, {"group", 40}};
  c.both("depthwise_5x5", f32, {1, 40, 9, 14}, {40, 1, 5, 5}, same, true, true);
  c.both("depthwise_7x7", f32, {1, 33, 8, 15}, {33, 1, 7, 7}, {{"pads", Ints{3, 3, 3, 3}}, {"group", 33}});
  c.both("depthwise_strided", f32, {2, 24, 11, 13}, {24, 1, 3, 3},
         {{"pads", Ints{0, 0, 1, 1}}, {"group", 24}, {"strides", Ints{2, 2}}});
  c.both("depthwise_dilated", f32, {1, 17, 12, 13}, {17, 1, 3, 3},
         {{"pads", Ints{2, 2, 2, 2}}, {"group", 17}, {"dilations", Ints{2, 2}}}, false);
  c.both("depthwise_narrow", f32, {1, 5, 2, 2}, {5, 1, 3, 3}, {{"pads", Ints{1, 1, 1, 1}}, {"group", 5}});
  c.both("channel_multiplier", f32, {1, 6, 7, 8}, {18, 1, 3, 3}, {{"pads", Ints{1, 1, 1, 1}}, {"group", 6}});
  c.both("group_per_output", f32, {1, 12, 7, 8}, {4, 3, 3, 3}, {{"group", 4}});
  for (const DType t : {f16, bf16}) {
    const std::string type(name_of(t));
    c.both(type + "_vectors", t, {2, 24, 9, 7}, {40, 24, 3, 3}, {{"pads", Ints{1, 1, 1, 1}}, {"strides", Ints{2, 1}}},
           true, true);
    c.both(type + "_vectors_groups", t, {1, 32, 6, 5}, {48, 16, 3, 2},
           {{"group", 2}, {"dilations", Ints{1, 2}}, {"pads", Ints{1, 2, 0, 0}}}, true, true);
    c.both(type + "_vectors_1x1", t, {2, 40, 5, 7}, {48, 40, 1, 1}, {{"activation", "relu"}}, true, true);
    c.both(type + "_blocks", t, {3, 64, 9, 7}, {72, 64, 3, 3}, {{"pads", Ints{1, 1, 1, 1}}, {"activation", "relu"}},
           true, true);
    c.both(type + "_blocks_strided", t, {2, 128, 9, 11}, {40, 128, 3, 3},
           {{"pads", Ints{0, 1, 2, 1}}, {"strides", Ints{2, 2}}}, true, false);
    c.both(type + "_blocks_strided_1x1", t, {2, 64, 12, 11}, {24, 64, 1, 1}, {{"strides", Ints{2, 3}}}, false, false);
    c.both(type + "_blocks_dilated", t, {2, 64, 13, 12}, {136, 64, 3, 2},
           {{"dilations", Ints{2, 3}}, {"pads", Ints{2, 0, 1, 3}}}, true, false);
    c.both(type + "_vectors_depthwise", t, {2, 40, 7, 11}, {40, 1, 5, 5}, {{"group", 40}, {"pads", Ints{2, 2, 2, 2}}},
           true, true);
  }
  c.both("wide_groups", f32, {1, 70, 6, 5}, {80, 35, 3, 3}, {{"pads", Ints{1, 1, 1, 1}}, {"group", 2}}, true, true);
}

/// First layers: windows whose rows are runs of few channels, of which some begin at odd elements.
void add_few_channels(CaseList& c) {
  const Attributes ones{{"pads", Ints{1, 1, 1, 1}}};
  for (const DType t : {f16, bf16}) {
    const std::string type(name_of(t));
    c.both(type + "_first", t, {2, 3, 37, 40}, {40, 3, 7, 7},
           {{"strides", Ints{2, 2}}, {"pads", Ints{3, 3, 3, 3}}, {"activation", "relu"}}, true, true);
    c.both(type + "_first_unaligned", t, {2, 3, 35, 71}, {64, 3, 7, 7},
           {{"strides", Ints{2, 2}}, {"pads", Ints{3, 3, 3, 3}}}, true, false);
    c.both(type + "_first_odd_steps", t, {1, 3, 19, 35}, {136, 3, 3, 3}, ones, true, true);
    c.both(type + "_first_strided_rows", t, {2, 5, 17, 18}, {16, 5, 3, 3}, ones, false, true, 3);
    c.both(type + "_one_channel", t, {2, 1, 20, 24}, {32, 1, 5, 5}, {{"pads", Ints{0, 2, 3, 1}}});
    c.both(type + "_latents", t, {2, 4, 33, 16}, {72, 4, 3, 3}, ones, true, false);
    c.both(type + "_first_patches", t, {1, 3, 32, 36}, {96, 3, 4, 4}, {{"strides", Ints{4, 4}}}, true, false);
    c.both(type + "_twelve_channels", t, {1, 12, 9, 10}, {24, 12, 2, 5},
           {{"strides", Ints{1, 3}}, {"pads", Ints{0, 2, 1, 2}}}, false, false);
  }
  std::vector<double> some(6 * 20 * 3, 0.5);
  some[100] = INFINITY, some[200] = NAN;
  c.add("non_finite_first", f16, {1, 6, 20, 3}, {16, 3, 3, 3},
        {{"layout", "nhwc"}, {"pads", Ints{1, 1, 1, 1}}, {"strides", Ints{1, 2}}}, true, false, values(some));
}

}  // namespace

std::vector<Case> conv_cases() {
  CaseList c;
  add_shapes(c);
  add_axes(c);
  add_groups(c);
  add_few_channels(c);
  for (const std::string_view activation : activation_names())
    c.both(std::string(activation), f32, {1, 4, 6, 5}, {33, 4, 3, 3},
           {{"pads", Ints{1, 1, 1, 1}}, {"activation", std::string(activation)}}, true, true);
  c.add("not_constant", f32, {1, 5, 7, 6}, {9, 5, 3, 3}, {{"pads", Ints{1, 1, 1, 1}}}, true, false, normal(), 0, false);
  c.add("not_constant_nhwc", bf16, {1, 7, 6, 5}, {9, 5, 3, 3}, {{"layout", "nhwc"}}, true, true, normal(), 0, false);
  c.add("not_constant_depthwise", f32, {1, 7, 6, 18}, {18, 1, 3, 3}, {{"layout", "nhwc"}, {"group", 18}}, true, false,
        normal(), 0, false);
  c.add("non_finite", f32, {1, 1, 2, 6}, {3, 1, 1, 2}, {}, true, false,
        values({1, 2, NAN, 4, 5, 6, 7, 8, 9, INFINITY, 2, 3}));
  c.add("non_finite_nhwc", f32, {1, 2, 6, 1}, {3, 1, 1, 2}, {{"layout", "nhwc"}}, true, false,
        values({1, 2, NAN, 4, 5, 6, 7, 8, 9, INFINITY, 2, 3}));
  return c.list;
}

}  // namespace cermet::conv_op
