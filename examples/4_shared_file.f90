! Lesson 4: all ranks write one shared file per step, and any number of ranks restores it.
program shared_file
  use mpi_f08
  use rbio
  use, intrinsic :: iso_fortran_env, only: int64, output_unit, real64
  implicit none

  integer(int64), parameter :: all_cells = 100000, last_step = 60, interval = 10
  integer :: rank, ranks, field, ierror
  integer(int64) :: cells, step, ticket
  ! This rank's part of a ring of cells. wave(0) is a copy of the left neighbour's last cell.
  real(real64), allocatable, target :: wave(:)
  type(rbio_series) :: series
  logical :: ready

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  call divide()
  step = 0
  call rbio_open(MPI_COMM_WORLD%MPI_VAL, 'shared', 'files=1 keep=2', series, ierror)
  ready = ierror == RBIO_SUCCESS
  if (ready) then
    call rbio_add_field(series, 'wave', RBIO_FLOAT64, 1, c_loc(wave(1)), cells, field, ierror)
    ready = ierror == RBIO_SUCCESS
  end if
  if (ready) call restart()
  do while (ready .and. step < last_step)
    call advance()
    step = step + 1
    ! The wave may change as soon as rbio_begin returns. After an error, which rank 0 prints, the
    ! program continues, and the steps before are still there. The error is that of an earlier
    ! step, so the second call begins this one.
    ierror = RBIO_SUCCESS
    if (modulo(step, interval) == 0) call rbio_begin(series, step, ticket, ierror)
    if (ierror /= RBIO_SUCCESS) call rbio_begin(series, step, ticket, ierror)
  end do
  if (ready .and. rank == 0) write (output_unit, '(a, i0, a, f0.6)') 'step ', step, ': ', wave(1)
  ! Waits until all steps are durable.
  if (series%handle /= 0) then
    call rbio_close(series, ierror)
    ready = ready .and. ierror == RBIO_SUCCESS
  end if
  call MPI_Finalize()
  if (.not. ready) error stop 1

contains

  ! The ring may be divided differently in each run: a restore only needs the order of the cells.
  subroutine divide()
    integer(int64) :: first, i
    first = all_cells*rank/ranks
    cells = all_cells*(rank + 1)/ranks - first
    allocate (wave(0:cells))
    wave(0) = 0
    wave(1:) = [(real(modulo(first + i, 100_int64), real64), i=1, cells)]
  end subroutine

  subroutine advance()
    integer(int64) :: i
    call MPI_Sendrecv(wave(cells), 1, MPI_DOUBLE_PRECISION, modulo(rank + 1, ranks), 0, &
                      wave(0), 1, MPI_DOUBLE_PRECISION, modulo(rank - 1, ranks), 0, &
                      MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    do i = cells, 1, -1
      wave(i) = wave(i) + 0.4_real64*(wave(i - 1) - wave(i))
    end do
  end subroutine

  ! Restores the newest step, if there is one. Not ready if there is one that cannot be read: a
  ! program that began anew would replace it.
  subroutine restart()
    call rbio_restore(series, RBIO_NEWEST, step, ierror)
    if (ierror == CAIRN_E_NOT_FOUND) return  ! the first run
    ready = ierror == RBIO_SUCCESS
    if (ready .and. rank == 0) write (output_unit, '(a, i0)') 'restored step ', step
  end subroutine

end program
