# Instruction sets of the CPU kernels. "all" compiles each kernel for a portable one, AVX2 and AVX-512, and chooses at run time; "native" compiles it once, for
# what this machine has, in half the time. Sets CERMET_CPU_LEVEL to 3 or 4 (x86-64-v3, -v4) where there is one instruction set, and CERMET_HIGHWAY_TARGETS.
set(CERMET_CPU_TARGETS all CACHE STRING "CPU kernels for all instruction sets (all), or for this machine's alone (native)")
set_property(CACHE CERMET_CPU_TARGETS PROPERTY STRINGS all native)

# One portable target and the two vector widths; others of Highway's x86 targets would only cost compile time.
set(CERMET_HIGHWAY_TARGETS "HWY_DISABLED_TARGETS=(HWY_SSSE3|HWY_SSE4)")

set(CERMET_CPU_LEVEL)
if(CERMET_CPU_TARGETS STREQUAL native)
  execute_process(COMMAND ${CMAKE_CXX_COMPILER} -march=native -dM -E -x c++ /dev/null OUTPUT_VARIABLE macros ERROR_QUIET)
  if(macros MATCHES "__AVX512BW__" AND macros MATCHES "__AVX512DQ__" AND macros MATCHES "__AVX512VL__" AND macros MATCHES "__AVX512CD__"
     AND macros MATCHES "__AES__" AND macros MATCHES "__PCLMUL__")
    set(CERMET_CPU_LEVEL 4)
  elseif(macros MATCHES "__AVX2__" AND macros MATCHES "__FMA__" AND macros MATCHES "__BMI2__" AND macros MATCHES "__F16C__" AND macros MATCHES "__LZCNT__"
         AND macros MATCHES "__MOVBE__" AND macros MATCHES "__AES__" AND macros MATCHES "__PCLMUL__")
    set(CERMET_CPU_LEVEL 3)
  endif()
elseif(NOT CERMET_CPU_TARGETS STREQUAL all)
  message(FATAL_ERROR "CERMET_CPU_TARGETS: expected all or native, found '${CERMET_CPU_TARGETS}'")
endif()
