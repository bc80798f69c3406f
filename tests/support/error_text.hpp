// The message of the Error that a callable throws.
#pragma once

#include <string>

#include "base/error.hpp"

namespace cermet {

/// The text of the cermet::Error that `body` throws; "no error" when it throws none.
template <class Body>
std::string error_text(Body&& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace cermet
