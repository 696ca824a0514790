# What .ci/run and .ci/full have in common; they source it in the folder of the repository.

tmp=$(mktemp -d)
step=start
jobs=$(($(getconf _NPROCESSORS_ONLN) + 1)) # at a time, since some wait
export GOFLAGS="${GOFLAGS:-} -p=$jobs -trimpath" # without paths, the build cache serves every clone
unchecked=()
staticcheck=honnef.co/go/tools/cmd/staticcheck@v0.8.2
assembly=(./internal/simd ./internal/blas) # the packages with assembly

# say STEP names what comes next.
say() {
  step=$1
  printf '\n== %s (%d s so far)\n' "$step" "$SECONDS"
}

fail() {
  printf '\nFAILED: %s: %s\n' "$step" "$1" >&2
  exit 1
}
trap 'fail "the command above ended with an error (line $LINENO of $0)"' ERR

# skip WHAT WHY records what is not checked here.
skip() {
  unchecked+=("$1, since $2")
  echo "not checked: $1, since $2"
}

# quietly COMMAND… prints what a command says only if it fails.
quietly() {
  "$@" >"$tmp/log" 2>&1 || { cat "$tmp/log"; fail "$1 ended with an error"; }
}

# aside NAME COMMAND… runs a command in a process group of its own until joined waits for it.
aside() {
  local name=$1
  shift
  set -m
  "$@" </dev/null >"$tmp/$name.log" 2>&1 &
  set +m
  declare -g "aside_$name=$!"
}

# joined NAME waits for a command that runs aside, and prints what it says if it fails.
joined() {
  local pid=aside_$1
  wait "${!pid}" || { cat "$tmp/$1.log"; fail "$1 ended with an error"; }
}

trap 'for group in $(jobs -p); do kill -- "-$group" 2>/dev/null || true; done; wait; rm -rf "$tmp"' EXIT

# built FOLDER OPTIONS PACKAGE… runs tests that go test -c has built into a folder, several
# packages at a time, in the order given; a package that is named twice runs once.
built() {
  local folder=$1 options=$2
  shift 2
  printf '%s\n' "$@" | awk '!seen[$0]++' | xargs -P "$jobs" -I '{}' bash -c '
    name=${3##*/}
    [ "$name" != . ] || name=$(go list -m) # the root'"'"'s tests are called after the module
    cd "$3" || exit
    # shellcheck disable=SC2086 # options
    said=$("$1/${name##*/}.test" -test.paniconexit0 -test.timeout=10m $2 2>&1) || {
      printf "%s\nFAIL %s\n" "$said" "$3"
      exit 1
    }
    echo "ok $3, $SECONDS s"' built "$folder" "$options" '{}'
}

# packages_of PATTERN prints the packages of the Go files that match a regular expression.
packages_of() { git grep -lE "$1" -- "${2:-*.go}" "${@:3}" | sed 's|^|./|; s|/[^/]*$||' | sort -u; }

# same MADE KEPT COMMAND compares what a generator makes with what is kept.
same() { diff -r "$1" "$2" >"$tmp/diff" || { head -n 20 "$tmp/diff"; fail "$2 is not what its sources give; run $3"; }; }

# python MODULES reports whether Debian's Python has modules.
python() { /usr/bin/python3 -c "import $1"; } 2>/dev/null

# installed COMMAND… reports whether there are programs.
installed() { [ "$(command -v "$@" | wc -l)" -eq $# ]; }

# install PACKAGE… brings Debian's packages, as root on Debian; what needs others is skipped.
install() {
  [ $# -gt 0 ] && [ "$(id -u)" -eq 0 ] && installed apt-get || return 0
  { apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -yq --no-install-recommends "$@"; } >"$tmp/apt" 2>&1 || true
}

# cuda [--tests] sets the environment of builds with the tag cu, or records why not.
cuda() {
  local sdk status=0
  if [ "$(uname -s) $(uname -m)" = "Linux x86_64" ]; then
    sdk=$(scripts/cuda-sdk "$@") || status=$?
    [ $status -eq 0 ] && eval "$sdk" && return
    [ $status -eq 3 ] || fail "scripts/cuda-sdk says above what is missing"
  fi
  skip CUDA "it needs Linux on x86-64, and what scripts/cuda-sdk downloads"
  return 1
}

# stand_in BUILD OPTIONS PACKAGE… runs tests of devices with a build of the stand-in for the
# driver. Those that take longest begin first.
stand_in() {
  CNE_LIBCUDA=$tmp/$1.so CNE_LIBCUBLAS=$tmp/$1.so CNE_LIBCUDNN=$tmp/$1.so CUDA_TESTS=required built "$tmp/devices" "${@:2}"
}

# device_tests builds the tests with the tag cu, whose names have Device in them, so that no
# other runs again; devices has their packages.
device_tests() {
  local misnamed
  misnamed=$(git grep -l '^//go:build cu$' -- '*_test.go' | xargs grep -Hn '^func Test' | grep -vE 'func Test(Main\(|[A-Za-z0-9_]*Device)' || true)
  [ -z "$misnamed" ] || fail "tests with the tag cu need Device in their names: $misnamed"
  mapfile -t devices < <(packages_of '^//go:build cu$' '*_test.go')
  go test -c -vet=off -ldflags="-s -w" -tags cu -o "$tmp/devices/" "${devices[@]}"
  export FAKECUDA_CACHE=${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/cne/fakecuda
}

# finish checks that nothing is left in the tree, and prints what was not checked.
finish() {
  say "nothing left in the tree"
  git status --porcelain --ignored >"$tmp/after"
  diff "$tmp/before" "$tmp/after" || fail "the checks changed which files are there or differ from the last commit"
  [ ${#unchecked[@]} -eq 0 ] || printf '\nNOT CHECKED: %s.' "${unchecked[@]}"
  printf '\nAll well, after %d s.\n' "$SECONDS"
}

git rev-parse --git-dir >/dev/null 2>&1 || fail "this is no git checkout; the checks need to know which files belong to the project"
git status --porcelain --ignored >"$tmp/before"
