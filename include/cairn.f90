! Cairn's Fortran interface of its own calls. The file cairn.h describes what each call does. Each call
! returns its result in its last argument: SCR_SUCCESS, CAIRN_TIMEOUT or one of the CAIRN_E_ codes of
! the module scr. The time limit of CAIRN_WAIT is a double: 10d0.
! SPDX-License-Identifier: BSD-3-Clause
module cairn
  implicit none
  public

  integer, parameter :: CAIRN_STATE_NONE = 0
  integer, parameter :: CAIRN_STATE_WRITING = 1
  integer, parameter :: CAIRN_STATE_WRITTEN = 2
  integer, parameter :: CAIRN_STATE_PROTECTED = 3
  integer, parameter :: CAIRN_STATE_FLUSHED = 4
  integer, parameter :: CAIRN_TIMEOUT = 100

  interface
    subroutine cairn_dataset_state(name, state, ierror)
      character(len=*), intent(in) :: name
      integer, intent(out) :: state
      integer, intent(out) :: ierror
    end subroutine
    subroutine cairn_wait(name, state, seconds, ierror)
      use, intrinsic :: iso_c_binding, only: c_double
      character(len=*), intent(in) :: name
      integer, intent(in) :: state
      real(c_double), intent(in) :: seconds
      integer, intent(out) :: ierror
    end subroutine
    subroutine cairn_computing_begin(ierror)
      integer, intent(out) :: ierror
    end subroutine
    subroutine cairn_computing_end(ierror)
      integer, intent(out) :: ierror
    end subroutine
  end interface
end module cairn
