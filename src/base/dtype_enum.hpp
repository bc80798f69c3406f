#pragma once
#if defined(__CUDACC__)
namespace cermet {

enum class DType : unsigned char {
#define X(enumerator, name, stored_name, bytes, kind) enumerator,
#include "base/dtype.inc"
#undef X
};

}  // namespace cermet
#else
#include "base/dtype.hpp"
#endif
