// What convolutions expect of their operands and attributes.
#include <algorithm>

#include "op/conv.hpp"

namespace cermet {
namespace {

/// An attribute with a number for each entry: none at all, or `count`.
const Ints& check_count(const Problem& p, std::string_view name, std::size_t count) {
  const Ints& list = p.attributes.integers(name);
  if (!list.empty() && list.size() != count) bad_attribute(p, name, fmt::format("{} entries, or none", count));
  return list;
}

/// The same with entries of at least `least`, and small enough that offsets do not overflow.
void check_list(const Problem& p, std::string_view name, std::size_t count, std::int64_t least) {
  const Ints& list = check_count(p, name, count);
  constexpr std::int64_t most = std::int64_t{1} << 24;
  if (std::ranges::any_of(list, [&](std::int64_t entry) { return entry < least || entry > most; }))
    bad_attribute(p, name, fmt::format("entries from {} to {}", least, most));
}

}  // namespace

ConvGeometry check_convolution(const Problem& p, int weight_inputs) {
  const int rank = p.input(0).rank();
  if (rank < 3 || rank > 5)
    bad_operand(p, 0, "3 to 5 dimensions: batch, channels and 1 to 3 spatial axes", p.input(0).to_string());
  expect_rank(p, 1, rank);
  expect_dtype(p, 1, p.input(0).dtype, "that of x");
  if (!p.input(1).is_constant()) bad_operand(p, 1, "constant dimensions", p.input(1).to_string());
  const Shape weight = bind(p.input(1).dims, {});
  for (int axis = 2; axis < rank; ++axis)
    if (weight[axis] < 1) bad_operand(p, 1, "at least one tap along each spatial axis", p.input(1).to_string());
  const auto axes = static_cast<std::size_t>(rank - 2);
  check_list(p, "strides", axes, 1);
  check_list(p, "dilations", axes, 1);
  check_list(p, "pads", 2 * axes, 0);
  if (p.attributes.find("output_padding")) check_count(p, "output_padding", axes);
  const ConvGeometry g = conv_geometry(p.attributes, weight);
  if (g.group < 1 || weight[0] % g.group != 0)
    bad_attribute(p, "group", fmt::format("a positive divisor of the weight's dimension 0, {}", weight[0]));
  expect_dim(p, 0, g.channels_last ? -1 : 1, weight[weight_inputs] * (weight_inputs == 1 ? g.group : 1),
             weight_inputs == 1 ? "group times dimension 1 of the weight" : "dimension 0 of the weight");
  return g;
}

}  // namespace cermet
