#include "base/error.hpp"

namespace cermet {

const char* status_name(Status status) {
  switch (status) {
    case Status::ok: return "ok";
    case Status::invalid_argument: return "invalid_argument";
    case Status::invalid_file: return "invalid_file";
    case Status::unsupported: return "unsupported";
    case Status::io: return "io";
    case Status::out_of_memory: return "out_of_memory";
    case Status::cancelled: return "cancelled";
    case Status::internal: return "internal";
  }
  return "unknown";
}

void assertion_failed(const char* expression, const char* file, int line) {
  fail(Status::internal, "internal error: '{}' does not hold at {}:{}; please report it", expression, file, line);
}

}  // namespace cermet
