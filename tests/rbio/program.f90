! A Fortran program makes every call of the module rbio: program DIRECTORY, on two ranks.
program all_calls
  use mpi
  use rbio
  use, intrinsic :: iso_fortran_env, only: int64, real64
  implicit none

  integer :: rank, ierror, field, count, finished, ranks
  integer(int64) :: ticket, restored, elements, steps(2)
  real(real64), target :: u(3, 4)
  integer, allocatable, target :: none(:)
  character(len=256) :: directory
  character(len=2048) :: text
  type(rbio_series) :: series
  type(rbio_statistics_t) :: statistics

  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  call get_command_argument(1, directory)

  call rbio_open(MPI_COMM_WORLD, directory, 'gruop=2', series, ierror)
  call expect('open with a wrong key', ierror, CAIRN_E_BAD_SETTING)
  call rbio_error_text(series, text, ierror)
  if (index(text, 'did you mean group?') == 0) error stop 'text of the error'
  call rbio_open(MPI_COMM_WORLD, directory, ' ', series, ierror)
  call expect('open', ierror, RBIO_SUCCESS)
  call rbio_add_field(series, 'u', RBIO_FLOAT64, 3, c_loc(u), 4_int64, field, ierror)
  call expect('add_field', ierror, RBIO_SUCCESS)
  call expect('the first field', field, 0)
  call rbio_add_field(series, 'none', RBIO_INT32, 1, c_null_ptr, 0_int64, field, ierror)
  call expect('add_field without data', ierror, RBIO_SUCCESS)
  allocate (none(rank))
  none = 7
  if (rank > 0) call rbio_set_field(series, field, c_loc(none), int(rank, int64), ierror)
  call expect('set_field', ierror, RBIO_SUCCESS)

  u = reshape([(100*rank + real(count, real64), count=1, 12)], [3, 4])
  call rbio_begin(series, 5_int64, ticket, ierror)
  call expect('begin', ierror, RBIO_SUCCESS)
  u = 0
  call rbio_progress(series, ierror)
  call expect('progress', ierror, RBIO_SUCCESS)
  call rbio_wait(series, ticket, ierror)
  call expect('wait', ierror, RBIO_SUCCESS)
  call rbio_test(series, ticket, finished, ierror)
  call expect('test', finished, 1)
  call rbio_restore(series, RBIO_NEWEST, restored, ierror)
  call expect('restore', ierror, RBIO_SUCCESS)
  call expect('the restored step', int(restored), 5)
  if (any(u /= reshape([(100*rank + real(count, real64), count=1, 12)], [3, 4]))) error stop 'bytes'
  call rbio_restore(series, 6_int64, restored, ierror)
  call expect('restore of no step', ierror, CAIRN_E_NOT_FOUND)
  call rbio_steps(series, steps, size(steps), count, ierror)
  call expect('steps', count, 1)
  call expect('the first step', int(steps(1)), 5)
  call rbio_stored_count(series, 5_int64, 'none', RBIO_ALL_RANKS, elements, ierror)
  call expect('stored_count', int(elements), 1)
  call rbio_stored_ranks(series, RBIO_NEWEST, ranks, ierror)
  call expect('stored_ranks', ranks, 2)
  call rbio_statistics(series, statistics, ierror)
  call expect('statistics', int(statistics%steps_published), 1)
  call rbio_close(series, ierror)
  call expect('close', ierror, RBIO_SUCCESS)
  call rbio_begin(series, 6_int64, ticket, ierror)
  call expect('begin after close', ierror, CAIRN_E_WRONG_STATE)
  call MPI_Finalize(ierror)
  if (rank == 0) print '(a)', 'all calls made'

contains

  subroutine expect(what, actual, expected)
    character(len=*), intent(in) :: what
    integer, intent(in) :: actual, expected
    if (actual == expected) return
    print '(2a, i0, a, i0)', what, ' is ', actual, ', not ', expected
    error stop 1
  end subroutine

end program
