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

# A GoogleTest program that needs no MPI, one CTest entry each.
function(cairn_test name)
  cmake_parse_arguments(TEST "" "TIMEOUT" "SOURCES;USES" ${ARGN})
  add_executable(${name} ${TEST_SOURCES})
  list(TRANSFORM TEST_USES PREPEND cairn_)
  target_link_libraries(${name} PRIVATE ${TEST_USES} GTest::gtest GTest::gtest_main)
  add_test(NAME ${name} COMMAND ${name})
  if(NOT TEST_TIMEOUT)
    set(TEST_TIMEOUT 120)
  endif()
  set_tests_properties(${name} PROPERTIES TIMEOUT ${TEST_TIMEOUT})
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
