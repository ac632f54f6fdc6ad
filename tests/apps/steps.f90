! Writes one formatted and one unformatted file per rank and step, as Fortran codes do, and goes on from the newest.
! steps LAST [LONG]: it computes for a minute after step LONG.
program steps
  use mpi
  implicit none
  integer, parameter :: numbers = 2000
  integer :: rank, error, step, newest, from, last, long, unit, i
  double precision :: values(numbers)
  logical :: is_there
  character(len=64) :: name, argument

  call mpi_init(error)
  call mpi_comm_rank(MPI_COMM_WORLD, rank, error)
  call get_command_argument(1, argument)
  read (argument, *) last
  call get_command_argument(2, argument)
  long = 0
  if (argument /= '') read (argument, *) long
  newest = 0
  do step = 1, last
    inquire (file=name_of('text', step), exist=is_there)
    if (is_there) newest = step
  end do
  call mpi_allreduce(newest, from, 1, MPI_INTEGER, MPI_MIN, MPI_COMM_WORLD, error)
  if (from > 0) call check(from)
  if (rank == 0) print '(a, i0)', 'started from ', from
  flush (6)
  do step = from + 1, last
    call execute_pause()
    call mpi_barrier(MPI_COMM_WORLD, error)
    do i = 1, numbers
      values(i) = step * 1d6 + rank * 1d4 + i
    end do
    open (newunit=unit, file=name_of('text', step), status='replace', action='write')
    write (unit, '(es25.17)') values
    close (unit)
    open (newunit=unit, file=name_of('bin', step), form='unformatted', access='direct', recl=8*numbers, &
          status='replace')
    write (unit, rec=1) values
    close (unit)
    if (rank == 0) print '(a, i0)', 'wrote ', step
    flush (6)
    if (step == long) call sleep(60)
  end do
  call mpi_finalize(error)

contains

  function name_of(kind, number) result(path)
    character(len=*), intent(in) :: kind
    integer, intent(in) :: number
    character(len=64) :: path
    write (path, '(a, ".", i0, ".", i0)') kind, number, rank
  end function name_of

  subroutine check(number)
    integer, intent(in) :: number
    double precision :: text(numbers), binary(numbers)
    open (newunit=unit, file=name_of('text', number), status='old', action='read')
    read (unit, *) text
    close (unit)
    open (newunit=unit, file=name_of('bin', number), form='unformatted', access='direct', recl=8*numbers, &
          status='old', action='read')
    read (unit, rec=1) binary
    close (unit)
    do i = 1, numbers
      if (text(i) /= number * 1d6 + rank * 1d4 + i .or. binary(i) /= text(i)) then
        print '(a)', 'WRONG VALUES'
        call mpi_abort(MPI_COMM_WORLD, 4, error)
      end if
    end do
  end subroutine check

  subroutine execute_pause()
    integer :: begin, now, rate
    call system_clock(begin, rate)
    do
      call system_clock(now)
      if (now - begin > rate / 4) exit
    end do
  end subroutine execute_pause
end program steps
