"""The command cne: python -m cnembed runs the program."""
import os
import shutil
import subprocess
import sys


def program():
    """Return the path of the program: $CNEMBED_PROGRAM, the package's own, or the one on PATH."""
    name = "cne.exe" if os.name == "nt" else "cne"
    own = os.path.join(os.path.dirname(os.path.abspath(__file__)), name)
    path = os.environ.get("CNEMBED_PROGRAM") or (own if os.path.exists(own) else shutil.which(name))
    if not path:
        raise FileNotFoundError("the program cne is missing: install the package from a wheel, or name the program in the environment variable CNEMBED_PROGRAM")
    return os.path.abspath(path)


def main():
    """Run the program with the arguments of this process."""
    command = [program(), *sys.argv[1:]]
    if os.name == "posix":
        os.execv(command[0], command)
    sys.exit(subprocess.call(command))  # execv of Windows does not wait


if __name__ == "__main__":
    main()
