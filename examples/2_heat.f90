! Lesson 2 in Fortran: heat spreading over a plate, checkpointed by Cairn.
!
!   2_heat_fortran COLUMNS ROWS STEPS EVERY RESULT
!
! The plate is cut into bands, one per rank, of COLUMNS columns with ROWS cells each. After every EVERY
! steps, each rank writes one file. The result (RESULT.<rank>) does not depend on whether, when or where
! the run was interrupted.
program heat
  use mpi_f08
  use scr
  use, intrinsic :: iso_fortran_env, only: int64, real64
  implicit none

  integer :: columns, rows, steps, every
  character(len=SCR_MAX_FILENAME) :: result
  integer :: rank, ranks, step, ierror
  logical :: guarded
  real(real64), allocatable :: now(:, :), next(:, :)

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  columns = number(1)
  rows = number(2)
  steps = number(3)
  every = number(4)
  call get_command_argument(5, result)
  ! Columns 0 and columns + 1 are copies of the neighbours' columns, or 0 at the edge of the plate.
  allocate (now(rows, 0:columns + 1), next(rows, 0:columns + 1), source=0.0_real64)

  call SCR_Init(ierror)
  guarded = ierror == SCR_SUCCESS
  if (.not. restarted()) call heat_up()
  if (rank == 0) print '(a, i0)', 'heat starts at step ', step
  do while (step < steps)
    call advance()
    if (guarded .and. mod(step, every) == 0) call checkpoint()
  end do
  if (guarded) call SCR_Finalize(ierror)
  if (.not. written(trim(result)//text(rank))) error stop 'cannot write the result'
  call MPI_Finalize()

contains

  integer function number(position)
    integer, intent(in) :: position
    character(len=32) :: word
    call get_command_argument(position, word)
    read (word, *) number
  end function

  function text(value)
    integer, intent(in) :: value
    character(len=:), allocatable :: text
    character(len=16) :: digits
    write (digits, '(i0)') value
    text = '.'//trim(digits)
  end function

  ! ---- physics ----

  ! Temperatures in [0, 1) without two equal columns.
  subroutine heat_up()
    integer :: row, column
    integer(int64) :: cell
    do column = 1, columns
      do row = 1, rows
        cell = (int(rank, int64)*columns + column - 1)*rows + row
        now(row, column) = modulo(real(cell, real64)*0.6180339887498949_real64, 1.0_real64)
      end do
    end do
    step = 0
  end subroutine

  subroutine advance()
    integer :: left, right
    left = merge(rank - 1, MPI_PROC_NULL, rank > 0)
    right = merge(rank + 1, MPI_PROC_NULL, rank + 1 < ranks)
    call MPI_Sendrecv(now(:, 1), rows, MPI_DOUBLE_PRECISION, left, 0, &
                      now(:, columns + 1), rows, MPI_DOUBLE_PRECISION, right, 0, &
                      MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    call MPI_Sendrecv(now(:, columns), rows, MPI_DOUBLE_PRECISION, right, 1, &
                      now(:, 0), rows, MPI_DOUBLE_PRECISION, left, 1, &
                      MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    next(1, 1:columns) = now(1, 1:columns)
    next(rows, 1:columns) = now(rows, 1:columns)
    next(2:rows - 1, 1:columns) = now(2:rows - 1, 1:columns) + 0.2_real64*( &
      now(2:rows - 1, 0:columns - 1) + now(2:rows - 1, 2:columns + 1) + &
      now(1:rows - 2, 1:columns) + now(3:rows, 1:columns) - 4*now(2:rows - 1, 1:columns))
    now(:, 1:columns) = next(:, 1:columns)
    step = step + 1
  end subroutine

  ! ---- files ----

  logical function written(path)
    character(len=*), intent(in) :: path
    integer :: unit, status, closed
    open (newunit=unit, file=path, form='unformatted', access='stream', status='replace', &
          iostat=status)
    written = status == 0
    if (.not. written) return
    write (unit, iostat=status) step, now(:, 1:columns)
    close (unit, iostat=closed)
    written = status == 0 .and. closed == 0
  end function

  logical function loaded(path)
    character(len=*), intent(in) :: path
    integer :: unit, status
    open (newunit=unit, file=path, form='unformatted', access='stream', status='old', &
          action='read', iostat=status)
    loaded = status == 0
    if (.not. loaded) return
    read (unit, iostat=status) step, now(:, 1:columns)
    close (unit)
    loaded = status == 0
  end function

  ! Where this rank writes or reads its file; blank after an error.
  function place(name)
    character(len=*), intent(in) :: name
    character(len=SCR_MAX_FILENAME) :: place
    place = ''
    call SCR_Route_file('heat/'//trim(name)//text(rank), place, ierror)
    if (ierror /= SCR_SUCCESS) place = ''
  end function

  ! ---- checkpoint and restart ----

  logical function restarted()
    character(len=SCR_MAX_FILENAME) :: name
    integer :: found
    restarted = .false.
    do while (guarded .and. .not. restarted)
      call SCR_Have_restart(found, name, ierror)
      if (ierror /= SCR_SUCCESS) error stop 'a checkpoint exists, but cannot be read now'
      if (found == 0) return
      call SCR_Start_restart(name, ierror)
      if (ierror /= SCR_SUCCESS) cycle  ! Cairn offers the next older one
      call SCR_Complete_restart(merge(1, 0, loaded(trim(place(name)))), ierror)
      restarted = ierror == SCR_SUCCESS
    end do
  end function

  subroutine checkpoint()
    character(len=SCR_MAX_FILENAME) :: name
    name = 'step'//text(step)
    call SCR_Start_output(name, SCR_FLAG_CHECKPOINT, ierror)
    if (ierror /= SCR_SUCCESS) return
    call SCR_Complete_output(merge(1, 0, written(trim(place(name)))), ierror)
    if (rank == 0 .and. ierror /= SCR_SUCCESS) print '(a)', 'this checkpoint failed; the older ones are kept'
  end subroutine

end program
