"""The command cne: python -m cnembed runs the program."""
import os
import subprocess
import sys

from ._program import program


def main():
    command = [program(), *sys.argv[1:]]
    if os.name == "posix":
        os.execv(command[0], command)
    sys.exit(subprocess.call(command))  # execv of Windows does not wait


if __name__ == "__main__":
    main()
