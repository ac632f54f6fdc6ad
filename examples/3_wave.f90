! A wave travels around a ring of cells. Each rank computes one part of the ring.
program wave_program
  use mpi_f08
  use scr
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
  integer :: rank, ranks, ierror
  logical :: ready
  ! Everything that a rank needs to continue: the step, and its part of the ring. wave(0) is a copy of
  ! the left neighbour's last cell.
  integer :: step
  real(real64) :: wave(0:cells)

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  call SCR_Init(ierror)  ! if it fails, it prints why, and the program runs without checkpoints
  call restart(ready)
  if (ready) call compute()
  call SCR_Finalize(ierror)
  call MPI_Finalize()
  if (.not. ready) error stop 1

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

  ! Where this rank writes or reads its file of the checkpoint; blank after an error.
  function path_of_file(checkpoint) result(path)
    character(len=*), intent(in) :: checkpoint
    character(len=SCR_MAX_FILENAME) :: path
    character(len=16) :: number
    write (number, '(i0)') rank
    path = ''
    call SCR_Route_file(trim(checkpoint)//'/rank.'//number, path, ierror)
    if (ierror /= SCR_SUCCESS) path = ''
  end function

  ! Returns 1 if the rank's file is complete, 0 if not: the value that SCR_Complete_output takes.
  integer function save_state(checkpoint) result(valid)
    character(len=*), intent(in) :: checkpoint
    integer :: unit, error, error_at_close
    valid = 0
    open (newunit=unit, file=path_of_file(checkpoint), form='unformatted', access='stream', &
          status='replace', action='write', iostat=error)
    if (error /= 0) return
    write (unit, iostat=error) step, wave
    close (unit, iostat=error_at_close)
    if (error == 0 .and. error_at_close == 0) valid = 1
  end function

  integer function load_state(checkpoint) result(valid)
    character(len=*), intent(in) :: checkpoint
    integer :: unit, error
    valid = 0
    open (newunit=unit, file=path_of_file(checkpoint), form='unformatted', access='stream', &
          status='old', action='read', iostat=error)
    if (error /= 0) return
    read (unit, iostat=error) step, wave
    close (unit)
    if (error == 0) valid = 1
  end function

  subroutine write_checkpoint()
    character(len=32) :: name
    write (name, '(a, i0)') 'step.', step
    call SCR_Start_output(name, SCR_FLAG_CHECKPOINT, ierror)
    if (ierror == SCR_SUCCESS) call SCR_Complete_output(save_state(name), ierror)
  end subroutine

  ! Restores the newest checkpoint that all ranks can load. Without one, begins at step 0. `continues`
  ! is false if there is a checkpoint that Cairn cannot read now.
  subroutine restart(continues)
    logical, intent(out) :: continues
    character(len=SCR_MAX_FILENAME) :: name
    integer :: found
    continues = .true.
    do
      call SCR_Have_restart(found, name, ierror)
      if (ierror /= SCR_SUCCESS .or. found == 0) exit
      call SCR_Start_restart(name, ierror)
      if (ierror /= SCR_SUCCESS) cycle
      call SCR_Complete_restart(load_state(name), ierror)
      if (ierror == SCR_SUCCESS) return
    end do
    continues = ierror == SCR_SUCCESS .or. ierror == CAIRN_E_DISABLED
    call begin()
  end subroutine

  subroutine compute()
    call report()
    do while (step < last_step)
      call advance()
      if (modulo(step, 10) == 0) then
        call write_checkpoint()
        call report()
      end if
    end do
  end subroutine

end program
