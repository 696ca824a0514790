#!/usr/bin/env bash
# Prints a checksum of what the programs of scripts/gpu-check are made of, by which the
# check tells whether it was done with the same ones: of the contents, since the commit
# alone says nothing about a tree that differs from it. Documents do not count, so that
# writing figures down changes nothing.
#
#   sources.bash [WORD...]     of the repository around the current folder; WORDs count
set -Eeuo pipefail
export LC_ALL=C
cd "$(git rev-parse --show-toplevel)"
{
  printf '%s\n' "$@"
  {
    git ls-files -z -- . ':!docs' ':!.ci' ':!*.md'
    # What would be compiled counts before it is added, too.
    git ls-files -z --others --exclude-standard -- '*.go' '*.c' '*.h' '*.s' '*.S' '*.ptx'
  } | sort -zu | comm -z -23 - <(git ls-files -z --deleted | sort -zu) | xargs -0 sha256sum
} | sha256sum | cut -c -16
