// Instruction sets of the CPU kernels, in rising order. CERMET_CPU_ISA forces one.
#pragma once

#include <span>
#include <string_view>

namespace cermet::cpu {

enum class Isa { baseline, avx2, avx512, avx512_vnni, avx512_bf16, amx };

std::string_view name_of(Isa isa);
/// What this machine can run, lowest first.
std::span<const Isa> supported_isas();
/// The instruction set that kernels use: the highest supported one, or the one CERMET_CPU_ISA names.
/// Throws Error where the machine lacks it. The first call also limits Highway's dispatch to it.
Isa active_isa();
/// Forces an instruction set from now on, for tests; it must be supported.
void force_isa(Isa isa);

}  // namespace cermet::cpu
