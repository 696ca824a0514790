#!/usr/bin/env bash
# Carries out steps of the check of cne on this machine's GPU. Needs NVIDIA's driver
# and cuBLAS, which it looks for among CUDA's folders and Python's packages.
#
#   ./run [STEP...] [FLAG...]
#
# README says which steps and flags there are; without a step, all are carried out.
set -euo pipefail
die() {
  echo "run: $1" >&2
  exit 1
}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
case ${1:-} in
  -h | -help | --help) cat "$here/README"; exit 0 ;;
esac
python=${PYTHON:-python3}

# The programs. A folder that was copied anew may have others than were unpacked.
again="make it again with scripts/gpu-check --parts programs, and copy it here"
archive=$here/programs.tar.xz programs=$here/programs
if [ -s "$archive" ]; then
  sum=$(cksum <"$archive")
  if [ "$(cat "$programs/archive" 2>/dev/null)" != "$sum" ]; then
    { rm -rf "$programs" "$programs.part" && mkdir "$programs.part"; } 2>/dev/null ||
      die "nothing can be written into $here, where the programs are unpacked and runs are kept; copy it to a folder where that is allowed"
    # tar needs xz; Python has its own.
    if ! tar -xJf "$archive" -C "$programs.part" 2>/dev/null; then
      "$python" -c 'import sys, tarfile; tarfile.open(sys.argv[1]).extractall(sys.argv[2])' "$archive" "$programs.part" >/dev/null 2>&1 ||
        die "programs.tar.xz is unpacked neither by tar with xz nor by $python: it is damaged, or neither is here; $again"
    fi
    mv "$programs.part/programs" "$programs" 2>/dev/null || die "programs.tar.xz does not have the programs; $again"
    rmdir "$programs.part"
    echo "$sum" >"$programs/archive"
  fi
elif [ ! -e "$programs" ]; then
  die "the part programs is missing (there is no programs.tar.xz beside run); $again"
fi
[ -x "$programs/gpucheck" ] || die "there is no programs/gpucheck beside run; $again"

# The driver compiles the kernels for the GPU at hand, and keeps what it compiled in
# this folder. Its usual one is in the home folder; where that cannot be written, each
# process compiles all of them again.
cache=
writable() { mkdir -p "$1" 2>/dev/null && [ -d "$1" ] && [ -w "$1" ] && touch "$1/.gpucheck" 2>/dev/null && rm -f "$1/.gpucheck"; }
for folder in ${CUDA_CACHE_PATH:+"$CUDA_CACHE_PATH"} "$here/cuda-cache" "${TMPDIR:-/tmp}/cne-cuda-cache-$(id -u)"; do
  if writable "$folder"; then
    cache=$folder
    break
  fi
done
if [ -n "$cache" ]; then
  export CUDA_CACHE_PATH=$cache
else
  echo "run: no folder for the driver's cache can be written (CUDA_CACHE_PATH, beside run, or TMPDIR), so that each process compiles the kernels again that it uses; how long that takes has not been measured" >&2
fi

# The libraries. CUDA 12's wheels have a folder for each, CUDA 13's one for all but
# cuDNN, which has its own in both; cuDNN 9 compiles some of its kernels by nvrtc.
sites=$("$python" -c 'import site, sys, sysconfig; print("\n".join(dict.fromkeys([sysconfig.get_paths()["purelib"], *site.getsitepackages(), site.getusersitepackages(), *sys.path])))' 2>/dev/null) || sites=
folders=()
while read -r site; do
  [ -n "$site" ] && [ -d "$site/nvidia" ] && folders+=("$site"/nvidia/*/lib)
done <<<"$sites"
folders+=(/usr/local/cuda/lib64 /usr/local/cuda*/lib64 /usr/local/cuda*/targets/x86_64-linux/lib "${CONDA_PREFIX:-/nonexistent}/lib" /opt/conda/lib)
libraries=
# add NAME adds the first folder with a library to the list.
add() {
  local folder found
  for folder in "${folders[@]}"; do
    found=("$folder/$1".so.[0-9]*)
    if [ -e "${found[0]}" ]; then
      case :$libraries: in *":$folder:"*) ;; *) libraries=${libraries:+$libraries:}$folder ;; esac
      return
    fi
  done
}
add libcublas
add libcublasLt
add libcudnn
add libnvrtc
export GPUCHECK_SITES=${sites//$'\n'/:} GPUCHECK_LD_LIBRARY_PATH=${LD_LIBRARY_PATH:-}
[ -z "$libraries" ] || export LD_LIBRARY_PATH=$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
exec "$programs/gpucheck" -in "$here" "$@"
