#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/cpu/pointwise/gated.cpp"
#include <hwy/foreach_target.h>

#include "base/checked.hpp"
#include "kernel/cpu/math-inl.hpp"
#include "kernel/cpu/pointwise/gated-inl.hpp"
#include "kernel/kernel.hpp"

#ifndef CERMET_GATED_ONCE
#define CERMET_GATED_ONCE
namespace cermet::cpu {
enum class GateFunction { silu, gelu, gelu_tanh, gelu_quick, clamped };
/// Attributes of a gated activation, read when it is bound.
struct Gated {
  GateFunction function;
  bool gate_first, interleaved;
  float alpha = 0, limit = 0, up_offset = 0;  ///< of the clamped SwiGLU
};
}  // namespace cermet::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace cermet::cpu::HWY_NAMESPACE {

template <class Function>
HWY_INLINE void activate(const GatedTile& tile, float* result, std::size_t n, Function function) {
  for_vectors(n, [&](std::size_t i, std::size_t count) HWY_ATTR {
    store_n(function(Real(load_n(tile.gate + i, count)), Real(load_n(tile.up + i, count))).v, result + i, count);
  });
}

void activate(const GatedTile& tile, float* result, std::size_t n, const Gated& parameters) {
  switch (parameters.function) {
    case GateFunction::silu:
      return activate(tile, result, n, [](Real gate, Real up) HWY_ATTR { return silu(gate) * up; });
    case GateFunction::gelu:
      return activate(tile, result, n, [](Real gate, Real up) HWY_ATTR { return gate * normal_cdf(gate) * up; });
    case GateFunction::gelu_tanh:
      return activate(tile, result, n,
                      [](Real gate, Real up) HWY_ATTR { return gate * sigmoid(2 * gelu_tanh_argument(gate)) * up; });
    case GateFunction::gelu_quick:
      return activate(tile, result, n, [](Real gate, Real up) HWY_ATTR { return gate * sigmoid(1.702 * gate) * up; });
    case GateFunction::clamped: {
      const Real alpha(parameters.alpha), limit(parameters.limit), offset(parameters.up_offset);
      return activate(tile, result, n, [&](Real gate, Real up) HWY_ATTR {
        const Real g = minimum(gate, limit), u = minimum(maximum(up, -limit), limit);
        return g * sigmoid(alpha * g) * (u + offset);
      });
    }
  }
}

/// Tiles of all rows, spread over threads: few long rows keep them as busy as many short ones.
void gated(const LaunchArgs& args, const Gated& parameters) {
  const TensorView &x = args.inputs[0], &y = args.outputs[0];
  const Rows from(x), to(y);
  const auto features = static_cast<std::size_t>(to.length());
  const std::int64_t tiles = div_up(to.length(), static_cast<std::int64_t>(tile_size));
  args.pool->parallel_for(to.count() * tiles, 1, [&](std::int64_t begin, std::int64_t end) {
    GatedTile tile;
    TileBuffer y_buffer;
    for (std::int64_t item = begin; item < end; ++item) {
      const std::size_t first = static_cast<std::size_t>(item % tiles) * tile_size,
                        n = HWY_MIN(tile_size, features - first);
      tile.read({from.row(item / tiles), x.dtype}, features, first, n, parameters.gate_first, parameters.interleaved);
      const RowOut out{to.row(item / tiles), y.dtype};
      activate(tile, out.tile(first, y_buffer), n, parameters);
      out.commit(first, n, y_buffer);
    }
  });
}

}  // namespace cermet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cermet::cpu {

HWY_EXPORT(gated);

namespace {

GateFunction gelu_form(const std::string& approximate) {
  return approximate == "tanh"    ? GateFunction::gelu_tanh
         : approximate == "quick" ? GateFunction::gelu_quick
                                  : GateFunction::gelu;
}

Launcher bind_gated(const Problem& p) {
  Gated parameters{GateFunction::silu, p.attributes.text("gate") == "first", p.attributes.flag("interleaved")};
  if (p.op->kind == OpKind::gelu_and_mul) parameters.function = gelu_form(p.attributes.text("approximate"));
  if (p.op->kind == OpKind::swiglu_clamped) {
    parameters.function = GateFunction::clamped;
    parameters.alpha = static_cast<float>(p.attributes.number("alpha"));
    parameters.limit = static_cast<float>(p.attributes.number("limit"));
    parameters.up_offset = static_cast<float>(p.attributes.number("up_offset"));
  }
  return [parameters](const LaunchArgs& args) { HWY_DYNAMIC_DISPATCH(gated)(args, parameters); };
}

constexpr const char* const gated_summary = "tiles of all rows spread over threads";

}  // namespace

extern const Kernel pointwise_silu_and_mul{
    .name = "pointwise.silu_and_mul", .op = OpKind::silu_and_mul, .summary = gated_summary, .bind = bind_gated};
extern const Kernel pointwise_gelu_and_mul{
    .name = "pointwise.gelu_and_mul", .op = OpKind::gelu_and_mul, .summary = gated_summary, .bind = bind_gated};
extern const Kernel pointwise_swiglu_clamped{
    .name = "pointwise.swiglu_clamped", .op = OpKind::swiglu_clamped, .summary = gated_summary, .bind = bind_gated};

}  // namespace cermet::cpu
#endif
