// Tables of resize, and the mode that only moves elements.
#include "kernel/cpu/image/resize.hpp"

#include <cstring>

#include "format/element.hpp"
#include "kernel/cpu/by_size.hpp"

namespace cermet::cpu {
namespace {

std::int64_t entries(const resize::Axis& axis) { return (axis.out + resize_slack) * axis.taps; }

}  // namespace

std::int64_t ResizeRun::table_bytes(const ResizePlan& plan) {
  std::int64_t bytes = 0;
  for (std::size_t a = 0; a < static_cast<std::size_t>(plan.rank); ++a)
    if (plan.resized[a]) bytes += entries(plan.axes[a]) * 8 + round_up(plan.axes[a].out, std::int64_t{64});
  return bytes;
}

ResizeRun::ResizeRun(const LaunchArgs& args, const ResizeAttributes& attributes)
    : plan(attributes.plan(args.inputs[0].shape, args.outputs[0].shape)),
      x(args.inputs[0]),
      y(args.outputs[0]),
      row_memory(args.workspace),
      last(plan.rank - 1) {
  for (int a = 0; a < plan.rank; ++a) {
    const auto i = static_cast<std::size_t>(a);
    const resize::Axis& axis = plan.axes[i];
    require(axis.out == 0 || axis.in > 0, "resize: operand 0 (x): expected at least 1 element along axis {}, found {}",
            a, x.shape.to_string());
    if (a < last - 1) lines *= axis.out;
    if (!plan.resized[i]) continue;
    auto* place = reinterpret_cast<std::int32_t*>(row_memory);
    auto* weight = reinterpret_cast<float*>(row_memory + entries(axis) * 4);
    auto* outside = reinterpret_cast<std::uint8_t*>(row_memory + entries(axis) * 8);
    const std::int64_t pitch = axis.out + resize_slack;
    std::memset(row_memory, 0, static_cast<std::size_t>(entries(axis)) * 8);
    for (std::int64_t o = 0; o < axis.out; ++o)
      outside[o] = resize::sample(plan.rule, axis, o, place + o, weight + o, pitch);
    tables[i] = {place, weight, outside, pitch, axis.taps};
    row_memory += entries(axis) * 8 + round_up(axis.out, std::int64_t{64});
  }
}

bool ResizeRun::locate(std::int64_t line, Shape& at, std::int64_t& to) const {
  bool outside = false;
  to = 0;
  at = y.shape;
  for (int a = last - 2; a >= 0; --a) {
    at[a] = line % y.shape[a];
    line /= y.shape[a];
    to += at[a] * y.strides[a];
    outside = outside || (is_resized(a) && table(a).outside[at[a]]);
  }
  return outside;
}

std::int64_t ResizeRun::combinations() const {
  std::int64_t count = 1;
  for (int a = 0; a < last - 1; ++a) count *= table(a).taps;
  return count;
}

std::int64_t ResizeRun::from(const Shape& at, std::int64_t t, float& weight) const {
  std::int64_t offset = 0;
  weight = 1;
  for (int a = last - 2; a >= 0; --a) {
    if (!is_resized(a)) {
      offset += at[a] * x.strides[a];
      continue;
    }
    const std::int64_t entry = t % table(a).taps * table(a).pitch + at[a];
    t /= table(a).taps;
    offset += table(a).place[entry] * x.strides[a];
    weight *= table(a).weight[entry];
  }
  return offset;
}

std::int64_t resize_workspace(const Problem& p, int threads) {
  const Shape in = bind(p.input(0).dims, p.maximum), out = bind(p.outputs[0].dims, p.maximum);
  const std::int64_t row = (in.rank() > 0 ? in.back() + out.back() : 2) + 2 * resize_slack;
  return ResizeRun::table_bytes(ResizeAttributes(p.attributes, in.rank()).plan(in, out)) +
         threads * round_up(row * 4, std::int64_t{64});
}

namespace {

/// One row of y: elements of a row of x, by table.
template <class T>
void take(const ResizeTable& table, const T* from, T* to, std::int64_t length, std::int64_t factor, T extrapolation,
          bool crops) {
  if (factor == 2) {
    for (std::int64_t i = 0; i < length / 2; ++i) to[2 * i] = to[2 * i + 1] = from[i];
    return;
  }
  for (std::int64_t i = 0; i < length; ++i) to[i] = crops && table.outside[i] ? extrapolation : from[table.place[i]];
}

template <class T>
void take_rows(const LaunchArgs& args, const ResizeRun& run) {
  T extrapolation;
  std::memset(&extrapolation, 0, sizeof extrapolation);
  std::uint64_t bits = 0;
  format::store_element(&bits, run.y.dtype, 0, run.plan.extrapolation);
  std::memcpy(&extrapolation, &bits, sizeof extrapolation);
  const std::int64_t length = run.length(), rows = run.rows();
  const ResizeTable& table = run.table(run.last);
  const bool crops = run.plan.rule.coordinates == resize::Coordinates::tf_crop_and_resize,
             resized = run.is_resized(run.last);
  // Whether every element occurs this often, in order.
  std::int64_t factor = resized && !crops && run.x.shape[run.last] * 2 == length ? 2 : 0;
  for (std::int64_t i = 0; factor != 0 && i < length; ++i)
    if (table.place[i] != i / factor) factor = 0;
  args.pool->parallel_for(run.lines * rows, rows_per_thread(length * static_cast<std::int64_t>(sizeof(T))),
                          [&](std::int64_t begin, std::int64_t end) {
                            Shape at;
                            float weight;
                            for (std::int64_t r = begin; r < end;) {
                              const std::int64_t line = r / rows, first = r - line * rows,
                                                 last = std::min(rows, first + end - r);
                              std::int64_t to = 0, before = -1;
                              const bool outside = run.locate(line, at, to);
                              const T* x = run.x.as<const T>() + run.from(at, 0, weight);
                              T *y = run.y.as<T>() + to, *same = nullptr;
                              for (std::int64_t j = first; j < last; ++j) {
                                T* row = y + run.row_to(j);
                                if (outside || run.row_is_outside(j)) {
                                  std::fill_n(row, length, extrapolation);
                                  continue;
                                }
                                const std::int64_t from = run.row(j, 0, weight);
                                if (from == before && resized)
                                  std::memcpy(row, same, static_cast<std::size_t>(length) * sizeof(T));
                                else if (resized) take(table, x + from, row, length, factor, extrapolation, crops);
                                else std::memcpy(row, x + from, static_cast<std::size_t>(length) * sizeof(T));
                                before = from;
                                same = row;
                              }
                              r += last - first;
                            }
                          });
}

Decline weighted_declines(const Problem& p) {
  if (p.attributes.text("mode") == "nearest") return "mode nearest moves elements";
  return {};
}

}  // namespace

extern const Kernel resize_nearest;
const Kernel resize_nearest{
    .name = "resize.nearest",
    .op = OpKind::resize,
    .summary = "moves elements by tables; rows spread over threads",
    .declines = [](const Problem& p) -> Decline {
      if (p.attributes.text("mode") != "nearest") return "linear and cubic compute";
      return {};
    },
    .bind = [](const Problem& p) -> Launcher {
      return [attributes = ResizeAttributes(p.attributes, p.input(0).rank())](const LaunchArgs& args) {
        if (args.outputs[0].elements() == 0) return;
        const ResizeRun run(args, attributes);
        by_element_size(size_of(run.x.dtype), [&](auto zero) { take_rows<decltype(zero)>(args, run); });
      };
    },
    .workspace = resize_workspace};

extern const Kernel resize_blend;
const Kernel resize_blend{
    .name = "resize.blend",
    .op = OpKind::resize,
    .summary = "weighted sums of rows in vectors, then along the last axis by table; rows spread over threads",
    .declines = weighted_declines,
    .bind = [](const Problem& p) -> Launcher {
      return [attributes = ResizeAttributes(p.attributes, p.input(0).rank())](const LaunchArgs& args) {
        if (args.outputs[0].elements() > 0) resize_weighted(args, attributes);
      };
    },
    .workspace = resize_workspace};

}  // namespace cermet::cpu
