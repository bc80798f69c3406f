// User errors become one exception type with a status; internal invariants are assertions.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace cermet {

/// What went wrong, in the terms of the C ABI and of exit codes.
enum class Status {
  ok = 0,
  invalid_argument = 1,  ///< the caller passed something that the operator or verb does not accept
  invalid_file = 2,      ///< a file's content breaks its format
  unsupported = 3,       ///< well-formed, but nothing here implements it
  io = 4,                ///< an error of the operating system: missing file, full disk, no permission
  out_of_memory = 5,
  cancelled = 6,
  internal = 7,  ///< a broken internal invariant: a bug
};

/// Lower-case name of a status ("invalid_argument").
const char* status_name(Status status);

/// A user error: the message names operand, file or field, what was expected and what was found.
class Error : public std::runtime_error {
 public:
  Error(Status status, const std::string& message) : std::runtime_error(message), status_(status) {}
  Status status() const { return status_; }

 private:
  Status status_;
};

/// Throws Error; the message is formatted here, so that callers pay nothing until they fail.
template <class... Args>
[[noreturn]] void fail(Status status, fmt::format_string<Args...> format, Args&&... args) {
  throw Error(status, fmt::format(format, std::forward<Args>(args)...));
}

/// Throws Error(invalid_argument) unless the condition holds.
template <class... Args>
void require(bool condition, fmt::format_string<Args...> format, Args&&... args) {
  if (!condition) fail(Status::invalid_argument, format, std::forward<Args>(args)...);
}

/// Reports a broken invariant as Error(internal); used by CERMET_ASSERT.
[[noreturn]] void assertion_failed(const char* expression, const char* file, int line);

}  // namespace cermet

/// An internal invariant. Stays on in release builds: it is never placed in an inner loop.
#define CERMET_ASSERT(condition) \
  ((condition) ? static_cast<void>(0) : ::cermet::assertion_failed(#condition, __FILE_NAME__, __LINE__))
