# Precompiled headers. Nearly every file of the project spends most of its compile time in the standard library, fmt, the JSON library or GoogleTest, so
# those are parsed once for each set of options that GCC distinguishes; headers of our own are not in them, because they change.

# Code that runs once per process or per model need not be optimised hard: -Og compiles in less than half of the time of -O3, two thirds of that of -O1.
set(CERMET_COLD $<$<CONFIG:Release>:-Og>)

set(standard_headers <algorithm> <array> <atomic> <cmath> <cstdint> <cstring> <filesystem> <fstream> <functional> <limits> <map> <memory> <mutex> <numeric>
  <optional> <random> <set> <span> <string> <string_view> <unordered_map> <utility> <variant> <vector> <fmt/format.h> <fmt/ranges.h>)

# cermet_precompiled(NAME POSITION_INDEPENDENT OPTION HEADERS...): a set of headers that targets take with cermet_precompile(TARGET NAME).
function(cermet_precompiled name position_independent option)
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/precompiled_${name}.cpp CONTENT "")
  add_library(cermet_precompiled_${name} OBJECT ${PROJECT_BINARY_DIR}/precompiled_${name}.cpp)
  set_target_properties(cermet_precompiled_${name} PROPERTIES POSITION_INDEPENDENT_CODE ${position_independent})
  target_link_libraries(cermet_precompiled_${name} PRIVATE cermet_options fmt::fmt)
  target_compile_options(cermet_precompiled_${name} PRIVATE ${option})
  target_precompile_headers(cermet_precompiled_${name} PRIVATE ${standard_headers} ${ARGN})
endfunction()

# cermet_precompile(TARGET NAME): compiles the target with that set and the options that it was made with.
function(cermet_precompile target name)
  get_target_property(options cermet_precompiled_${name} COMPILE_OPTIONS)
  get_target_property(position_independent cermet_precompiled_${name} POSITION_INDEPENDENT_CODE)
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ${position_independent})
  if(options)
    target_compile_options(${target} PRIVATE ${options})
  endif()
  target_precompile_headers(${target} REUSE_FROM cermet_precompiled_${name})
endfunction()

cermet_precompiled(hot ON "")
cermet_precompiled(cold ON ${CERMET_COLD})

# CPU kernels for one instruction set: Highway's operations and the compiler's intrinsics are the same for all files, so that they are parsed once.
set(CERMET_KERNEL_HEADERS hot)
if(CERMET_CPU_LEVEL)
  set(CERMET_KERNEL_HEADERS kernel)
  # AES and carry-less products are what Highway asks for beside the level; -Wno-uninitialized is for the intrinsics of GCC 12.
  cermet_precompiled(kernel ON "-march=x86-64-v${CERMET_CPU_LEVEL};-maes;-mpclmul;-Wno-uninitialized" <hwy/foreach_target.h> <hwy/highway.h>
    <hwy/contrib/math/math-inl.h>)
  target_compile_definitions(cermet_precompiled_kernel PRIVATE HWY_COMPILE_ONLY_STATIC "${CERMET_HIGHWAY_TARGETS}")
  target_link_libraries(cermet_precompiled_kernel PRIVATE hwy::hwy)
endif()
if(CERMET_TESTS)
  find_package(GTest REQUIRED)
  cermet_precompiled(test OFF ${CERMET_COLD} <gtest/gtest.h>)
  target_link_libraries(cermet_precompiled_test PRIVATE GTest::gtest)
endif()
