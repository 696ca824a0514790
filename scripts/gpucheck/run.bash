#!/usr/bin/env bash
# Carries out a step of the check of cne on this machine's GPU. Needs NVIDIA's
# driver and cuBLAS, which it looks for among CUDA's folders and Python's packages.
#
#   ./run STEP [-o FOLDER] [-minutes M] [-epochs N] [PACKAGE...]
#
# README says which steps there are. FOLDER is where report-STEP.json goes.
set -euo pipefail
if [ $# -eq 0 ]; then
  cat "$(dirname "${BASH_SOURCE[0]}")/README" >&2
  exit 2
fi
# The report's folder is one of where this was called.
args=("$@")
for ((i = 1; i + 1 < $#; i++)); do
  case ${args[i]} in
    -o | --o)
      mkdir -p "${args[i + 1]}"
      args[i + 1]=$(cd "${args[i + 1]}" && pwd)
      ;;
  esac
done
cd "$(dirname "${BASH_SOURCE[0]}")"

python=${PYTHON:-python3}
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
export GPUCHECK_SITES=${sites//$'\n'/:} GPUCHECK_LD_LIBRARY_PATH=${LD_LIBRARY_PATH:-}
[ -z "$libraries" ] || export LD_LIBRARY_PATH=$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
exec ./gpucheck "${args[@]}"
