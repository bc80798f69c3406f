#!/usr/bin/env bash
# Completion scripts and the manual page parse where the shells and tools are, and bash's completes: completion.sh CERMET
set -euo pipefail
cermet=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for shell in bash zsh fish; do "$cermet" completion "$shell" > "$folder/$shell"; done
bash -n "$folder/bash"
if command -v shellcheck > /dev/null; then shellcheck -s bash "$folder/bash"; fi
if command -v zsh > /dev/null; then zsh -n "$folder/zsh"; fi
if command -v fish > /dev/null; then fish -n "$folder/fish"; fi

# shellcheck source=/dev/null
. "$folder/bash"
# complete_line WORD... : what is offered for the last word
complete_line() {
  COMP_WORDS=("$@")
  COMP_CWORD=$(($# - 1))
  _cermet
  printf '%s\n' "${COMPREPLY[@]}"
}
expect() { # WANTED WORD...
  local wanted=$1
  shift
  complete_line "$@" | grep -q -x -e "$wanted" || { echo "completion of '$*': expected $wanted, found: $(complete_line "$@" | tr '\n' ' ')"; exit 1; }
}
cd "$folder"
mkdir models
expect run cermet r
expect quantize cermet quan
expect model cermet bench m
expect --new-tokens cermet run models --new
expect bf16 cermet run models --dtype b
expect bf16 cermet run models --dtype = b
expect --budget cermet tune op linear --bud
expect models cermet run mod
expect zsh cermet completion z
expect op cermet explain o
if command -v fish > /dev/null; then
  for line in 'run:cermet ' '--dtype:cermet run --dt' 'bf16:cermet run --dtype ' 'model:cermet bench ' '--batch:cermet bench model --bat' '--text:cermet explain m --tex'; do
    said=$(fish -c "source $folder/fish; complete -C '${line#*:}'" 2>&1)
    echo "$said" | grep -q -e "^${line%%:*}" || { echo "fish completion of '${line#*:}': expected ${line%%:*}, found: $said"; exit 1; }
  done
fi
if command -v zsh > /dev/null; then
  zsh -f -c "autoload -Uz compinit; compinit -u -d $folder/dump; source $folder/zsh; [ \"\$_comps[cermet]\" = _cermet ]"
fi
"$cermet" man-page > cermet.1
head -2 cermet.1 | grep -q '^\.TH CERMET 1'
if command -v groff > /dev/null; then
  said=$(groff -man -Tutf8 -ww -z cermet.1 2>&1)
  [ -z "$said" ] || { echo "man page: $said"; exit 1; }
fi
