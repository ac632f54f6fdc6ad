! Cairn's Fortran interface: the calls of SCR 3. The file scr.h describes what each call does and in
! which order the calls are made. Each call returns its result in its last argument: SCR_SUCCESS or one
! of the CAIRN_E_ codes. Flags and "valid" are integers: 0 is false. Strings that a call returns are
! padded with blanks. A string that is too short for its value gives CAIRN_E_BAD_ARGUMENT;
! SCR_MAX_FILENAME characters are always enough. Only SCR_START_RESTART truncates a name that is too
! long, because the restart has begun by then.
! SPDX-License-Identifier: BSD-3-Clause
module scr
  implicit none
  public

  integer, parameter :: SCR_SUCCESS = 0
  integer, parameter :: SCR_MAX_FILENAME = 1024
  integer, parameter :: SCR_FLAG_NONE = 0
  integer, parameter :: SCR_FLAG_CHECKPOINT = 1
  integer, parameter :: SCR_FLAG_OUTPUT = 2
  integer, parameter :: CAIRN_E_WRONG_STATE = 1
  integer, parameter :: CAIRN_E_DIFFERS = 2
  integer, parameter :: CAIRN_E_BAD_ARGUMENT = 3
  integer, parameter :: CAIRN_E_BAD_SETTING = 4
  integer, parameter :: CAIRN_E_IO = 5
  integer, parameter :: CAIRN_E_NO_SPACE = 6
  integer, parameter :: CAIRN_E_CORRUPT = 7
  integer, parameter :: CAIRN_E_LOST = 8
  integer, parameter :: CAIRN_E_WRONG_RANKS = 9
  integer, parameter :: CAIRN_E_NOT_FOUND = 10
  integer, parameter :: CAIRN_E_BUSY = 11
  integer, parameter :: CAIRN_E_NEWER_FORMAT = 12
  integer, parameter :: CAIRN_E_UNTRUSTED = 13
  integer, parameter :: CAIRN_E_INVALID = 14
  integer, parameter :: CAIRN_E_DISABLED = 15
  integer, parameter :: CAIRN_E_NOT_COPIED = 16

  interface
    subroutine scr_init(ierror)
      integer, intent(out) :: ierror
    end subroutine
    subroutine scr_finalize(ierror)
      integer, intent(out) :: ierror
    end subroutine
    subroutine scr_get_version(version, ierror)
      character(len=*), intent(inout) :: version
      integer, intent(out) :: ierror
    end subroutine
    subroutine scr_config(config, value, ierror)
      character(len=*), intent(in) :: config
      character(len=*), intent(inout) :: value
      integer, intent(out) :: ierror
    end subroutine
    subroutine scr_should_exit(flag, ierror)
      integer, intent(out) :: flag
      integer, intent(out) :: ierror
    end subroutine
    subroutine scr_need_checkpoint(flag, ierror)
      integer, intent(out) :: flag
      integer, intent(out) :: ierror
    end subroutine
    subroutine scr_route_file(name, file, ierror)
      character(len=*), intent(in) :: name
      character(len=*), intent(inout) :: file
      integer, intent(out) :: ierror
    end subroutine
    subroutine scr_have_restart(flag, name, ierror)
      integer, intent(out) :: flag
      character(len=*), intent(inout) :: name
      integer, intent(out) :: ierror
    end subroutine
    subroutine scr_start_restart(name, ierror)
      character(len=*), intent(inout) :: name
      integer, intent(out) :: ierror
    end subroutine
    subroutine scr_complete_restart(valid, ierror)
      integer, intent(in) :: valid
      integer, intent(out) :: ierror
    end subroutine
    subroutine scr_start_checkpoint(ierror)
      integer, intent(out) :: ierror
    end subroutine
    subroutine scr_complete_checkpoint(valid, ierror)
      integer, intent(in) :: valid
      integer, intent(out) :: ierror
    end subroutine
    subroutine scr_start_output(name, flags, ierror)
      character(len=*), intent(in) :: name
      integer, intent(in) :: flags
      integer, intent(out) :: ierror
    end subroutine
    subroutine scr_complete_output(valid, ierror)
      integer, intent(in) :: valid
      integer, intent(out) :: ierror
    end subroutine
    subroutine scr_current(name, ierror)
      character(len=*), intent(in) :: name
      integer, intent(out) :: ierror
    end subroutine
    subroutine scr_drop(name, ierror)
      character(len=*), intent(in) :: name
      integer, intent(out) :: ierror
    end subroutine
    subroutine scr_delete(name, ierror)
      character(len=*), intent(in) :: name
      integer, intent(out) :: ierror
    end subroutine
  end interface
end module scr
