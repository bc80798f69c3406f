#!/usr/bin/env bash
# Compiles linear.cu against your own CUTLASS and puts machine code and manifest into a folder for `cermet kernel add`:
#   CUTLASS_DIR=~/cutlass examples/kernels/cutlass/make.sh FOLDER
set -euo pipefail
folder=${1:?expected a folder to write to}
: "${CUTLASS_DIR:?expected the folder of a CUTLASS checkout, with include/cute in it}"
[ -f "$CUTLASS_DIR/include/cute/tensor.hpp" ] || { echo "CUTLASS_DIR: expected include/cute/tensor.hpp in $CUTLASS_DIR, found none" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$folder"
"${NVCC:-nvcc}" -std=c++17 -O3 -cubin -arch=sm_90 --expt-relaxed-constexpr -I "$CUTLASS_DIR/include" -o "$folder/linear.cubin" "$here/linear.cu"
cp "$here/linear.json" "$folder"
