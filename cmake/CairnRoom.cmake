# A compiler spends most of its time on headers, so several sources are compiled as one file. 1 compiles each alone.
set(CAIRN_BATCH 8 CACHE STRING "Number of sources of a room that are compiled as one file")
set(CAIRN_TEST_BATCH 4 CACHE STRING "Number of test sources that are compiled as one file")

# cairn_batches(<variable> <name> <number> <ignored warnings> <source>...): the files to compile in place of the sources.
function(cairn_batches result name number ignored)
  set(batches)
  list(LENGTH ARGN count)
  math(EXPR last "${count} - 1")
  foreach(first RANGE 0 ${last} ${number})
    list(SUBLIST ARGN ${first} ${number} sources)
    list(TRANSFORM ignored REPLACE "(.+)" "#pragma GCC diagnostic ignored \"-W\\1\"\n" OUTPUT_VARIABLE lines)
    foreach(source IN LISTS sources)
      # Relative, so that the compiler cache finds the same batch of another clone.
      file(RELATIVE_PATH path ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR}/${source})
      list(APPEND lines "#include \"${path}\"\n")
    endforeach()
    if(number EQUAL 1)
      list(APPEND batches ${sources})
    else()
      list(JOIN lines "" content)
      file(CONFIGURE OUTPUT ${name}.${first}.cpp CONTENT "${content}")
      list(APPEND batches ${CMAKE_CURRENT_BINARY_DIR}/${name}.${first}.cpp)
    endif()
  endforeach()
  set(${result} ${batches} PARENT_SCOPE)
endfunction()

# A name of one source may hide a name of another, and its types look to GCC like those of a header.
set(CAIRN_IGNORED_IN_BATCHES shadow)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  list(APPEND CAIRN_IGNORED_IN_BATCHES subobject-linkage)
endif()

# cairn_batched_library(<name> <source>...): a static library, compiled in batches.
function(cairn_batched_library name)
  cairn_batches(batches ${name} ${CAIRN_BATCH} "${CAIRN_IGNORED_IN_BATCHES}" ${ARGN})
  add_library(${name} STATIC ${batches})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
endfunction()

# A room of the house: a static library cairn_<name> made of the sources given, its *_test.cpp
# files gathered into one test program <name>_test that runs without MPI.
#
#   cairn_room(<name> [BATCHED] SOURCES a.cpp ... [TESTS a_test.cpp ...] [USES room ...] [LINKS target ...]
#              [TESTS_USE target ...])
#
# BATCHED: no two sources define the same name, so several are compiled as one file, as those of the tests are always.
# TESTS_USE names what only the tests need: parts of tests/support, without "cairn_".
function(cairn_room name)
  cmake_parse_arguments(ROOM "BATCHED" "" "SOURCES;TESTS;USES;LINKS;TESTS_USE" ${ARGN})
  if(ROOM_BATCHED)
    cairn_batched_library(cairn_${name} ${ROOM_SOURCES})
  else()
    add_library(cairn_${name} STATIC ${ROOM_SOURCES})
  endif()
  list(TRANSFORM ROOM_USES PREPEND cairn_)
  target_include_directories(cairn_${name} PUBLIC ${PROJECT_SOURCE_DIR}/src
                                                  ${PROJECT_SOURCE_DIR}/include)
  target_link_libraries(cairn_${name} PUBLIC ${ROOM_USES} ${ROOM_LINKS} cairn_warnings)
  if(CAIRN_TESTS AND ROOM_TESTS)
    cairn_test(${name}_test SOURCES ${ROOM_TESTS} USES ${name} ${ROOM_TESTS_USE})
  endif()
endfunction()

# A GoogleTest program that needs no MPI, one CTest entry each. Its sources are compiled with few optimisations: more
# of them would take longer than they save when the tests run.
function(cairn_test name)
  cmake_parse_arguments(TEST "" "TIMEOUT" "SOURCES;USES" ${ARGN})
  cairn_batches(batches ${name} ${CAIRN_TEST_BATCH} shadow ${TEST_SOURCES})
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
