! With SCR_ENABLE=0 a program goes on without checkpoints: names are given back as they are.
program disabled
  use mpi_f08
  use scr
  implicit none
  character(len=SCR_MAX_FILENAME) :: path
  integer :: ierror, found

  call MPI_Init()
  call SCR_Init(ierror)
  call expect(ierror == CAIRN_E_DISABLED, 'SCR_Init')
  call SCR_Config('no equals sign and no key', path, ierror)
  call expect(ierror /= SCR_SUCCESS, 'SCR_Config')
  found = 1
  call SCR_Have_restart(found, path, ierror)
  call expect(ierror == CAIRN_E_DISABLED .and. found == 0, 'SCR_Have_restart')
  path = 'untouched'
  call SCR_Route_file('state', path, ierror)
  call expect(ierror == CAIRN_E_DISABLED .and. path == 'state', 'SCR_Route_file')
  call MPI_Finalize()
  print '(a)', 'went on without'

contains

  subroutine expect(good, what)
    logical, intent(in) :: good
    character(len=*), intent(in) :: what
    if (.not. good) error stop what
  end subroutine

end program
