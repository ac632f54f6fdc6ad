# A folder of pytest tests as one CTest entry.
#
#   cairn_pytest(<name> [TIMEOUT seconds] [ARGS argument ...])
function(cairn_pytest name)
  cmake_parse_arguments(TEST "" "TIMEOUT" "ARGS" ${ARGN})
  if(NOT TEST_TIMEOUT)
    set(TEST_TIMEOUT 120)
  endif()
  # Nothing is written into the source tree.
  add_test(NAME ${name}
    COMMAND ${CAIRN_PYTHON} -B -m pytest -q -p no:cacheprovider ${CMAKE_CURRENT_SOURCE_DIR}
            ${TEST_ARGS})
  set_tests_properties(${name} PROPERTIES TIMEOUT ${TEST_TIMEOUT})
endfunction()
