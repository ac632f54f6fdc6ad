# A folder of pytest tests, or some of its files, as one CTest entry.
#
#   cairn_pytest(<name> [WAITS] [TIMEOUT seconds] [FILES file ...] [ARGS argument ...])
#
# PROCESSORS of all tests counts halves of a processor (tests/run): most tests need two. One that mostly WAITS, for
# launchers or for signs of life, needs one, and runs beside tests that compute.
function(cairn_pytest name)
  cmake_parse_arguments(TEST "WAITS" "TIMEOUT" "FILES;ARGS" ${ARGN})
  if(NOT TEST_TIMEOUT)
    set(TEST_TIMEOUT 120)
  endif()
  set(halves 2)
  if(TEST_WAITS)
    set(halves 1)
  endif()
  list(TRANSFORM TEST_FILES PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
  if(NOT TEST_FILES)
    set(TEST_FILES ${CMAKE_CURRENT_SOURCE_DIR})
  endif()
  # Nothing is written into the source tree.
  add_test(NAME ${name}
    COMMAND ${CAIRN_PYTHON} -B -m pytest -q -p no:cacheprovider ${TEST_FILES} ${TEST_ARGS})
  # What may take longest begins first.
  set_tests_properties(${name} PROPERTIES
    TIMEOUT ${TEST_TIMEOUT} COST ${TEST_TIMEOUT} PROCESSORS ${halves})
endfunction()
