// Matrices of 8 rows of 16 bytes between shared memory and the register fragments of mma.sync and wgmma. Lane l names
// row l % 8 of matrix l / 8 (16-byte aligned); register i of lane l holds bytes 4 * (l % 4) .. + 3 of row l / 4 of
// matrix i. `trans` moves 16-bit elements transposed.
#pragma once

#include "kernel/cuda/device/ptx/address.cuh"
#include "kernel/cuda/device/types.cuh"

namespace cermet::ptx {

CERMET_DEVICE void ldmatrix_x4(uint32_t (&d)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
               : "r"(shared_address(row))
               : "memory");
}

CERMET_DEVICE void ldmatrix_x4_trans(uint32_t (&d)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
               : "r"(shared_address(row))
               : "memory");
}

#if CERMET_ARCH >= 900
CERMET_DEVICE void stmatrix_x4(void* row, const uint32_t (&s)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(shared_address(row)), "r"(s[0]),
               "r"(s[1]), "r"(s[2]), "r"(s[3])
               : "memory");
}
#endif

}  // namespace cermet::ptx
