# What every target of the project shares: warnings, sanitizers, and a library per folder of src/.

# -Wmaybe-uninitialized is off: GCC 12 reports it inside std::vector and std::optional.
add_library(cermet_options INTERFACE)
# -Wrestrict and -Wstringop-overflow are off: GCC 12 reports std::string's own copies by mistake (GCC bug 105651).
target_compile_options(cermet_options INTERFACE -Wall -Wextra -Wconversion -Wno-sign-conversion -Wno-maybe-uninitialized -Wno-restrict -Wno-stringop-overflow
  -Wno-mismatched-new-delete  # a test that counts allocations replaces operator new
  -Werror)
# A product and a sum are fused only where the code says so: quantized values depend on single bits, and references must
# agree with kernels.
target_compile_options(cermet_options INTERFACE -ffp-contract=off)
target_include_directories(cermet_options INTERFACE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
if(CERMET_SANITIZE)
  target_compile_options(cermet_options INTERFACE -fsanitize=${CERMET_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all -g1)
  target_link_options(cermet_options INTERFACE -fsanitize=${CERMET_SANITIZE})
endif()

include(${CMAKE_CURRENT_LIST_DIR}/Precompiled.cmake)

# cermet_folder(NAME PATH HEADERS LIBRARIES...): the sources below src/PATH as one static library cermet_NAME; HEADERS names the precompiled set.
function(cermet_folder name path headers)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${path}/*.cpp)
  list(FILTER sources EXCLUDE REGEX "/device/cuda/driver/")  # the plugin's
  if(NOT sources)
    add_library(cermet_${name} INTERFACE)
    target_link_libraries(cermet_${name} INTERFACE ${ARGN})
    return()
  endif()
  add_library(cermet_${name} STATIC ${sources})
  target_link_libraries(cermet_${name} PRIVATE cermet_options PUBLIC ${ARGN})
  target_include_directories(cermet_${name} PUBLIC ${PROJECT_SOURCE_DIR}/src)
  cermet_precompile(cermet_${name} ${headers})
endfunction()

# cermet_tests(FOLDER LIBRARIES...): every tests/FOLDER/*_test.cpp as one GoogleTest program; those of a folder named long or python have that label.
function(cermet_tests folder)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/${folder}/*_test.cpp)
  if(NOT sources)
    return()
  endif()
  string(REPLACE "/" "_" name ${folder})
  add_executable(test_${name} ${sources})
  target_link_libraries(test_${name} PRIVATE cermet_options GTest::gtest_main ${ARGN})
  target_compile_definitions(test_${name} PRIVATE CERMET_SOURCE_DIR="${PROJECT_SOURCE_DIR}" CERMET_BINARY_DIR="${PROJECT_BINARY_DIR}")
  target_include_directories(test_${name} PRIVATE ${PROJECT_SOURCE_DIR})
  cermet_precompile(test_${name} test)
  if(folder MATCHES "/long$")
    set(properties TIMEOUT 1800 LABELS long)
  elseif(folder MATCHES "python$")
    set(properties TIMEOUT 900 LABELS python)
  else()
    set(properties TIMEOUT 300)
  endif()
  gtest_discover_tests(test_${name} TEST_PREFIX "${folder}." DISCOVERY_TIMEOUT 60 PROPERTIES ${properties})
endfunction()
