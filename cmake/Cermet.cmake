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

include(${CMAKE_CURRENT_LIST_DIR}/CpuTargets.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/Precompiled.cmake)

# cermet_batches(RESULT BATCH ROOT FILES...): units that include BATCH files below ROOT each, which compiles them in two thirds of the time: what they have
# in common is parsed and instantiated once. Names in anonymous namespaces must differ within a folder. Files with options of their own stay alone.
# Paths are relative to ROOT, so that a cache of compilations serves every checkout (CMake's UNITY_BUILD writes absolute ones).
# With "vector" before the files, they are what Highway compiles for every instruction set: the unit as a whole is what it includes again for each, so that
# Highway itself is compiled once; its folder must be an include directory.
option(CERMET_BATCHES "Compile the files of most folders several at a time" ON)
function(cermet_batches result batch root)
  set(units)
  set(count 0)
  set(content)
  set(files ${ARGN})
  list(FIND files vector vector)
  list(REMOVE_ITEM files vector)
  foreach(file ${files} "")
    get_source_file_property(options "${file}" COMPILE_OPTIONS)
    if(file AND (options OR NOT CERMET_BATCHES))
      list(APPEND units ${file})
      continue()
    elseif(file)
      file(RELATIVE_PATH path ${root} ${file})
      string(APPEND content "#include \"${path}\"\n")
      math(EXPR count "${count} + 1")
    endif()
    if(content AND (NOT file OR count EQUAL batch))
      string(REPLACE "/" "_" unit ${path})
      set(unit batch_${unit})
      if(vector EQUAL 0)
        set(again "#undef HWY_TARGET_INCLUDE\n#define HWY_TARGET_INCLUDE \"${unit}\"\n")
        string(JOIN "" content "${again}" "#include <hwy/foreach_target.h>\n" "${content}" "${again}")
      endif()
      set(unit ${CMAKE_CURRENT_BINARY_DIR}/${unit})
      file(CONFIGURE OUTPUT ${unit} CONTENT "${content}" @ONLY)
      # A class with a member of an anonymous type is fine while one unit has it; GCC warns as soon as the unit's main file is another.
      set_source_files_properties(${unit} PROPERTIES COMPILE_OPTIONS -Wno-subobject-linkage)
      list(APPEND units ${unit})
      set(count 0)
      set(content)
    endif()
  endforeach()
  set(${result} ${units} PARENT_SCOPE)
endfunction()

# cermet_folder(NAME PATH HEADERS LIBRARIES...): the sources below src/PATH as one static library cermet_NAME; HEADERS names the precompiled set.
# With BATCH n the sources are compiled n at a time, but for those whose path matches ALONE; with VECTOR n so are those that use Highway, in units of their own;
# those of CERMET_HOT_SOURCES are one unit, which is optimised as hot folders are.
function(cermet_folder name path headers)
  cmake_parse_arguments(PARSE_ARGV 3 arg "" "BATCH;VECTOR;ALONE" "")
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${path}/*.cpp)
  list(FILTER sources EXCLUDE REGEX "/device/cuda/driver/|/comm/mpi/")  # the plugins'
  if(NOT sources)
    add_library(cermet_${name} INTERFACE)
    target_link_libraries(cermet_${name} INTERFACE ${arg_UNPARSED_ARGUMENTS})
    return()
  endif()
  if(arg_BATCH)
    set(alone)
    set(vector)
    set(hot)
    foreach(file ${sources})
      file(STRINGS ${file} uses_highway LIMIT_COUNT 1 REGEX "HWY_TARGET_INCLUDE")
      if(file IN_LIST CERMET_HOT_SOURCES)
        list(APPEND hot ${file})
      elseif(arg_ALONE AND file MATCHES "${arg_ALONE}")
        list(APPEND alone ${file})
      elseif(arg_VECTOR AND uses_highway)
        list(APPEND vector ${file})
      endif()
    endforeach()
    if(alone OR vector OR hot)
      list(REMOVE_ITEM sources ${alone} ${vector} ${hot})
    endif()
    cermet_batches(sources ${arg_BATCH} ${PROJECT_SOURCE_DIR}/src ${sources})
    cermet_batches(vector "${arg_VECTOR}" ${PROJECT_SOURCE_DIR}/src vector ${vector})
    list(LENGTH hot hot_files)
    cermet_batches(hot "${hot_files}" ${PROJECT_SOURCE_DIR}/src ${hot})
    if(hot)
      set_source_files_properties(${hot} PROPERTIES COMPILE_OPTIONS "$<$<CONFIG:Release>:-O3>;-Wno-subobject-linkage" SKIP_PRECOMPILE_HEADERS ON)
    endif()
    list(APPEND sources ${vector} ${alone} ${hot})
  endif()
  add_library(cermet_${name} STATIC ${sources})
  target_link_libraries(cermet_${name} PRIVATE cermet_options PUBLIC ${arg_UNPARSED_ARGUMENTS})
  target_include_directories(cermet_${name} PUBLIC ${PROJECT_SOURCE_DIR}/src)
  cermet_precompile(cermet_${name} ${headers})
endfunction()

# cermet_suites(PROGRAM PREFIX FILTER PROPERTIES...): every suite of a GoogleTest program that the filter leaves as one test, listed when the program is linked.
function(cermet_suites program prefix filter)
  set(list ${CMAKE_CURRENT_BINARY_DIR}/${program}_suites.cmake)
  list(JOIN ARGN " " properties)
  add_custom_command(TARGET ${program} POST_BUILD BYPRODUCTS ${list} VERBATIM
    COMMAND ${CMAKE_COMMAND} -D PROGRAM=$<TARGET_FILE:${program}> -D PREFIX=${prefix} -D "FILTER=${filter}" -D "PROPERTIES=${properties}" -D OUTPUT=${list}
    -P ${PROJECT_SOURCE_DIR}/cmake/test_suites.cmake)
  file(CONFIGURE OUTPUT ${program}_include.cmake @ONLY
    CONTENT "if(EXISTS \"@list@\")\n  include(\"@list@\")\nelse()\n  add_test(@program@_NOT_BUILT @program@_NOT_BUILT)\nendif()\n")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${CMAKE_CURRENT_BINARY_DIR}/${program}_include.cmake)
endfunction()

# cermet_tests(FOLDER LIBRARIES...): every tests/FOLDER/*_test.cpp as one GoogleTest program; those of a folder named long or python have that label. With
# LONG_SUITES so have its suites whose names begin with Long: script/test-long runs them, and a smaller version of each runs with the others. With BATCH n the
# files are compiled n at a time. Every test is a process of its own; with SUITES every suite is, for tests that take less time than their process.
function(cermet_tests folder)
  cmake_parse_arguments(PARSE_ARGV 1 arg "LONG_SUITES;SUITES" BATCH "")
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/${folder}/*_test.cpp)
  if(NOT sources)
    return()
  endif()
  if(arg_BATCH)
    cermet_batches(sources ${arg_BATCH} ${PROJECT_SOURCE_DIR} ${sources})
  endif()
  string(REPLACE "/" "_" name ${folder})
  add_executable(test_${name} ${sources})
  target_link_libraries(test_${name} PRIVATE cermet_options GTest::gtest_main ${arg_UNPARSED_ARGUMENTS})
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
  set(alone ENVIRONMENT CERMET_TUNING=off)  # what was measured on this machine changes no result
  if(arg_LONG_SUITES)
    set(long_suites "Long*.*:*/Long*.*")
    gtest_discover_tests(test_${name} TEST_FILTER "${long_suites}" TEST_LIST test_${name}_LONG_TESTS TEST_PREFIX "${folder}." DISCOVERY_TIMEOUT 60
      PROPERTIES TIMEOUT 1800 LABELS long ${alone})
    set(others "-${long_suites}")
  else()
    set(others "*")
  endif()
  if(arg_SUITES)
    cermet_suites(test_${name} ${folder}. "${others}" ${properties} ${alone})
  else()
    gtest_discover_tests(test_${name} TEST_FILTER "${others}" TEST_PREFIX "${folder}." DISCOVERY_TIMEOUT 60 PROPERTIES ${properties} ${alone})
  endif()
endfunction()
