! What Fortran programs do with checkpoint files: formatted, unformatted, direct access, stream, append, inquire, newunit.
program io
  implicit none
  integer :: unit, i, number, size
  real(8) :: values(1000), back(1000)
  logical :: is_there
  character(len=200) :: name, line

  values = [(sqrt(real(i, 8)), i = 1, 1000)]
  open(newunit=unit, file='ckpt.1', form='unformatted', status='replace')
  write(unit) values
  close(unit)
  open(newunit=unit, file='ckpt.1', form='unformatted', status='old', action='read')
  read(unit) back
  close(unit)
  if (any(back /= values)) stop 1

  open(newunit=unit, file='ckpt.2', form='formatted')
  write(unit, '(a,i0)') 'step ', 2
  close(unit)
  open(newunit=unit, file='ckpt.2', position='append')
  write(unit, '(a)') 'appended'
  close(unit)
  open(newunit=unit, file='ckpt.2', status='old')
  read(unit, '(a)') line
  read(unit, '(a)') name
  inquire(unit=unit, name=name, size=size)
  close(unit)
  if (line /= 'step 2' .or. size /= 16) stop 2

  open(newunit=unit, file='ckpt.3', access='direct', recl=8)
  do i = 1, 10
    write(unit, rec=11 - i) real(i, 8)
  end do
  read(unit, rec=3) back(1)
  close(unit)
  if (back(1) /= 8) stop 3

  open(newunit=unit, file='ckpt.4', access='stream', form='unformatted')
  write(unit) values
  close(unit)
  inquire(file='ckpt.4', exist=is_there, size=size)
  if (.not. is_there .or. size /= 8000) stop 4
  inquire(file='ckpt.5', exist=is_there, number=number)
  if (is_there .or. number /= -1) stop 5
  open(newunit=unit, file='ckpt.4')
  close(unit, status='delete')
  inquire(file='ckpt.4', exist=is_there)
  if (is_there) stop 6
  open(newunit=unit, file='plain.txt')
  write(unit, '(a)') 'no checkpoint'
  close(unit)
  print '(a)', 'done'
end program
