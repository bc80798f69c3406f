// max_unpool and col2im: plain loops over planes.
#include <algorithm>
#include <cstring>

#include "kernel/cpu/by_dtype.hpp"
#include "kernel/cpu/by_size.hpp"
#include "kernel/cpu/number.hpp"
#include "kernel/kernel.hpp"
#include "op/pool_window.hpp"

namespace cermet::cpu {
namespace {

void require_inside(std::int64_t inside, std::int64_t size, std::int64_t plane) {
  require(inside >= 0 && inside < size,
          "max_unpool: operand 1 (indices): expected an index in [{}, {}), that of its sample and channel, found {}",
          plane * size, (plane + 1) * size, inside + plane * size);
}

template <class T>
void unpool_planes(const LaunchArgs& args, const Unpooling& unpooling, std::int64_t begin, std::int64_t end) {
  const SpatialView x = spatial_view(args.inputs[0], false), places = spatial_view(args.inputs[1], false),
                    y = spatial_view(args.outputs[0], false);
  const Spatial covered = unpooling.covered(x.size);
  const std::int64_t size = covered[0] * covered[1] * covered[2];
  for (std::size_t a = 0; a < 3; ++a)
    require(covered[a] <= y.size[a], "max_unpool: operand 0 (x): its windows cover {} elements of an axis that has {}",
            covered[a], y.size[a]);
  for (std::int64_t plane = begin; plane < end; ++plane) {
    const std::int64_t n = plane / x.channels, c = plane % x.channels;
    T* to = args.outputs[0].as<T>() + y.offset(n, c, {0, 0, 0});
    for (std::int64_t i = 0; i < y.size[0]; ++i)
      for (std::int64_t j = 0; j < y.size[1]; ++j) std::fill_n(to + i * y.stride[0] + j * y.stride[1], y.size[2], T{});
    for (std::int64_t i = 0; i < x.positions(); ++i) {
      const Spatial at = position_of(x.size, i);
      const std::int64_t inside = args.inputs[1].as<const std::int64_t>()[places.offset(n, c, at)] - plane * size;
      require_inside(inside, size, plane);
      const Spatial place = position_of(covered, inside);
      to[place[0] * y.stride[0] + place[1] * y.stride[1] + place[2] * y.stride[2]] =
          args.inputs[0].as<const T>()[x.offset(n, c, at)];
    }
  }
}

/// Results [begin, end) of col2im: each gathers what lies on it.
template <class T>
void gather_blocks(const LaunchArgs& args, const ImageBlocks& blocks, std::int64_t begin, std::int64_t end) {
  const TensorView &x = args.inputs[0], &view = args.outputs[0];
  const PoolWindow& w = blocks.window;
  const std::int64_t pixels = blocks.image[0] * blocks.image[1] * blocks.image[2],
                     taps = w.kernel[0] * w.kernel[1] * w.kernel[2], channels = view.shape[1];
  const int rank = view.shape.rank();
  for (std::int64_t i = begin; i < end; ++i) {
    const std::int64_t n = i / pixels / channels, c = i / pixels % channels;
    const Spatial at = position_of(blocks.image, i % pixels);
    float sum = 0;
    for (std::int64_t k = 0; k < taps; ++k) {
      const Spatial tap = position_of(w.kernel, k);
      Spatial index;
      bool inside = true;
      for (std::size_t a = 0; a < 3; ++a) {
        const std::int64_t start = at[a] + w.before[a] - tap[a] * w.dilation[a];
        index[a] = start / w.stride[a];
        inside = inside && start >= 0 && start % w.stride[a] == 0 && index[a] < blocks.count[a];
      }
      if (!inside) continue;
      const std::int64_t l = (index[0] * blocks.count[1] + index[1]) * blocks.count[2] + index[2];
      sum += to_number(x.as<const T>()[n * x.strides[0] + (c * taps + k) * x.strides[1] + l]);
    }
    std::int64_t to = n * view.strides[0] + c * view.strides[1];
    for (int a = 2; a < rank; ++a) to += at[static_cast<std::size_t>(3 - (rank - 2) + a - 2)] * view.strides[a];
    view.as<T>()[to] = from_number<T>(sum);
  }
}

}  // namespace

extern const Kernel pool_max_unpool;
const Kernel pool_max_unpool{
    .name = "pool.max_unpool",
    .op = OpKind::max_unpool,
    .summary = "zeros, then one element after another; planes spread over threads",
    .bind = [](const Problem& p) -> Launcher {
      return [unpooling = unpooling_of(p.attributes, p.input(0).rank())](const LaunchArgs& args) {
        const TensorView& x = args.inputs[0];
        by_element_size(size_of(x.dtype), [&](auto zero) {
          args.pool->parallel_for(x.shape[0] * x.shape[1], 1, [&](std::int64_t begin, std::int64_t end) {
            unpool_planes<decltype(zero)>(args, unpooling, begin, end);
          });
        });
      };
    }};
extern const Kernel pool_col2im;
const Kernel pool_col2im{.name = "pool.col2im",
                         .op = OpKind::col2im,
                         .summary = "each result gathers what lies on it; results spread over threads",
                         .bind = [](const Problem& p) -> Launcher {
                           return [blocks = image_blocks(p.attributes)](const LaunchArgs& args) {
                             by_real_dtype(args.inputs[0].dtype, [&](auto zero) {
                               args.pool->parallel_for(args.outputs[0].elements(), 256,
                                                       [&](std::int64_t begin, std::int64_t end) {
                                                         gather_blocks<decltype(zero)>(args, blocks, begin, end);
                                                       });
                             });
                           };
                         }};

}  // namespace cermet::cpu
