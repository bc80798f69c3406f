// Which of a kernel's configurations have the fields of a text.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "kernel/kernel.hpp"

namespace cermet {

/// Those of a kernel's configurations that have the fields of the text, in their order; the kernel's own choice for a
/// text without fields. Throws Error, which begins with `source` and says which there are.
std::vector<Config> configs_with(const Kernel& kernel, std::span<const Config> configs, std::string_view text,
                                 std::string_view source);

}  // namespace cermet
