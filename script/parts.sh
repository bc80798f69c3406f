# Sourced by scripts that run several parts: names each, and says at the end how long each took.
part_names=()
part_seconds=()

# part NAME COMMAND...: runs the command; a failure ends the script with the part's name.
part() {
  local name=$1 begin=$SECONDS
  shift
  echo "== $name" >&2
  "$@" || { echo "$(basename "$0"): failed: $name" >&2; report_parts; exit 1; }
  part_names+=("$name")
  part_seconds+=($((SECONDS - begin)))
}

report_parts() {
  local i
  for i in "${!part_names[@]}"; do printf '%6d s  %s\n' "${part_seconds[$i]}" "${part_names[$i]}"; done
  printf '%6d s  total\n' "$SECONDS"
}
