// Elements around a tensor.
#include <algorithm>
#include <numeric>

#include "onnx/lowering.hpp"

namespace cermet::onnx {
namespace {

/// Pads up to 2^40 either way, so that no sum of them overflows.
void check_pads(Lowering& l, const Ints& pads) {
  constexpr std::int64_t most = std::int64_t{1} << 40;
  for (const std::int64_t p : pads)
    l.expect(p >= -most && p <= most, "pads: expected numbers up to {}, found {}", most, p);
}

/// The operator's attribute is a double, which holds integers up to 2^53.
bool fits_double(Lowering& l, Operand value) {
  if (l.dtype(value) != DType::i64 && l.dtype(value) != DType::u64) return true;
  const std::int64_t whole = l.integer_in(value), most = std::int64_t{1} << 53;
  return whole >= -most && whole <= most;
}

/// x with tensors of the value before and after it along each axis.
Operand joined(Lowering& l, Operand x, Operand value, const Ints& pads) {
  for (int a = 0; a < l.rank(x); ++a) {
    const auto at = static_cast<std::size_t>(a);
    const auto filled = [&](std::int64_t size) {
      Dims dims = l.dims(x);
      dims[at] = size;
      return l.expand(value, dims);
    };
    const std::int64_t before = pads[at], after = pads[at + static_cast<std::size_t>(l.rank(x))];
    std::vector<Operand> pieces;
    if (before > 0) pieces.push_back(filled(before));
    pieces.push_back(x);
    if (after > 0) pieces.push_back(filled(after));
    x = l.concat(std::move(pieces), a);
  }
  return x;
}

}  // namespace

void lower_pad(Lowering& l) {
  Operand x = l.in(0);
  const int rank = l.rank(x);
  const bool old = l.version() < 11;
  const Ints given = old ? l.integers(l.version() < 2 ? "paddings" : "pads") : l.ints_in(l.in(1));
  Ints axes(static_cast<std::size_t>(rank));
  std::iota(axes.begin(), axes.end(), 0);
  if (!old && l.has(3)) axes = l.ints_in(l.in(3));
  l.expect(given.size() == 2 * axes.size(), "pads: expected {} entries, two for each axis, found {}", 2 * axes.size(),
           given.size());
  Ints pads(2 * static_cast<std::size_t>(rank));
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const auto a = static_cast<std::size_t>(l.axis(axes[i], rank));
    pads[a] = given[i];
    pads[a + static_cast<std::size_t>(rank)] = given[i + axes.size()];
  }
  check_pads(l, pads);
  const std::string mode = l.text("mode", "constant");
  const double value = old ? l.number("value", 0) : l.has(2) ? l.number_in(l.in(2)) : 0;
  if (mode == "wrap") {
    for (int a = 0; a < rank; ++a) {
      const std::int64_t before = pads[static_cast<std::size_t>(a)], after = pads[static_cast<std::size_t>(a + rank)],
                         size = l.size(x, a);
      if (before == 0 && after == 0) continue;
      l.expect(size > 0, "pads: expected elements to repeat along axis {}, found none", a);
      Ints positions(l.listed(std::max<std::int64_t>(before + size + after, 0)));
      for (std::size_t i = 0; i < positions.size(); ++i)
        positions[i] = (((static_cast<std::int64_t>(i) - before) % size) + size) % size;
      x = l.op(OpKind::gather, {x, l.ints(positions)}, {{"axis", std::int64_t{a}}});
    }
    return l.set(0, x);
  }
  // A negative pad takes elements away.
  for (int a = 0; a < rank; ++a) {
    std::int64_t &before = pads[static_cast<std::size_t>(a)], &after = pads[static_cast<std::size_t>(a + rank)];
    if (before >= 0 && after >= 0) continue;
    const std::int64_t start = std::max<std::int64_t>(-before, 0),
                       end = l.size(x, a) - std::max<std::int64_t>(-after, 0);
    x = l.slice(x, a, start, end);
    before = std::max<std::int64_t>(before, 0);
    after = std::max<std::int64_t>(after, 0);
  }
  if (std::ranges::all_of(pads, [](std::int64_t p) { return p == 0; })) return l.set(0, x);
  if (mode == "constant" && !old && l.has(2) && !fits_double(l, l.in(2)))
    return l.set(0, joined(l, x, l.cast(l.reshape(l.in(2), {}), l.dtype(x)), pads));
  l.set(0, l.op(OpKind::pad, {x}, {{"pads", pads}, {"mode", mode}, {"value", value}}));
}

}  // namespace cermet::onnx
