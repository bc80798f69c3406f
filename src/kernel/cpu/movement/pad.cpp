#include "op/pad.hpp"

#include <algorithm>
#include <cstring>

#include "format/element.hpp"
#include "kernel/cpu/by_size.hpp"
#include "kernel/kernel.hpp"
#include "op/slice_range.hpp"

namespace cermet::cpu {
namespace {

struct Pad {
  PadMode mode;
  Ints pads;
  std::uint64_t constant = 0;  ///< the constant in its first bytes
};

Pad make_pad(const Problem& p) {
  const std::string& mode = p.attributes.text("mode");
  Pad pad{mode == "constant"  ? PadMode::constant
          : mode == "reflect" ? PadMode::reflect
                              : PadMode::edge,
          p.attributes.integers("pads"), 0};
  format::store_element(&pad.constant, p.input(0).dtype, 0, p.attributes.number("value"));
  return pad;
}

/// Elements before x on each axis: dimensions that were symbolic are known only here.
PerAxis<std::int64_t> checked_before(const Pad& pad, const TensorView& x, const TensorView& y) {
  PerAxis<std::int64_t> all{};
  for (int a = 0; a < x.shape.rank(); ++a) {
    const auto [before, after] = pads_of(pad.pads, a, x.shape, y.shape);
    all[static_cast<std::size_t>(a)] = before;
    if (pad.mode == PadMode::constant || (before == 0 && after == 0)) continue;
    const std::int64_t needed = pad.mode == PadMode::edge ? 1 : std::max(before, after) + 1;
    if (x.shape[a] < needed)
      fail(Status::invalid_argument,
           "pad: operand 0 (x): expected dimension {} of at least {} for these pads, found {}", a, needed,
           x.shape.to_string());
  }
  return all;
}

/// The row of x behind row r of y; null where it is all constant.
template <class T>
const T* source_row(const Pad& pad, const PerAxis<std::int64_t>& pads, const TensorView& x, const TensorView& y,
                    std::int64_t r) {
  std::int64_t offset = 0;
  for (int a = y.shape.rank() - 2; a >= 0; --a) {
    const std::int64_t at = padded_source(pad.mode, r % y.shape[a], pads[static_cast<std::size_t>(a)], x.shape[a]);
    if (at < 0) return nullptr;
    offset += at * x.strides[a];
    r /= y.shape[a];
  }
  return x.as<const T>() + offset;
}

template <class T>
void pad_rows(const LaunchArgs& args, const Pad& pad, const PerAxis<std::int64_t>& pads) {
  const TensorView &x = args.inputs[0], &y = args.outputs[0];
  const int last = y.shape.rank() - 1;
  const Rows to(y, last < 0 ? 0 : 1);
  const std::int64_t length = last < 0 ? 1 : x.shape[last],
                     before = last < 0 ? 0 : pads[static_cast<std::size_t>(last)];
  T constant;
  std::memcpy(&constant, &pad.constant, sizeof constant);
  args.pool->parallel_for(to.count(), rows_per_thread(to.length() * static_cast<std::int64_t>(sizeof(T))),
                          [&](std::int64_t begin, std::int64_t end) {
                            for (std::int64_t r = begin; r < end; ++r) {
                              T* row = reinterpret_cast<T*>(to.row(r));
                              const T* from = source_row<T>(pad, pads, x, y, r);
                              if (!from) {
                                std::fill_n(row, to.length(), constant);
                                continue;
                              }
                              const auto outside = [&](std::int64_t i) {
                                const std::int64_t at = padded_source(pad.mode, i, before, length);
                                return at < 0 ? constant : from[at];
                              };
                              for (std::int64_t i = 0; i < before; ++i) row[i] = outside(i);
                              std::copy_n(from, length, row + before);
                              for (std::int64_t i = before + length; i < to.length(); ++i) row[i] = outside(i);
                            }
                          });
}

}  // namespace

extern const Kernel movement_pad{
    .name = "movement.pad",
    .op = OpKind::pad,
    .summary = "copies each row between its paddings; rows spread over threads",
    .bind = [](const Problem& p) -> Launcher {
      return [pad = make_pad(p)](const LaunchArgs& args) {
        const PerAxis<std::int64_t> before = checked_before(pad, args.inputs[0], args.outputs[0]);
        if (args.outputs[0].elements() > 0)
          by_element_size(size_of(args.inputs[0].dtype),
                          [&](auto zero) { pad_rows<decltype(zero)>(args, pad, before); });
      };
    },
};

}  // namespace cermet::cpu
