#include "kernel/cuda/rowwise/codes.hpp"

#include "kernel/cuda/task.hpp"

namespace cermet::cuda {

std::string RowCodes::text(std::int64_t columns) const {
  return fmt::format("{{.format = {{.dtype = {}, .wide = {}, .asymmetric = {}, .group = {}}}, .exact = {}}}",
                     device_name(format.dtype), format.limit == 127.5f, format.asymmetric, group(columns), exact);
}

}  // namespace cermet::cuda
