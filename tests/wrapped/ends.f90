! Begins and ends MPI in the ways of Fortran: ends LAST ABORT_AT WAY. Rank 1 calls MPI_Abort in the middle of step ABORT_AT; WAY is
! init or thread, which begins with MPI_Init_thread. The test also compiles it with mpi_f08, and there without arguments for errors.
program ends
  use mpi
  implicit none
  integer, parameter :: numbers = 3000
  integer :: rank, error, step, newest, from, last, abort_at, provided, unit, i
  integer :: values(numbers)
  logical :: is_there
  character(len=64) :: argument

  call get_command_argument(1, argument)
  read (argument, *) last
  call get_command_argument(2, argument)
  read (argument, *) abort_at
  call get_command_argument(3, argument)
  if (argument == 'thread') then
    call mpi_init_thread(MPI_THREAD_SERIALIZED, provided, error)
    if (provided < MPI_THREAD_SINGLE) print '(a)', 'CANNOT BEGIN'
  else
    call mpi_init(error)
  end if
  call mpi_comm_rank(MPI_COMM_WORLD, rank, error)
  newest = 0
  do step = 1, last
    inquire (file=name_of(step), exist=is_there)
    if (is_there) newest = step
  end do
  call mpi_allreduce(newest, from, 1, MPI_INTEGER, MPI_MIN, MPI_COMM_WORLD, error)
  if (from > 0) then
    open (newunit=unit, file=name_of(from), form='unformatted', access='stream', status='old', action='read')
    read (unit) values
    close (unit)
    if (any(values /= [(number_at(from, i), i = 1, numbers)])) print '(a)', 'WRONG BYTES'
  end if
  if (rank == 0) print '(a, i0)', 'started from ', from
  flush (6)
  do step = from + 1, last
    call wait_ms(merge(600, 50, abort_at > 0))  ! until the step before is a checkpoint
    call mpi_barrier(MPI_COMM_WORLD, error)
    values = [(number_at(step, i), i = 1, numbers)]
    open (newunit=unit, file=name_of(step), form='unformatted', access='stream', status='replace', action='write')
    write (unit) values(1:numbers / 2)
    flush (unit)
    if (rank == 1 .and. step == abort_at) call mpi_abort(MPI_COMM_WORLD, 7, error)
    write (unit) values(numbers / 2 + 1:)
    close (unit)
  end do
  call mpi_finalize(error)

contains

  pure integer function number_at(number, place)
    integer, intent(in) :: number, place
    number_at = number * 1000000 + rank * 10000 + place
  end function number_at

  function name_of(number) result(path)
    integer, intent(in) :: number
    character(len=64) :: path
    write (path, '("data.", i0, ".", i0)') number, rank
  end function name_of

  subroutine wait_ms(duration)
    integer, intent(in) :: duration
    integer :: begin, now, rate
    call system_clock(begin, rate)
    do
      call system_clock(now)
      if (now - begin > rate / 1000 * duration) exit
    end do
  end subroutine wait_ms
end program ends
