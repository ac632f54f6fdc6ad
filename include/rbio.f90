! Cairn's Fortran interface of rbIO, shared files written by a few ranks for all. The file rbio.h
! describes what each call does. Each call returns its result in its last argument: RBIO_SUCCESS or
! one of the CAIRN_E_ codes. Flags are integers: 0 is false.
!
!   real(8), allocatable, target :: density(:)
!   type(rbio_series) :: series
!   call rbio_open(MPI_COMM_WORLD, 'checkpoints', 'files=1', series, ierror)
!   call rbio_add_field(series, 'density', RBIO_FLOAT64, 1, c_loc(density), &
!                       size(density, kind=c_int64_t), field, ierror)
!
! - A communicator is an integer: of the module mpi_f08, pass comm%MPI_VAL.
! - Data are given by address: c_loc(array), of a contiguous array with the attribute target. It
!   must not be deallocated before the series is closed or the field is set anew. A rank without
!   elements passes c_null_ptr and 0_c_int64_t.
! - An element of several components is the first dimension of the array: u(3, n) is a field of n
!   elements with 3 components.
! - Field numbers count from 0, as in C.
! SPDX-License-Identifier: BSD-3-Clause
module rbio
  use, intrinsic :: iso_c_binding, only: c_double, c_int64_t, c_loc, c_null_ptr, c_ptr
  implicit none
  public

  integer, parameter :: RBIO_SUCCESS = 0
  integer(c_int64_t), parameter :: RBIO_NEWEST = -1
  integer, parameter :: RBIO_ALL_RANKS = -1
  integer(c_int64_t), parameter :: RBIO_NO_TICKET = 0

  integer, parameter :: RBIO_INT8 = 1
  integer, parameter :: RBIO_INT16 = 2
  integer, parameter :: RBIO_INT32 = 3
  integer, parameter :: RBIO_INT64 = 4
  integer, parameter :: RBIO_UINT8 = 5
  integer, parameter :: RBIO_UINT16 = 6
  integer, parameter :: RBIO_UINT32 = 7
  integer, parameter :: RBIO_UINT64 = 8
  integer, parameter :: RBIO_FLOAT32 = 9
  integer, parameter :: RBIO_FLOAT64 = 10
  integer, parameter :: RBIO_COMPLEX64 = 11
  integer, parameter :: RBIO_COMPLEX128 = 12

  ! The modules scr and rbio have the same codes. A program that uses both gets these from one of
  ! them: use rbio, only: ...
  integer, parameter :: CAIRN_E_WRONG_STATE = 1
  integer, parameter :: CAIRN_E_DIFFERS = 2
  integer, parameter :: CAIRN_E_BAD_ARGUMENT = 3
  integer, parameter :: CAIRN_E_BAD_SETTING = 4
  integer, parameter :: CAIRN_E_IO = 5
  integer, parameter :: CAIRN_E_NO_SPACE = 6
  integer, parameter :: CAIRN_E_CORRUPT = 7
  integer, parameter :: CAIRN_E_LOST = 8
  integer, parameter :: CAIRN_E_NOT_FOUND = 10
  integer, parameter :: CAIRN_E_BUSY = 11
  integer, parameter :: CAIRN_E_NEWER_FORMAT = 12
  integer, parameter :: CAIRN_E_UNTRUSTED = 13

  type, bind(c) :: rbio_series
    integer(c_int64_t) :: handle = 0
  end type

  type, bind(c) :: rbio_statistics_t
    integer(c_int64_t) :: steps_begun
    integer(c_int64_t) :: steps_published
    integer(c_int64_t) :: steps_failed
    integer(c_int64_t) :: bytes
    real(c_double) :: begin_s
    real(c_double) :: buffer_wait_s
    integer(c_int64_t) :: written_bytes
    real(c_double) :: write_s
    integer(c_int64_t) :: peak_buffer_bytes
    integer(c_int64_t) :: reserved(7)
  end type

  interface
    subroutine rbio_open(comm, directory, options, series, ierror)
      import :: rbio_series
      integer, intent(in) :: comm
      character(len=*), intent(in) :: directory
      character(len=*), intent(in) :: options
      type(rbio_series), intent(out) :: series
      integer, intent(out) :: ierror
    end subroutine
    subroutine rbio_close(series, ierror)
      import :: rbio_series
      type(rbio_series), intent(inout) :: series
      integer, intent(out) :: ierror
    end subroutine
    subroutine rbio_add_field(series, name, type, components, data, count, field, ierror)
      import :: c_int64_t, c_ptr, rbio_series
      type(rbio_series), intent(in) :: series
      character(len=*), intent(in) :: name
      integer, intent(in) :: type
      integer, intent(in) :: components
      type(c_ptr), intent(in) :: data
      integer(c_int64_t), intent(in) :: count
      integer, intent(inout) :: field
      integer, intent(out) :: ierror
    end subroutine
    subroutine rbio_set_field(series, field, data, count, ierror)
      import :: c_int64_t, c_ptr, rbio_series
      type(rbio_series), intent(in) :: series
      integer, intent(in) :: field
      type(c_ptr), intent(in) :: data
      integer(c_int64_t), intent(in) :: count
      integer, intent(out) :: ierror
    end subroutine
    subroutine rbio_begin(series, step, ticket, ierror)
      import :: c_int64_t, rbio_series
      type(rbio_series), intent(in) :: series
      integer(c_int64_t), intent(in) :: step
      integer(c_int64_t), intent(out) :: ticket
      integer, intent(out) :: ierror
    end subroutine
    subroutine rbio_test(series, ticket, finished, ierror)
      import :: c_int64_t, rbio_series
      type(rbio_series), intent(in) :: series
      integer(c_int64_t), intent(in) :: ticket
      integer, intent(out) :: finished
      integer, intent(out) :: ierror
    end subroutine
    subroutine rbio_wait(series, ticket, ierror)
      import :: c_int64_t, rbio_series
      type(rbio_series), intent(in) :: series
      integer(c_int64_t), intent(in) :: ticket
      integer, intent(out) :: ierror
    end subroutine
    subroutine rbio_progress(series, ierror)
      import :: rbio_series
      type(rbio_series), intent(in) :: series
      integer, intent(out) :: ierror
    end subroutine
    subroutine rbio_restore(series, step, restored, ierror)
      import :: c_int64_t, rbio_series
      type(rbio_series), intent(in) :: series
      integer(c_int64_t), intent(in) :: step
      integer(c_int64_t), intent(inout) :: restored
      integer, intent(out) :: ierror
    end subroutine
    subroutine rbio_steps(series, steps, capacity, count, ierror)
      import :: c_int64_t, rbio_series
      type(rbio_series), intent(in) :: series
      integer(c_int64_t), intent(inout) :: steps(*)
      integer, intent(in) :: capacity
      integer, intent(inout) :: count
      integer, intent(out) :: ierror
    end subroutine
    subroutine rbio_stored_count(series, step, field, rank, count, ierror)
      import :: c_int64_t, rbio_series
      type(rbio_series), intent(in) :: series
      integer(c_int64_t), intent(in) :: step
      character(len=*), intent(in) :: field
      integer, intent(in) :: rank
      integer(c_int64_t), intent(inout) :: count
      integer, intent(out) :: ierror
    end subroutine
    subroutine rbio_stored_ranks(series, step, ranks, ierror)
      import :: c_int64_t, rbio_series
      type(rbio_series), intent(in) :: series
      integer(c_int64_t), intent(in) :: step
      integer, intent(inout) :: ranks
      integer, intent(out) :: ierror
    end subroutine
    subroutine rbio_statistics(series, statistics, ierror)
      import :: rbio_series, rbio_statistics_t
      type(rbio_series), intent(in) :: series
      type(rbio_statistics_t), intent(out) :: statistics
      integer, intent(out) :: ierror
    end subroutine
    subroutine rbio_error_text(series, text, ierror)
      import :: rbio_series
      type(rbio_series), intent(in) :: series
      character(len=*), intent(inout) :: text
      integer, intent(out) :: ierror
    end subroutine
  end interface
end module rbio
