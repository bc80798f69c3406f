#include "kernel/region_part.hpp"

#include <algorithm>

namespace cermet {
namespace {

RegionPart::Operand operand_of(const RegionInput& input) {
  if (input.from == RegionInput::From::nowhere) return {};
  const auto index = static_cast<std::size_t>(input.index);
  return input.is_inside() ? RegionPart::Operand{{}, index} : RegionPart::Operand{index};
}

/// What nodes from `last` on read of nodes [first, last), and what of it leaves the whole region.
std::vector<RegionPlace> results_of(const Region& whole, std::size_t first, std::size_t last) {
  std::vector<RegionPlace> results;
  const auto add = [&](const RegionPlace& place) {
    const auto node = static_cast<std::size_t>(place.node);
    if (node >= first && node < last && std::ranges::find(results, place) == results.end()) results.push_back(place);
  };
  for (std::size_t n = last; n < whole.nodes.size(); ++n)
    for (const RegionInput& input : whole.nodes[n].inputs)
      if (input.is_inside()) add({input.index, input.output});
  for (const RegionPlace& result : whole.results) add(result);
  for (RegionPlace& place : results) place.node -= static_cast<std::int32_t>(first);
  return results;
}

}  // namespace

RegionPart part_of(const Region& whole, std::size_t first, std::size_t last, std::size_t anchor) {
  RegionPart part;
  std::vector<RegionInput> read;  // by operand of the part, as the whole has it
  if (last - first == 1) {        // in the schema's order
    part.region = Region(whole.nodes[first].problem);
    for (const RegionInput& input : whole.nodes[first].inputs) part.operands.push_back(operand_of(input));
    return part;
  }
  part.region.anchor = static_cast<std::int32_t>(anchor - first);
  for (std::size_t n = first; n < last; ++n) {
    part.region.nodes.push_back(whole.nodes[n]);
    std::vector<RegionInput>& inputs = part.region.nodes.back().inputs;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      RegionInput& input = inputs[i];
      if (input.from == RegionInput::From::nowhere) continue;
      if (input.is_inside() && static_cast<std::size_t>(input.index) >= first) {
        input.index -= static_cast<std::int32_t>(first);
        continue;
      }
      RegionInput key = input;
      key.rounding = Rounding::unset;
      const auto index = static_cast<std::size_t>(std::ranges::find(read, key) - read.begin());
      if (index == read.size()) {
        read.push_back(key);
        part.operands.push_back(operand_of(input));
        part.region.operands.push_back({static_cast<std::int32_t>(n - first), static_cast<std::int32_t>(i)});
      }
      input = RegionInput::outside(index);
    }
  }
  part.region.results = results_of(whole, first, last);
  return part;
}

}  // namespace cermet
