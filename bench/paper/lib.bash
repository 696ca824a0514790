# What the scripts of this folder have in common; they source it and call begin "$@". A
# script's comment at its head is its usage text. It takes
#
#   SCRIPT [-o OUT] MNIST-FOLDER [-- FLAGS]
#
# and gets cne (the program), out (folder of the runs), figures (folder of the pictures)
# and mnist. Runs of one name are shared by all scripts with one OUT; use another for
# other FLAGS. Scripts that need no MNIST set needs_mnist=no before begin, and those that
# run each configuration with several seeds set seeds, of which 0 is drawn.

set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
script=bench/paper/$(basename "$0")
out=$here/runs/paper
export CNE_PRESET=paper CNE_QUALITY_SPEARMAN_SAMPLE=5000 # for what a configuration does not say
mnist= needs_mnist=yes flags=() seeds=0 # needs_mnist and seeds may be set before begin

say() { echo "$script: $*" >&2; }

die() {
  say "$1"
  exit "${2:-1}"
}

# shellcheck source=bench/mnist.bash
source "$here/bench/mnist.bash"

# usage prints the comment at the head of the script, and what holds for all of them.
usage() {
  local folder=" MNIST-FOLDER" what="of cne train or cne spectrum, for all runs"
  [ "$needs_mnist" = yes ] || folder="" what="of the program that draws (-- -help prints them)"
  ! grep -q '^#   EPOCHS' "$0" || script="[EPOCHS=NUMBER] $script"
  printf 'usage: %s [-o OUT]%s [-- FLAGS]\n\n' "$script" "$folder"
  awk 'NR > 1 { if (!/^#/) exit; sub(/^# ?/, ""); print }' "$0"
  cat <<END

  OUT    folder of the runs, and in figures of the pictures (default runs/paper)
  FLAGS  further flags $what

What is done is not run again, and a run that was interrupted continues.
END
}

# begin "$@" reads the command line, and builds the program.
begin() {
  local positional=()
  while [ $# -gt 0 ]; do
    case $1 in
      -h | --help) usage; exit 0 ;;
      --) shift; flags=("$@"); break ;;
      -o)
        [ -n "${2:-}" ] || { usage >&2; exit 2; }
        out=$2
        shift 2
        ;;
      -*) usage >&2; exit 2 ;;
      *) positional+=("$1"); shift ;;
    esac
  done
  local wanted=1
  [ "$needs_mnist" = yes ] || wanted=0
  [ ${#positional[@]} -eq "$wanted" ] || { usage >&2; exit 2; }
  [[ ${EPOCHS:-1} =~ ^[1-9][0-9]*$ ]] || die "EPOCHS is $EPOCHS, but must be a whole number of at least 1" 2
  if [ "$wanted" -eq 1 ]; then
    [ -d "${positional[0]}" ] || die "there is no folder ${positional[0]:-without a name}; give the one with MNIST's four files"
    mnist=$(cd "${positional[0]}" && pwd)
    local part
    for part in train-images-idx3-ubyte train-labels-idx1-ubyte t10k-images-idx3-ubyte t10k-labels-idx1-ubyte; do
      mnist_file "$part" >/dev/null
    done
  fi
  figures=$out/figures
  mkdir -p "$figures"
  out=$(cd "$out" && pwd)
  figures=$out/figures
  cd "$here"
  tmp=$(mktemp -d)
  trap 'rm -rf "$tmp"' EXIT
  # cne ends by itself when it is interrupted, and the shell would continue.
  trap 'say "interrupted; the same command, given again, continues"; exit 130' INT
  cne=$tmp/cne
  go build -o "$cne" ./cmd/cne
}

# run NAME SEED CONFIGURATION FLAGS... does a run of cne train unless it is done, and
# resumes one that was interrupted.
run() {
  local name=$1-$2 seed=$2 config=$3 folder=$out/$1-$2
  shift 3
  if [ -s "$folder/metrics.json" ]; then
    say "$name is done"
    return
  fi
  say "$name"
  share_cache "$folder"
  if [ -s "$folder/checkpoint.safetensors" ] || [ -s "$folder/checkpoint.previous.safetensors" ]; then
    set -- --resume "$folder" # its configuration is in the folder
  else
    # --force, because an interrupted run may have left files.
    set -- --force --config "$config" --set "data.path=$mnist" --seed "$seed" --output "$folder" "$@" ${flags[@]+"${flags[@]}"}
  fi
  "$cne" train "$@" >/dev/null || die "$name failed; the same command, given again, continues"
}

# runs NAME CONFIGURATION FLAGS... does a run with each of seeds.
runs() {
  local name=$1 seed
  shift
  for seed in $seeds; do
    run "$name" "$seed" "$@"
  done
}

# spectrum NAME SEED FLAGS... does a run of cne spectrum unless it is done.
spectrum() {
  local name=$1-$2 seed=$2 folder=$out/$1-$2
  shift 2
  if [ -s "$folder/spectrum.json" ]; then
    say "$name is done"
    return
  fi
  say "$name"
  share_cache "$folder"
  "$cne" spectrum --force --set "data.path=$mnist" --seed "$seed" --output "$folder" "$@" ${flags[@]+"${flags[@]}"} >/dev/null ||
    die "$name failed; the same command, given again, begins it again"
}

# spectra NAME FLAGS... makes the spectra of Neg-t-SNE with each of seeds, draws the
# embeddings of the first (NAME.png), and sets folders, a list for the program that draws.
spectra() {
  local name=$1 seed
  shift
  folders=""
  for seed in $seeds; do
    spectrum "$name" "$seed" --config configs/mnist-negtsne.yaml "$@"
    folders+=${folders:+,}$out/$name-$seed
  done
  cp "${folders%%,*}/spectrum.png" "$figures/$name.png"
}

# by_negatives LOSS START M... does the runs of a loss with each number M of negatives and
# each of seeds, one after the other, and sets names, and panels for the first seed. START
# says what comes before: early (250 epochs with 5 negatives, and then 500), or pca or
# random (750 epochs from the principal components, or from random positions). NC-t-SNE's Z
# starts again after an early phase, as in the paper's program, which begins another run
# there. After an early phase the quality is measured every 10 epochs.
by_negatives() {
  local loss=$1 start=$2 m again="" how=()
  shift 2
  names=() panels=()
  [ "$loss" != nctsne ] || again=", log_z: 0"
  for m in "$@"; do
    case $start in
      early)
        how=(--set train.epochs=null --set output.metrics_every=10
          --set "train.phases=[{epochs: 250, negatives: 5}, {epochs: 500, negatives: $m$again}]")
        ;;
      *) how=(--set "model.init=$start" --set "loss.negatives=$m") ;;
    esac
    runs "$loss-$start-m$m" "configs/mnist-$loss.yaml" "${how[@]}"
    names+=("$loss-$start-m$m")
    panels+=("$(start_title "$start"), m = $m=$loss-$start-m$m-0")
  done
}

# network_of_all LOSS EPOCHS trains the network 784-100-100-100-2 for EPOCHS epochs on all
# 70 000 images, as the paper does, with pixels from 0 to 255;
# measures the quality every 10 epochs, and sets name.
network_of_all() {
  local loss=$1 epochs=$2
  name=parametric-$loss-all-$epochs
  run "$name" 0 "configs/mnist-parametric-$loss.yaml" --epochs "$epochs" --set output.metrics_every=10 \
    --set "data.scale=none" --set "data.labels=[]" --set data.holdout=null --set "data.holdout_labels=[]"
}

# start_title START prints it for people.
start_title() {
  case $1 in
    early) echo "early phase" ;;
    pca) echo "components" ;;
    *) echo "random" ;;
  esac
}

# strip PICTURE COLUMNS TITLE=RUN... draws runs side by side.
strip() {
  local picture=$figures/$1 columns=$2 panel args=()
  shift 2
  for panel in "$@"; do
    args+=(--title "${panel%=*}" "$out/${panel##*=}")
  done
  "$cne" plot --columns "$columns" -o "$picture" "${args[@]}" >/dev/null
  say "drew $picture"
}

# curves PICTURE RUN... draws what was measured during runs.
curves() {
  local picture=$figures/$1
  shift
  "$cne" plot --metrics -o "$picture" "${@/#/$out/}" >/dev/null
  say "drew $picture"
}

# peer NAME METHOD FLAGS... embeds the points of the run negtsne-0, or $of-0, into NAME-0
# with a program of others, by bench/paper/peers.py with its METHOD and FLAGS, unless that
# is done.
peer() {
  local name=$1-0 method=$2
  shift 2
  if [ -s "$out/$name/program.json" ]; then
    say "$name is done"
    return
  fi
  say "$name"
  "${PYTHON:-/usr/bin/python3}" bench/paper/peers.py "$method" "$out/${of:-negtsne}-0" "$out/$name" "$@" >/dev/null ||
    die "$name failed; the same command, given again, begins it again"
}

# measure RUN EMBEDDING... prints the figures of a run and of embeddings of its points.
measure() { "$cne" evaluate --quiet "${@/#/$out/}"; }

# table NAME... prints the figures of runs, the mean over their seeds.
table() { go run -C bench ./summarise "$out" "$@"; }
