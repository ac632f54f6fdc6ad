"""One module for each command that is a program of its own; each has main(arguments, native command)."""
