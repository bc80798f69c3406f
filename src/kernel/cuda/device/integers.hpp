// Fixed-width integers for code that NVRTC and the host compiler both read: parameter structs of tasks.
#pragma once

#if defined(__CUDACC_RTC__)
using int8_t = signed char;
using uint8_t = unsigned char;
using int16_t = short;
using uint16_t = unsigned short;
using int32_t = int;
using uint32_t = unsigned int;
using int64_t = long long;
using uint64_t = unsigned long long;
using size_t = decltype(sizeof(0));
using uintptr_t = unsigned long long;
#else
#include <cstddef>
#include <cstdint>
#endif

/// CERMET_DEVICE: functions of device code, inlined into their kernel. CERMET_HOST_DEVICE: functions that both
/// compilers take.
#if defined(__CUDACC__)
#define CERMET_DEVICE __device__ __forceinline__
#define CERMET_HOST_DEVICE __host__ __device__
#else
#define CERMET_HOST_DEVICE
#endif
