// What a refused call of the C interface returns and says.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cermet/cermet.h"

namespace cermet::test {

inline void expect_refused(cermet_status expected, cermet_status status, const std::vector<std::string>& fragments) {
  const std::string message = cermet_last_error_message();
  EXPECT_STREQ(cermet_status_name(status), cermet_status_name(expected)) << message;
  for (const std::string& fragment : fragments)
    EXPECT_NE(message.find(fragment), std::string::npos) << "expected \"" << fragment << "\" in: " << message;
}
inline void expect_refused(cermet_status status, const std::vector<std::string>& fragments) {
  expect_refused(CERMET_INVALID_ARGUMENT, status, fragments);
}

}  // namespace cermet::test
