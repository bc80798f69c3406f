#!/usr/bin/env bash
# Every header of src/ and include/ includes what it uses: it compiles when it comes first. For a header that is the first include of its own .cpp
# the build has shown that, unless a precompiled header came before it; the others are compiled here, where ccache remembers them. Files that end in
# -inl.hpp belong to the .cpp files that compile them once for each instruction set.
# usage: headers_compile_alone.sh COMPILER SOURCE_DIR BUILD_DIR
set -euo pipefail
export cxx=$1 ccache
ccache=$(command -v ccache || true)
export build
build=$(realpath "$3")
export scratch=$build/headers_alone
cd "$2"
mkdir -p "$scratch"
check() {
  local language=c++ standard=c++20 unit=$scratch/${1//\//_}
  if [[ $1 == *.h ]]; then language=c standard=c11; fi
  # A unit keeps its date from run to run: ccache does not trust files that are newer than its own start.
  [ -f "$unit.unit" ] || printf '#include "%s"\n' "${1#*/}" >"$unit.unit"
  $ccache "$cxx" -x "$language" -std="$standard" -Isrc -Iinclude -I"$build/include" -c "$unit.unit" -o "$unit.o" || { echo "$1: does not compile alone" >&2; return 1; }
}
export -f check
# Sources that were compiled with nothing before their first line.
declare -A plain
while IFS= read -r source; do plain[$source]=1; done < <(awk -F'"' '/"command":/ { pch = /cmake_pch/ } /"file":/ && !pch { print $4 }' "$build/compile_commands.json")
alone=() shown=0
while IFS= read -r header; do
  implementation=${header%.*}.cpp
  if [ -n "${plain[$PWD/$implementation]:-}" ] && grep -m 1 '^#include' "$implementation" | grep -qF "\"${header#*/}\""; then
    shown=$((shown + 1))
  else
    alone+=("$header")
  fi
done < <(find src include \( -name '*.hpp' -o -name '*.h' \) ! -name '*-inl.hpp' | sort)
[ ${#alone[@]} -gt 0 ] || { echo "$2: no headers found" >&2; exit 1; }
echo "${#alone[@]} headers to compile, $shown shown by the build"
printf '%s\0' "${alone[@]}" | xargs -0 -P "$(nproc)" -I{} bash -c 'check {}'
