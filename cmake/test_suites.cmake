# Lists the suites of a GoogleTest program, each as one test of ctest: cmake -D PROGRAM= -D PREFIX= -D FILTER= -D PROPERTIES= -D OUTPUT= -P test_suites.cmake.
# CMake's own gtest_discover_tests starts a process for every test of a suite.
execute_process(COMMAND ${PROGRAM} --gtest_list_tests "--gtest_filter=${FILTER}" OUTPUT_VARIABLE listed RESULT_VARIABLE result TIMEOUT 60)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "${PROGRAM} --gtest_list_tests: expected 0, found ${result}\n${listed}")
endif()
string(REGEX MATCHALL "(^|\n)[^ \n]+\\. *(#[^\n]*)?\n  " suites "${listed}")
if(NOT suites)
  message(FATAL_ERROR "${PROGRAM} --gtest_list_tests: expected suites, found none\n${listed}")
endif()
# A suite is skipped where nothing of it passed or failed: GoogleTest lists what failed behind what was skipped.
set(skipped "\\\\[  PASSED  \\\\] 0 tests\\\\.\n(\\\\[  SKIPPED \\\\][^\n]*\n)+$")
set(tests)
foreach(suite ${suites})
  string(REGEX REPLACE "^\n?([^ ]+)\\. *(#[^\n]*)?\n  $" "\\1" suite "${suite}")
  string(APPEND tests "add_test([=[${PREFIX}${suite}]=] [=[${PROGRAM}]=] [=[--gtest_filter=${suite}.*]=])\n"
    "set_tests_properties([=[${PREFIX}${suite}]=] PROPERTIES SKIP_REGULAR_EXPRESSION \"${skipped}\" ${PROPERTIES})\n")
endforeach()
file(WRITE ${OUTPUT} "${tests}")
