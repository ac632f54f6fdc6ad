# The MPIs to build for. Whatever includes mpi.h is built once per flavour F:
#
#   CAIRN_MPI_FLAVOURS  the flavours found, the primary one first; may be empty
#   cairn_mpi_F         target: include folders and libraries, C interface only
#   CAIRN_LAUNCH_F      the command that starts a program, up to and including "-np"
#   CAIRN_MPI_SONAME_F  by which programs ask for its library: libmpich.so.12; empty if it was not found
set(CAIRN_MPI "auto" CACHE STRING
    "MPIs to build for: auto, none, or a list of openmpi, mpich, system (what CMake finds)")

set(CAIRN_MPI_FLAVOURS "")
set(CAIRN_LAUNCH_OPTIONS_OPENMPI --oversubscribe --bind-to none --mca mpi_yield_when_idle 1)

# The first MPI library that the target links. MPIs number their files by the version of the interface.
function(cairn_find_soname result target)
  set(${result} "" PARENT_SCOPE)
  get_target_property(libraries ${target} INTERFACE_LINK_LIBRARIES)
  foreach(library IN LISTS libraries)
    if(library MATCHES "/lib[^/]*mpi[^/]*[.]so")
      file(REAL_PATH ${library} file)
      if(file MATCHES "([^/]+[.]so[.][0-9]+)")
        set(${result} ${CMAKE_MATCH_1} PARENT_SCOPE)
        return()
      endif()
    endif()
  endforeach()
endfunction()

# cairn_add_mpi(<flavour> <target with the library> <launcher and its options>...)
macro(cairn_add_mpi flavour library)
  add_library(cairn_mpi_${flavour} INTERFACE)
  target_link_libraries(cairn_mpi_${flavour} INTERFACE ${library})
  target_compile_definitions(cairn_mpi_${flavour} INTERFACE OMPI_SKIP_MPICXX MPICH_SKIP_MPICXX)
  set(CAIRN_LAUNCH_${flavour} ${ARGN})
  cairn_find_soname(CAIRN_MPI_SONAME_${flavour} ${library})
  list(APPEND CAIRN_MPI_FLAVOURS ${flavour})
endmacro()

# Debian keeps both MPIs side by side, each with a pkg-config file and a launcher of its own.
macro(cairn_find_openmpi)
  pkg_check_modules(OPENMPI QUIET IMPORTED_TARGET ompi-c)
  find_program(CAIRN_MPIRUN_OPENMPI NAMES mpirun.openmpi mpirun HINTS ${OPENMPI_PREFIX}/bin)
  if(OPENMPI_FOUND AND CAIRN_MPIRUN_OPENMPI)
    cairn_add_mpi(openmpi PkgConfig::OPENMPI
                  ${CAIRN_MPIRUN_OPENMPI} ${CAIRN_LAUNCH_OPTIONS_OPENMPI} -np)
  endif()
endmacro()

macro(cairn_find_mpich)
  pkg_check_modules(MPICH QUIET IMPORTED_TARGET mpich)
  find_program(CAIRN_MPIEXEC_MPICH NAMES mpiexec.mpich mpiexec HINTS ${MPICH_PREFIX}/bin)
  if(MPICH_FOUND AND CAIRN_MPIEXEC_MPICH)
    cairn_add_mpi(mpich PkgConfig::MPICH ${CAIRN_MPIEXEC_MPICH} -np)
  endif()
endmacro()

macro(cairn_find_system)
  find_package(MPI COMPONENTS C)
  if(MPI_C_FOUND)
    set(launch ${MPIEXEC_EXECUTABLE} ${MPIEXEC_PREFLAGS})
    execute_process(COMMAND ${MPIEXEC_EXECUTABLE} --version OUTPUT_VARIABLE version ERROR_QUIET)
    if(version MATCHES "Open MPI|OpenRTE")
      list(APPEND launch ${CAIRN_LAUNCH_OPTIONS_OPENMPI})
    endif()
    cairn_add_mpi(system MPI::MPI_C ${launch} ${MPIEXEC_NUMPROC_FLAG})
  endif()
endmacro()

if(CAIRN_MPI STREQUAL "auto")
  # The sanitizers see errors everywhere in an MPI that is built without them; there the same code
  # runs over a Team.
  if(NOT CAIRN_SANITIZE)
    cairn_find_openmpi()
    cairn_find_mpich()
    if(NOT CAIRN_MPI_FLAVOURS)
      cairn_find_system()
    endif()
  endif()
elseif(NOT CAIRN_MPI STREQUAL "none")
  foreach(flavour IN LISTS CAIRN_MPI)
    if(NOT flavour MATCHES "^(openmpi|mpich|system)$")
      message(FATAL_ERROR "CAIRN_MPI: \"${flavour}\" is none of openmpi, mpich, system")
    endif()
    cmake_language(CALL cairn_find_${flavour})
    if(NOT flavour IN_LIST CAIRN_MPI_FLAVOURS)
      message(FATAL_ERROR "CAIRN_MPI asks for ${flavour}, which is not installed")
    endif()
  endforeach()
endif()
if(CAIRN_MPI_FLAVOURS)
  list(JOIN CAIRN_MPI_FLAVOURS ", " flavours)
  message(STATUS "MPI: ${flavours}")
else()
  message(STATUS "MPI: none")
endif()
