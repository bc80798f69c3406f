// Activation functions on vectors, compiled once per instruction set: include after <hwy/foreach_target.h>.
#if defined(CERMET_ACTIVATION_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef CERMET_ACTIVATION_INL
#undef CERMET_ACTIVATION_INL
#else
#define CERMET_ACTIVATION_INL
#endif

#include "kernel/cpu/math-inl.hpp"
#include "op/activation.hpp"

HWY_BEFORE_NAMESPACE();
namespace cermet::cpu::HWY_NAMESPACE {

inline Real activate(Activation activation, Real x) {
  switch (activation) {
#define ACTIVATION(name, expression) \
  case Activation::name:             \
    return expression;
#include "op/activation.inc"
#undef ACTIVATION
  }
  return x;
}

}  // namespace cermet::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
