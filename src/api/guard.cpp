#include "api/guard.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <new>

namespace cermet::api {
namespace {

constexpr std::size_t longest_message = 4096;
thread_local std::array<char, longest_message> last_error{};

}  // namespace

void set_last_error(std::string_view message) noexcept {
  const std::size_t size = std::min(message.size(), longest_message - 1);
  if (size > 0) std::memcpy(last_error.data(), message.data(), size);
  last_error[size] = '\0';
}

cermet_status handle_exception() noexcept {
  try {
    throw;
  } catch (const Error& error) {
    set_last_error(error.what());
    return static_cast<cermet_status>(error.status());
  } catch (const std::bad_alloc&) {
    set_last_error("memory: expected room for what was asked, found none");
    return CERMET_OUT_OF_MEMORY;
  } catch (const std::filesystem::filesystem_error& error) {
    set_last_error(fmt::format("{}: {}", error.path1().string(), error.code().message()));
    return CERMET_IO;
  } catch (const std::exception& error) {
    set_last_error(error.what());
    return CERMET_INTERNAL;
  } catch (...) {
    set_last_error("internal error: something was thrown that is no exception");
    return CERMET_INTERNAL;
  }
}

static_assert(static_cast<int>(Status::invalid_argument) == CERMET_INVALID_ARGUMENT &&
                  static_cast<int>(Status::invalid_file) == CERMET_INVALID_FILE &&
                  static_cast<int>(Status::unsupported) == CERMET_UNSUPPORTED &&
                  static_cast<int>(Status::io) == CERMET_IO &&
                  static_cast<int>(Status::out_of_memory) == CERMET_OUT_OF_MEMORY &&
                  static_cast<int>(Status::cancelled) == CERMET_CANCELLED &&
                  static_cast<int>(Status::internal) == CERMET_INTERNAL,
              "the C ABI's statuses are the library's");

}  // namespace cermet::api

using cermet::api::last_error;

const char* cermet_version(void) { return CERMET_VERSION; }
const char* cermet_status_name(cermet_status status) {
  return cermet::status_name(static_cast<cermet::Status>(status));
}
const char* cermet_last_error_message(void) { return last_error.data(); }
