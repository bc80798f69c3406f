#include "op/grid_sample.hpp"

#include "op/pool_window.hpp"
#include "op/schema/infer.hpp"
#include "op/schema/reference.hpp"

namespace cermet::grid_sample_op {
namespace {

std::vector<TensorType> infer(const Problem& p) {
  const int rank = p.input(0).rank();
  if (rank < 4 || rank > 5) bad_operand(p, 0, "samples, channels and 2 or 3 spatial axes", p.input(0).to_string());
  expect_rank(p, 1, rank);
  expect_dim(p, 1, 0, dim_of(p, 0, 0), "samples of x");
  expect_dim(p, 1, -1, rank - 2, "spatial axes of x");
  if (rank == 5 && p.attributes.text("mode") == "cubic")
    bad_attribute(p, "mode", "linear or nearest with 3 spatial axes");
  for (int a = 2; a < rank; ++a)
    if (dim_of(p, 0, a) == Dim(0))
      bad_operand(p, 0, fmt::format("dimension {} of at least 1", a), p.input(0).to_string());
  Dims dims{dim_of(p, 0, 0), dim_of(p, 0, 1)};
  for (int a = 1; a + 1 < rank; ++a) dims.push_back(dim_of(p, 1, a));
  return {{p.input(0).dtype, std::move(dims)}};
}

void reference(const ReferenceCall& call) {
  const TensorView &x = call.inputs[0], &points = call.inputs[1], &y = call.outputs[0];
  const grid::Rule rule = grid_rule(call.attributes);
  const SpatialView from = spatial_view(TensorView(nullptr, x.dtype, x.shape), false),
                    to = spatial_view(TensorView(nullptr, y.dtype, y.shape), false);
  const int axes = x.shape.rank() - 2;
  for (std::int64_t i = 0; i < y.elements(); ++i) {
    const std::int64_t n = i / to.positions() / to.channels, c = i / to.positions() % to.channels,
                       position = i % to.positions();
    grid::Taps taps[3] = {{1, {0}, {1}}, {1, {0}, {1}}, {1, {0}, {1}}};
    for (int a = 0; a < axes; ++a)  // x, then y, then z
      taps[2 - a] = grid::taps_at(rule, load(points, (n * to.positions() + position) * axes + a),
                                  static_cast<int>(from.size[static_cast<std::size_t>(2 - a)]));
    double sum = 0, magnitude = 0;
    for (int d = 0; d < taps[0].count; ++d)
      for (int h = 0; h < taps[1].count; ++h)
        for (int w = 0; w < taps[2].count; ++w) {
          const std::int64_t at[3] = {taps[0].place[d], taps[1].place[h], taps[2].place[w]};
          if (at[0] < 0 || at[1] < 0 || at[2] < 0) continue;
          const double term = load(x, from.offset(n, c, {at[0], at[1], at[2]})) * taps[0].weight[d] *
                              taps[1].weight[h] * taps[2].weight[w];
          sum += term;
          magnitude += std::abs(term);
        }
    store(y, i, sum);
    note_magnitude(call, 0, i, magnitude);
  }
}

std::vector<Case> cases() {
  std::vector<Case> list;
  using enum DType;
  for (const char* mode : {"linear", "nearest", "cubic"})
    for (const char* padding : {"zeros", "border", "reflection"})
      for (bool align : {false, true}) {
        const Attributes attributes{{"mode", mode}, {"padding_mode", padding}, {"align_corners", align}};
        const std::string name = fmt::format("{}_{}{}", mode, padding, align ? "_corners" : "");
        list.push_back({name,
                        {CaseOperand{{f32, {2, 3, 5, 7}}}, CaseOperand{{f32, {2, 4, 9, 2}}, uniform(-1.5, 1.5)}},
                        attributes});
        list.push_back(
            {name + "_far",
             {CaseOperand{{bf16, {1, 2, 4, 3}}, normal(), 2}, CaseOperand{{f32, {1, 3, 5, 2}}, uniform(-7, 7), 3}},
             attributes});
        list.push_back({name + "_one_pixel",
                        {CaseOperand{{f32, {1, 2, 1, 1}}}, CaseOperand{{f32, {1, 3, 5, 2}}, uniform(-2, 2)}},
                        attributes});
        list.push_back(
            {name + "_edges",
             {CaseOperand{{f32, {1, 1, 4, 4}}},
              CaseOperand{{f32, {1, 3, 5, 2}}, values({-1, 1, 0, 0.5, -0.5, 0.25, 1e30, -1e30, NAN, -0.75, INFINITY})}},
             attributes});
        if (mode != std::string("cubic"))
          list.push_back(
              {name + "_volume",
               {CaseOperand{{f16, {2, 2, 3, 4, 5}}}, CaseOperand{{f32, {2, 2, 3, 4, 3}}, uniform(-1.3, 1.3)}},
               attributes});
      }
  for (DType t : {bf16, f16})
    list.push_back({fmt::format("grid_{}", name_of(t)),
                    {CaseOperand{{t, {1, 3, 5, 7}}}, CaseOperand{{t, {1, 6, 8, 2}}, uniform(-1, 1)}}});
  list.push_back({"empty", {CaseOperand{{f32, {2, 0, 5, 7}}}, CaseOperand{{f32, {2, 4, 9, 2}}}}});
  return list;
}

}  // namespace

OpSpec define() {
  return {
      .category = "Images",
      .summary = "Samples of images at given points",
      .semantics =
          "y[n, c, ..] is x[n, c] at the point grid[n, ..], whose last axis holds its coordinates along the spatial "
          "axes of x, last axis first. -1 and 1 are "
          "the "
          "centres of an axis's first and last element with align_corners, else their outer edges. Coordinates are "
          "float64; nearest rounds half to even. A "
          "coordinate outside of x is moved to the nearest centre (border) or mirrored at the edges, the centres with "
          "align_corners, until it is inside "
          "(reflection); elements around it that are still outside are found in the same way, or are zeros (zeros). "
          "linear and cubic (Keys' with a = -0.75) "
          "add "
          "weighted elements in float32. A coordinate beyond 1e9 counts as 1e9, NaN as -1e9.",
      .inputs = {{"x", dtypes::real, "[N, C, ..]", "images, 2 or 3 spatial axes", Mapping::barrier},
                 {"grid", dtypes::real, "[N, .., axes]", "points", Mapping::one_to_many}},
      .outputs = {{"y", dtypes::real, "[N, C, ..]", "samples"}},
      .attributes = {{"mode",
                      std::string("linear"),
                      "how elements are made; cubic with 2 spatial axes",
                      {"linear", "nearest", "cubic"}},
                     {"padding_mode", std::string("zeros"), "what is outside of x", {"zeros", "border", "reflection"}},
                     {"align_corners", false, "whether -1 and 1 are centres of elements"}},
      .infer = infer,
      .reference = reference,
      .operations =
          [](const Problem& p) { return 16.0 * static_cast<double>(p.outputs[0].elements().value(p.maximum)); },
      .rounding_depth =
          [](const Problem& p) {
            return p.attributes.text("mode") == "nearest" ? 0.0 : p.attributes.text("mode") == "linear" ? 12.0 : 24.0;
          },
      .cases = cases,
  };
}

}  // namespace cermet::grid_sample_op

namespace cermet {

grid::Rule grid_rule(const Attributes& attributes) {
  const std::string &mode = attributes.text("mode"), &padding = attributes.text("padding_mode");
  return {mode == "linear"  ? grid::Mode::linear
          : mode == "cubic" ? grid::Mode::cubic
                            : grid::Mode::nearest,
          padding == "zeros"    ? grid::Padding::zeros
          : padding == "border" ? grid::Padding::border
                                : grid::Padding::reflection,
          attributes.flag("align_corners")};
}

}  // namespace cermet
