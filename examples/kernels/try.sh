#!/usr/bin/env bash
# Adds the examples on a machine with a GPU, checks them, times them beside Cermet's own kernels, and shows that a wrong one is refused:
#   examples/kernels/try.sh [FOLDER...]
# Each FOLDER has a manifest that was made elsewhere (triton/make.py, cutlass/make.sh, tilelang/make.py). CERMET is the command line, build/bin/cermet by default.
# Nothing is added to the user's own kernels. Ends with 1 where a check or a time is missing.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cermet=${CERMET:-$here/../../build/bin/cermet}
CERMET_CACHE_DIR=$(mktemp -d)
export CERMET_CACHE_DIR
trap 'rm -rf "$CERMET_CACHE_DIR"' EXIT
failed=0

field() { grep -o "\"$1\": *\"\?[^,\"}]*" | head -1 | sed 's/^[^:]*: *"\?//'; }

shape_of() {
  case $1 in
    linear) echo 'x=bf16[4096,4096] w=bf16[4096,4096]' ;;
    *) echo 'bf16[8192,4096] bf16[4096]' ;;
  esac
}

microseconds() { awk -v seconds="$1" 'BEGIN { if (seconds == "") print "-"; else printf "%.1f", seconds * 1e6 }'; }

row() { printf '%-26s %-10s %6s %9s %6s %12s %12s  %s\n' "$@"; }

try() {
  local manifest=$1 report name op shape own own_name mine
  if ! report=$("$cermet" kernel add "$manifest" --json 2>"$CERMET_CACHE_DIR/error"); then
    row "$(basename "$(dirname "$manifest")")/$(basename "$manifest")" - - - - - - "refused: $(cut -c1-200 "$CERMET_CACHE_DIR/error")"
    failed=1
    return
  fi
  name=$(field kernel <<<"$report") op=$(field operator <<<"$report")
  shape=$(shape_of "$op")
  mine=$("$cermet" bench op "$op" --shape "$shape" --device cuda --kernel "$name" --cold --seconds 0.5 --json 2>>"$CERMET_CACHE_DIR/error")
  own=$("$cermet" bench op "$op" --shape "$shape" --device cuda --cold --seconds 0.5 --json 2>>"$CERMET_CACHE_DIR/error")
  own_name=$(field kernel <<<"$own")
  [ -n "$(field median_seconds <<<"$mine")" ] || { failed=1; cat "$CERMET_CACHE_DIR/error" >&2; }
  row "$name" "$op" "$(field taken <<<"$report")" "$(field declined <<<"$report")" "$(field runs <<<"$report")" "$(microseconds "$(field median_seconds <<<"$mine")")" \
    "$(microseconds "$(field median_seconds <<<"$own")")" "$own_name, for $shape"
}

row kernel operator taken declined runs 'its us' 'our us' 'our kernel'
try "$here/cuda/rms_norm.json"
for folder in "$@"; do
  for manifest in "$folder"/*.json; do
    if grep -q '"cermet_kernel"' "$manifest"; then try "$manifest"; fi
  done
done
echo
if "$cermet" kernel add "$here/cuda/wrong_rms_norm.json" 2>"$CERMET_CACHE_DIR/error"; then
  echo 'expected the wrong kernel to be refused, found that it was added'
  failed=1
else
  sed 's/^cermet: error: /refused, as it should be: /' "$CERMET_CACHE_DIR/error"
fi
echo
"$cermet" kernel list
"$cermet" explain op rms_norm --shape 'bf16[8192,4096] bf16[4096]' --device cuda | grep -E 'example\.|chosen'
exit $failed
