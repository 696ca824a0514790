"""The command cne: python -m cnembed runs the program."""
import os
import shutil
import subprocess
import sys


NAME = "cne.exe" if os.name == "nt" else "cne"
OWN = os.path.join(os.path.dirname(os.path.abspath(__file__)), NAME)  # in a wheel


def program():
    """Return the path of the program: $CNEMBED_PROGRAM, the package's own, or the one on PATH."""
    named = os.path.expanduser(os.environ.get("CNEMBED_PROGRAM", ""))
    path = shutil.which(named) or named or (OWN if os.path.exists(OWN) else shutil.which(NAME))
    if not path:
        raise FileNotFoundError("the program cne is missing: install the package from a wheel, or name the program in the environment variable CNEMBED_PROGRAM")
    return os.path.abspath(path)


def main():
    """Run the package's program with the arguments of this process."""
    command = [OWN, *sys.argv[1:]]
    if os.name == "posix":
        os.execv(command[0], command)
    sys.exit(subprocess.call(command))  # execv of Windows does not wait


if __name__ == "__main__":
    main()
