! A wave travels around a ring of cells. Each rank computes one part of the ring.
program wave_program
  use mpi_f08
  use, intrinsic :: iso_c_binding, only: c_int
  use, intrinsic :: iso_fortran_env, only: output_unit, real64
  implicit none

  interface
    integer(c_int) function usleep(microseconds) bind(c)
      import :: c_int
      integer(c_int), value :: microseconds
    end function
  end interface

  integer, parameter :: cells = 10000, last_step = 60
  integer :: rank, ranks
  ! Everything that a rank needs to continue: the step, and its part of the ring. wave(0) is a copy of
  ! the left neighbour's last cell.
  integer :: step
  real(real64) :: wave(0:cells)

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  call begin()
  call compute()
  call MPI_Finalize()

contains

  subroutine begin()
    integer :: i
    step = 0
    wave(0) = 0
    wave(1:) = [(modulo(rank + i, 100), i=1, cells)]
  end subroutine

  subroutine advance()
    integer :: i
    integer(c_int) :: status
    call MPI_Sendrecv(wave(cells), 1, MPI_DOUBLE_PRECISION, modulo(rank + 1, ranks), 0, &
                      wave(0), 1, MPI_DOUBLE_PRECISION, modulo(rank - 1, ranks), 0, &
                      MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    do i = cells, 1, -1
      wave(i) = wave(i) + 0.4_real64*(wave(i - 1) - wave(i))
    end do
    step = step + 1
    status = usleep(50000_c_int)  ! in place of a longer computation
  end subroutine

  subroutine report()
    if (rank == 0) write (output_unit, '(a, i0, a, f0.6)') 'step ', step, ': ', wave(1)
    flush (output_unit)
  end subroutine

  subroutine compute()
    call report()
    do while (step < last_step)
      call advance()
      if (modulo(step, 10) == 0) call report()
    end do
  end subroutine

end program
