! The modules mpi and scr together; a name with blanks at its end, a path that is read back.
program with_mpi_module
  use mpi
  use scr
  implicit none
  character(len=SCR_MAX_FILENAME) :: path, name
  character(len=3) :: short
  character(len=16) :: state
  integer :: ierror, found, unit, rank

  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  write (state, '(a, i0)') 'state.', rank
  call SCR_Init(ierror)
  call SCR_Have_restart(found, name, ierror)
  if (found /= 0) then
    call SCR_Have_restart(found, short, ierror)
    if (found /= 0 .or. ierror /= CAIRN_E_BAD_ARGUMENT) error stop 'a name that does not fit'
    call SCR_Start_restart(short, ierror)
    if (short /= 'fir' .or. ierror /= SCR_SUCCESS) error stop 'a restart that has begun'
    print '(2a)', 'restarted from ', trim(name)
    call SCR_Complete_restart(1, ierror)
  end if
  call SCR_Start_output('first one  ', SCR_FLAG_CHECKPOINT, ierror)
  call SCR_Route_file(state, path, ierror)
  open (newunit=unit, file=trim(path), status='new')
  write (unit, '(a)') 'data'
  close (unit)
  call SCR_Complete_output(1, ierror)
  if (ierror /= SCR_SUCCESS) error stop 'the checkpoint was not kept'
  call SCR_Finalize(ierror)
  call MPI_Finalize(ierror)
end program
