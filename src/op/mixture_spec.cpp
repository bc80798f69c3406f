// What the definitions of moe and ep_moe share.
#include "op/mixture.hpp"
#include "op/schema/operator.hpp"

namespace cermet {

OpSpec mixture_spec(OpSpec own) {
  own.category = "Mixture of experts";
  own.operations = mixture_operations;
  own.bytes = mixture_bytes;
  own.rounding_depth = mixture_rounding_depth;
  return own;
}

}  // namespace cermet
