# CAIRN_PYTHON, the Python that job control and the tests run by: Debian's own first, as it is the one that
# python3-clustershell and python3-pytest belong to. And CAIRN_FROM_BIN_TO_LIBEXEC, the way from the command
# cairn to the programs that it finds there, so that what is installed can be moved.
find_program(CAIRN_PYTHON NAMES python3 PATHS /usr/bin NO_DEFAULT_PATH)
find_program(CAIRN_PYTHON NAMES python3 REQUIRED)

file(RELATIVE_PATH CAIRN_FROM_BIN_TO_LIBEXEC
  ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBEXECDIR}/cairn)
