# A room of the house: a static library cairn_<name> made of the sources given, its *_test.cpp
# files gathered into one test program <name>_test that runs without MPI.
#
#   cairn_room(<name> SOURCES a.cpp ... [TESTS a_test.cpp ...] [USES room ...] [LINKS target ...]
#              [TESTS_USE target ...])
#
# TESTS_USE names what only the tests need: parts of tests/support, without "cairn_".
function(cairn_room name)
  cmake_parse_arguments(ROOM "" "" "SOURCES;TESTS;USES;LINKS;TESTS_USE" ${ARGN})
  add_library(cairn_${name} STATIC ${ROOM_SOURCES})
  list(TRANSFORM ROOM_USES PREPEND cairn_)
  target_include_directories(cairn_${name} PUBLIC ${PROJECT_SOURCE_DIR}/src
                                                  ${PROJECT_SOURCE_DIR}/include)
  target_link_libraries(cairn_${name} PUBLIC ${ROOM_USES} ${ROOM_LINKS} cairn_warnings)
  if(CAIRN_TESTS AND ROOM_TESTS)
    cairn_test(${name}_test SOURCES ${ROOM_TESTS} USES ${name} ${ROOM_TESTS_USE})
  endif()
endfunction()

# A compiler spends most of its time for a test on the headers, so several tests are compiled as one file.
set(CAIRN_TEST_BATCH 4 CACHE STRING "Number of test sources that are compiled as one file")

# cairn_test_batches(<variable> <name> <source>...): the files to compile in place of the sources.
function(cairn_test_batches result name)
  set(batches)
  list(LENGTH ARGN count)
  math(EXPR last "${count} - 1")
  foreach(first RANGE 0 ${last} ${CAIRN_TEST_BATCH})
    list(SUBLIST ARGN ${first} ${CAIRN_TEST_BATCH} sources)
    # A name of one test may hide a name of another.
    set(includes "#pragma GCC diagnostic ignored \"-Wshadow\"\n")
    foreach(source IN LISTS sources)
      file(RELATIVE_PATH path ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR}/${source})
      string(APPEND includes "#include \"${path}\"\n")
    endforeach()
    file(CONFIGURE OUTPUT ${name}.${first}.cpp CONTENT "${includes}")
    list(APPEND batches ${CMAKE_CURRENT_BINARY_DIR}/${name}.${first}.cpp)
  endforeach()
  set(${result} ${batches} PARENT_SCOPE)
endfunction()

# A GoogleTest program that needs no MPI, one CTest entry each. Its sources are compiled with few optimisations: more
# of them would take longer than they save when the tests run.
function(cairn_test name)
  cmake_parse_arguments(TEST "" "TIMEOUT" "SOURCES;USES" ${ARGN})
  cairn_test_batches(batches ${name} ${TEST_SOURCES})
  add_executable(${name} ${batches})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_compile_options(${name} PRIVATE -Og)
  list(TRANSFORM TEST_USES PREPEND cairn_)
  target_link_libraries(${name} PRIVATE ${TEST_USES} GTest::gtest GTest::gtest_main)
  add_test(NAME ${name} COMMAND ${name})
  if(NOT TEST_TIMEOUT)
    set(TEST_TIMEOUT 120)
  endif()
  # PROCESSORS as in CairnPytest. What may take longest begins first.
  set_tests_properties(${name} PROPERTIES TIMEOUT ${TEST_TIMEOUT} COST ${TEST_TIMEOUT} PROCESSORS 2)
endfunction()

add_library(cairn_warnings INTERFACE)
target_compile_options(cairn_warnings INTERFACE
  -Wall -Wextra -Wshadow
  $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor> $<$<COMPILE_LANGUAGE:CXX>:-Woverloaded-virtual>
  $<$<BOOL:${CAIRN_WERROR}>:-Werror>)
if(CAIRN_SANITIZE)
  target_compile_options(cairn_warnings INTERFACE -fsanitize=${CAIRN_SANITIZE}
                                                  -fno-omit-frame-pointer
                                                  -fno-sanitize-recover=all)
  target_link_options(cairn_warnings INTERFACE -fsanitize=${CAIRN_SANITIZE})
endif()
