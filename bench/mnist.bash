# What the scripts that run cne on MNIST have in common; they source it. They set mnist, the
# folder with its four files, and out, the folder of the runs, and define die, which ends
# the script with a message.

# mnist_file NAME prints the path of one of MNIST's files, compressed or not.
mnist_file() {
  local file
  for file in "$mnist/$1.gz" "$mnist/$1"; do
    [ ! -e "$file" ] || { echo "$file"; return; }
  done
  die "there is no $1 in $mnist"
}

# share_cache FOLDER gives a run the nearest neighbours of another run. A cache
# that does not fit is ignored and written anew, so any will do. It is the same
# file under another name where links are possible.
share_cache() {
  local cache
  mkdir -p "$1"
  [ ! -e "$1/cache.safetensors" ] || return 0
  cache=$(find "$out" -mindepth 2 -maxdepth 2 -name cache.safetensors -print -quit)
  [ -z "$cache" ] || ln "$cache" "$1/cache.safetensors" 2>/dev/null || cp "$cache" "$1/cache.safetensors"
}
