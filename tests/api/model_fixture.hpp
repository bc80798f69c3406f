// A model of the C interface and its handle.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/api/refusal.hpp"

namespace cermet::test {

inline const std::string demo = CERMET_SOURCE_DIR "/models/demo",
                         tiny = CERMET_SOURCE_DIR "/tests/model/data/reference/llama-gqa-f32";

class Model : public testing::Test {
 protected:
  ~Model() override {
    cermet_model_destroy(model);
    cermet_destroy(handle);
  }
  cermet_status load(const std::string& folder, const char* device = "cpu") {
    cermet_model_destroy(model);
    cermet_destroy(handle);
    model = nullptr;
    handle = nullptr;
    EXPECT_EQ(cermet_create(device, 2, &handle), CERMET_OK);
    return cermet_model_load(handle, folder.c_str(), &options, &model);
  }
  std::vector<std::int32_t> tokenize(const std::string& text) {
    size_t count = 0;
    EXPECT_EQ(cermet_model_tokenize(model, text.data(), text.size(), 1, nullptr, 0, &count), CERMET_OK)
        << cermet_last_error_message();
    std::vector<std::int32_t> ids(count);
    EXPECT_EQ(cermet_model_tokenize(model, text.data(), text.size(), 1, ids.data(), ids.size(), &count), CERMET_OK);
    return ids;
  }

  cermet_model_options options = cermet_model_defaults();
  cermet_handle* handle = nullptr;
  cermet_model* model = nullptr;
};

}  // namespace cermet::test
