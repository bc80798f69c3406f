// Tensors that follow from sizes: iota and size_of.
#include <cstdint>

#include "kernel/cpu/by_size.hpp"
#include "kernel/cpu/scalar.hpp"
#include "kernel/kernel.hpp"
#include "op/schema/axes.hpp"
#include "op/schema/reference.hpp"

namespace cermet::cpu {
namespace {

struct Iota {
  int axis;
  double step;
};

void store_position(std::int32_t& to, const TensorView& start, double step, std::int64_t at) {
  to = static_cast<std::int32_t>(static_cast<std::uint64_t>(load_integer(start, 0)) +
                                 static_cast<std::uint64_t>(static_cast<std::int64_t>(step) * at));
}
void store_position(std::int64_t& to, const TensorView& start, double step, std::int64_t at) {
  to = static_cast<std::int64_t>(static_cast<std::uint64_t>(load_integer(start, 0)) +
                                 static_cast<std::uint64_t>(static_cast<std::int64_t>(step)) *
                                     static_cast<std::uint64_t>(at));
}
template <class T>
void store_position(T& to, const TensorView& start, double step, std::int64_t at) {
  store_float(to, static_cast<float>(load(start, 0) + step * static_cast<double>(at)));
}

/// Rows along the last axis: values rise along it, or are the same in a row.
template <class T>
void fill_rows(const LaunchArgs& args, const Iota& iota) {
  const TensorView &start = args.inputs[0], &y = args.outputs[0];
  const Rows rows(y);
  const int last = y.shape.rank() - 1;
  std::int64_t inner = 1;  // rows that follow each other at one position
  for (int a = iota.axis + 1; a < last; ++a) inner *= y.shape[a];
  args.pool->parallel_for(rows.count(), rows_per_thread(rows.length() * static_cast<std::int64_t>(sizeof(T))),
                          [&](std::int64_t begin, std::int64_t end) {
                            for (std::int64_t r = begin; r < end; ++r) {
                              T* const row = reinterpret_cast<T*>(rows.row(r));
                              const std::int64_t at = iota.axis == last ? 0 : r / inner % y.shape[iota.axis];
                              for (std::int64_t c = 0; c < rows.length(); ++c)
                                store_position(row[c], start, iota.step, iota.axis == last ? c : at);
                            }
                          });
}

void fill_positions(const LaunchArgs& args, const Iota& iota) {
  if (args.outputs[0].elements() == 0) return;
  switch (args.outputs[0].dtype) {
    case DType::f32: return fill_rows<float>(args, iota);
    case DType::bf16: return fill_rows<format::bf16>(args, iota);
    case DType::f16: return fill_rows<format::f16>(args, iota);
    case DType::i32: return fill_rows<std::int32_t>(args, iota);
    default: return fill_rows<std::int64_t>(args, iota);
  }
}

}  // namespace

extern const Kernel movement_iota{
    .name = "movement.iota",
    .op = OpKind::iota,
    .summary = "element after element; rows spread over threads",
    .bind = [](const Problem& p) -> Launcher {
      const Iota iota{wrap_axis(p.attributes.integer("axis"), p.outputs[0].rank()), p.attributes.number("step")};
      return [iota](const LaunchArgs& args) { fill_positions(args, iota); };
    },
};

extern const Kernel movement_size_of{
    .name = "movement.size_of",
    .op = OpKind::size_of,
    .summary = "writes what the launch knows",
    .bind = [](const Problem& p) -> Launcher {
      return [axes = axes_in_order(p, "axes", p.input(0).rank())](const LaunchArgs& args) {
        for (std::size_t i = 0; i < axes.size(); ++i)
          store_integer(args.outputs[0], static_cast<std::int64_t>(i), args.inputs[0].shape[axes[i]]);
      };
    },
};

}  // namespace cermet::cpu
