#include "op/pool_window.hpp"
#include "op/schema/infer.hpp"
#include "op/schema/reference.hpp"

namespace cermet::max_unpool_op {
namespace {

constexpr DTypeSet types = dtypes::real | DTypeSet{DType::i8, DType::u8};

std::vector<TensorType> infer(const Problem& p) {
  const int rank = p.input(0).rank();
  if (rank < 3 || rank > 5) bad_operand(p, 0, "samples, channels and 1 to 3 spatial axes", p.input(0).to_string());
  expect_dims(p, 1, p.input(0).dims, "those of x");
  const auto axes = static_cast<std::size_t>(rank - 2);
  for (const char* name : {"kernel", "strides"}) expect_entries(p, name, axes, 1);
  expect_entries(p, "pads", 2 * axes, 0);
  expect_entries(p, "sizes", axes, 0);
  TensorType y = p.input(0);
  const Unpooling unpooling = unpooling_of(p.attributes, rank);
  const Ints& sizes = p.attributes.integers("sizes");
  for (std::size_t a = 0; a < axes; ++a) {
    Dim& size = y.dims[a + 2];
    size = (size - 1) * unpooling.step[3 - axes + a] + unpooling.least[3 - axes + a];
    if (size.is_constant() && size.constant() < 0) bad_attribute(p, "pads", "fewer elements than the windows cover");
    if (sizes.empty()) continue;
    if (size.is_constant() && sizes[a] < size.constant())
      bad_attribute(p, "sizes",
                    fmt::format("at least the {} elements of axis {} that the windows cover", size.constant(), a));
    size = sizes[a];
  }
  return {std::move(y)};
}

void reference(const ReferenceCall& call) {
  const TensorView &x = call.inputs[0], &indices = call.inputs[1], &y = call.outputs[0];
  for (std::int64_t i = 0; i < y.elements(); ++i) store(y, i, 0);
  const SpatialView from = spatial_view(TensorView(nullptr, x.dtype, x.shape), false),
                    to = spatial_view(TensorView(nullptr, y.dtype, y.shape), false);
  const Spatial covered = unpooling_of(call.attributes, x.shape.rank()).covered(from.size);
  const std::int64_t plane = covered[0] * covered[1] * covered[2];
  for (std::int64_t i = 0; i < x.elements(); ++i) {
    const std::int64_t p = i / from.positions(), inside = load_integer(indices, i) - p * plane;
    require(inside >= 0 && inside < plane,
            "max_unpool: operand 1 (indices): expected an index in [{}, {}), that of its sample and channel, found {}",
            p * plane, (p + 1) * plane, inside + p * plane);
    copy_element(x, i, y, to.offset(p / from.channels, p % from.channels, position_of(covered, inside)));
  }
}

std::vector<Case> cases() {
  std::vector<Case> list;
  using enum DType;
  const Ints two{2, 2};
  list.push_back({"one_channel",
                  {CaseOperand{{f32, {1, 1, 2, 3}}}, CaseOperand{{i64, {1, 1, 2, 3}}, values({0, 3, 5, 18, 20, 17})}},
                  {{"kernel", two}, {"strides", two}}});
  for (DType t : {f32, bf16, f16, i8, u8})
    list.push_back({std::string(name_of(t)),
                    {CaseOperand{{t, {1, 2, 2, 3}}, is_integer(t) ? integers(1, 100) : normal()},
                     CaseOperand{{i64, {1, 2, 2, 3}}, values({0, 3, 5, 18, 20, 17, 31, 27, 34, 37, 44, 47})}},
                    {{"kernel", two}, {"strides", two}}});
  const Fill places = values({5, 7, 13, 15});
  list.push_back({"larger",
                  {CaseOperand{{f32, {1, 1, 2, 2}}}, CaseOperand{{i64, {1, 1, 2, 2}}, places}},
                  {{"kernel", two}, {"strides", two}, {"sizes", Ints{5, 7}}}});
  list.push_back(
      {"pads",
       {CaseOperand{{f32, {1, 1, 2, 2}}, normal(), 3}, CaseOperand{{i64, {1, 1, 2, 2}}, values({1, 3, 5, 2}), 1}},
       {{"kernel", Ints{2, 3}}, {"strides", two}, {"pads", Ints{1, 1, 0, 1}}}});
  list.push_back({"one_axis",
                  {CaseOperand{{f32, {1, 1, 4}}}, CaseOperand{{i64, {1, 1, 4}}, places}},
                  {{"kernel", Ints{4}}, {"strides", Ints{4}}}});
  list.push_back({"three_axes",
                  {CaseOperand{{f32, {1, 1, 1, 2, 2}}}, CaseOperand{{i64, {1, 1, 1, 2, 2}}, places}},
                  {{"kernel", Ints{3, 2, 2}}, {"strides", Ints{1, 2, 2}}}});
  list.push_back(
      {"permuted", {CaseOperand{{f32, {1, 1, 2, 2}}}, CaseOperand{{i64, {1, 1, 2, 2}}, values({2, 0, 3, 1})}}});
  list.push_back({"empty", {CaseOperand{{f32, {0, 3, 2, 2}}}, CaseOperand{{i64, {0, 3, 2, 2}}}}, {{"kernel", two}}});
  return list;
}

}  // namespace

OpSpec define() {
  return {
      .category = "Convolution and pooling",
      .summary = "Elements put back where max_pool found them",
      .semantics =
          "The windows cover (size - 1) * stride - pads_begin - pads_end + kernel elements of each spatial axis. "
          "indices are places in a dense [N, C, "
          "covered..], "
          "each within its sample and channel: y has the element of x there, and zeros elsewhere and beyond what is "
          "covered. Of elements with one index, y has "
          "any.",
      .inputs = {{"x", types, "[N, C, ..]", "elements", Mapping::barrier},
                 {"indices", {DType::i64}, "[N, C, ..]", "their places", Mapping::barrier}},
      .outputs = {{"y", types, "[N, C, ..]", "x spread out"}},
      .attributes = {{"kernel", Ints{}, "size of the window along each spatial axis; ones where empty"},
                     {"strides", Ints{}, "steps between windows; ones where empty"},
                     {"pads", Ints{}, "padding in front of each spatial axis, then behind each; none where empty"},
                     {"sizes", Ints{}, "spatial sizes of y, at least what is covered; that where empty"}},
      .infer = infer,
      .reference = reference,
      .cases = cases,
  };
}

}  // namespace cermet::max_unpool_op

namespace cermet {

Unpooling unpooling_of(const Attributes& attributes, int rank) {
  const auto axes = static_cast<std::size_t>(rank - 2);
  Unpooling unpooling;
  Spatial before{}, after{};
  set_spatial(unpooling.least, attributes.integers("kernel"), axes);
  set_spatial(unpooling.step, attributes.integers("strides"), axes);
  set_spatial(before, attributes.integers("pads"), axes);
  set_spatial(after, attributes.integers("pads"), axes, axes);
  for (std::size_t a = 0; a < 3; ++a) unpooling.least[a] -= before[a] + after[a];
  return unpooling;
}

}  // namespace cermet
