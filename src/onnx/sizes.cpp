#include "onnx/sizes.hpp"

#include <algorithm>

#include "op/schema/reference.hpp"

namespace cermet::onnx {
namespace {

constexpr std::int64_t beyond_any_axis = std::int64_t{1} << 40;

Dim within_reach(const Dim& bound) {
  return bound.is_constant() ? Dim(std::clamp(bound.constant(), -beyond_any_axis, beyond_any_axis)) : bound;
}

/// last - first in steps forward, in a form that grows with the size wherever there is one: a difference of two minima
/// does not look so.
Dim distance_forward(const SliceBound& start, const SliceBound& end, const Dim& size, const SymbolRanges& ranges) {
  const Dim between = end.at - start.at;
  if (!start.is_negative && !end.is_negative) return least_of(between, size - start.at, ranges);
  if (start.is_negative && end.is_negative) return least_of(between, size + end.at, ranges);
  if (!start.is_negative) return size + between;
  const Dim last = least_of(end.at, size, ranges);
  if (last == size) return least_of(start.at * -1, size, ranges);
  return last - greatest_of(size + start.at, 0, ranges);
}

/// The same backward, where positions end at -1.
Dim distance_backward(const SliceBound& start, const SliceBound& end, const Dim& size, const SymbolRanges& ranges) {
  const Dim between = start.at - end.at;
  if (!start.is_negative && !end.is_negative) return least_of(between, size - 1 - end.at, ranges);
  if (start.is_negative && end.is_negative) return least_of(between, size + start.at + 1, ranges);
  if (start.is_negative) return size + between;
  return least_of(start.at, size - 1, ranges) - greatest_of(size + end.at, -1, ranges);
}

}  // namespace

std::optional<bool> equals(const Dim& a, const Dim& b, const SymbolRanges& ranges) {
  if (a.is_constant() && b.is_constant()) return a.constant() == b.constant();
  const Dim difference = a - b;
  if (difference.is_constant()) return difference.constant() == 0;
  const DimRange range = difference.bounds(ranges);
  if (range.least > 0 || range.greatest < 0) return false;
  return {};
}

std::optional<bool> is_less(const Dim& a, const Dim& b, const SymbolRanges& ranges) {
  if (a.is_constant() && b.is_constant()) return a.constant() < b.constant();  // their difference may not fit
  const DimRange range = (b - a).bounds(ranges);
  if (range.least > 0) return true;
  if (range.greatest <= 0) return false;
  return {};
}

Dim least_of(const Dim& a, const Dim& b, const SymbolRanges& ranges) {
  if (is_less(b, a, ranges) == false) return a;
  return is_less(a, b, ranges) == false ? b : dim_min(a, b);
}

Dim greatest_of(const Dim& a, const Dim& b, const SymbolRanges& ranges) {
  if (is_less(a, b, ranges) == false) return a;
  return is_less(b, a, ranges) == false ? b : dim_max(a, b);
}

Progression sliced_positions(const SliceBound& given_start, const SliceBound& given_end, std::int64_t step,
                             const Dim& size, const SymbolRanges& ranges) {
  const SliceBound start{within_reach(given_start.at), given_start.is_negative},
      end{within_reach(given_end.at), given_end.is_negative};
  const Dim distance =
      step > 0 ? distance_forward(start, end, size, ranges) : distance_backward(start, end, size, ranges);
  const Dim count = greatest_of(ceil_div(distance, step > 0 ? step : -step), 0, ranges);
  // Where a first position is clamped to the far end, nothing is taken.
  if (step > 0 && !start.is_negative) return {start.at, count, step};
  if (step > 0 && distance == least_of(start.at * -1, size, ranges)) return {size - distance, count, step};
  return {start.is_negative ? greatest_of(size + start.at, step > 0 ? 0 : -1, ranges)
                            : least_of(start.at, size - 1, ranges),
          count, step};
}

/// A dimension that grows with the symbol, or falls: signs change at most twice, and halving finds where.
std::vector<SymbolRanges> cut_by_sign(const SymbolRanges& ranges, const Dim& dim) {
  const std::vector<Symbol> symbols = dim.symbols();
  if (symbols.size() != 1) return {};
  const bool falls = !dim.grows_with_symbols();
  const Dim rising = falls ? dim * -1 : dim;
  const DimRange whole = range_of(ranges, symbols[0]);
  if (!rising.grows_with_symbols() || whole.greatest > beyond_any_axis) return {};
  const auto first_from = [&](std::int64_t sign) {  // the least size whose value is `sign` or more
    std::int64_t low = whole.least, high = whole.greatest + 1;
    while (low < high) {
      const std::int64_t middle = low + (high - low) / 2;
      SymbolValues values;
      values.set(symbols[0], middle);
      if (rising.value(values) >= sign) high = middle;
      else low = middle + 1;
    }
    return low;
  };
  std::vector<SymbolRanges> parts;
  std::int64_t from = whole.least;
  for (const std::int64_t next : {first_from(0), first_from(1), whole.greatest + 1}) {
    if (next <= from) continue;
    SymbolRanges& part = parts.emplace_back(ranges);
    std::ranges::find(part, symbols[0], &SymbolRange::symbol)->range = {from, next - 1};
    from = next;
  }
  return parts;
}

OwnedTensor SizeTensor::value(const SymbolValues& sizes) const {
  OwnedTensor made(type.dtype, bind(type.dims, sizes));
  const std::int64_t first = elements.empty() ? counting.first.value(sizes) : 0;
  for (std::int64_t i = 0; i < made.view.elements(); ++i) {
    const std::int64_t number =
        elements.empty() ? first + i * counting.step : elements[static_cast<std::size_t>(i)].value(sizes);
    if (is_floating(type.dtype)) store(made.view, i, static_cast<double>(number));
    else store_integer(made.view, i, number);
  }
  return made;
}

}  // namespace cermet::onnx
