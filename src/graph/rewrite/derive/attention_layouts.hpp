// The orders in which an operand of attention may keep its axes.
#pragma once

#include <array>
#include <string_view>

#include "graph/rewrite/derive/arrange.hpp"

namespace cermet {

/// Dimensions of an operand of rank 4, with the name of their order.
struct Layout {
  std::string_view name;
  std::vector<AxisList> dims;
};

inline std::array<Layout, 3> layouts(const AxisList& sequences, const AxisList& heads, const AxisList& tokens,
                                     const AxisList& elements) {
  return {{{"bshd", {sequences, tokens, heads, elements}},
           {"bhsd", {sequences, heads, tokens, elements}},
           {"bhds", {sequences, heads, elements, tokens}}}};
}

/// The first of so many layouts that needs no copy; nothing where all do.
inline std::optional<Layout> layout_without_copy(const Axes& axes, const IndexedValue& value,
                                                 const std::array<Layout, 3>& all, std::size_t among = 3) {
  for (std::size_t i = 0; i < among; ++i)
    if (!is_copied(axes, value, all[i].dims)) return all[i];
  return std::nullopt;
}

inline AxisList joined_axes(std::initializer_list<const AxisList*> lists) {
  AxisList all;
  for (const AxisList* list : lists) all.insert(all.end(), list->begin(), list->end());
  return all;
}

}  // namespace cermet
