#!/usr/bin/env bash
# Every header of src/ and include/ includes what it uses: it compiles when it comes first. For a header that is the first include of its own .cpp
# the build has shown that; the others are compiled here, without code generation. Files that end in -inl.hpp belong to the .cpp files that
# compile them once for each instruction set.
# usage: headers_compile_alone.sh COMPILER SOURCE_DIR
set -euo pipefail
export cxx=$1
cd "$2"
check() {
  local language=c++ standard=c++20
  if [[ $1 == *.h ]]; then language=c standard=c11; fi
  printf '#include "%s"\n' "${1#*/}" | "$cxx" -x "$language" -std="$standard" -fsyntax-only -Isrc -Iinclude - || { echo "$1: does not compile alone" >&2; return 1; }
}
export -f check
alone=()
while IFS= read -r header; do
  implementation=${header%.*}.cpp
  if [ -f "$implementation" ] && grep -m 1 '^#include' "$implementation" | grep -qF "\"${header#*/}\""; then continue; fi
  alone+=("$header")
done < <(find src include \( -name '*.hpp' -o -name '*.h' \) ! -name '*-inl.hpp' | sort)
[ ${#alone[@]} -gt 0 ] || { echo "$2: no headers found" >&2; exit 1; }
echo "${#alone[@]} headers to compile"
printf '%s\0' "${alone[@]}" | xargs -0 -P "$(nproc)" -I{} bash -c 'check {}'
