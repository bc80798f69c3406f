// A manifest and its code as a kernel like any other: a value that selection asks, binds and launches.
#pragma once

#include <functional>
#include <memory>

#include "foreign/code.hpp"
#include "foreign/launch.hpp"
#include "foreign/match.hpp"
#include "kernel/kernel.hpp"

namespace cermet::foreign {

/// Why a kernel may not be chosen for a device whatever the region, because it was not checked there; nothing where it
/// may.
using Gate = std::function<Decline(const Target* target)>;

struct KernelOptions {
  Gate gate = {};          ///< none: it may always be chosen
  bool falls_back = true;  ///< operands whose strides or addresses the code does not take go to one of our own kernels,
                           ///< where one takes the region
};

/// The kernel. It shares the code and a copy of the manifest, so that it is complete by itself.
Kernel make_kernel(Manifest manifest, std::shared_ptr<Code> code, KernelOptions options);

/// The program that a configuration launches; of kernels for GPUs.
cuda::Program program_of(const Manifest& m, Code& code, const Region& region, const Config& wanted);

}  // namespace cermet::foreign
