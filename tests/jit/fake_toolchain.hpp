// A toolchain that compiles nothing and counts: an image is the source's text.
#pragma once

#include <atomic>
#include <mutex>
#include <thread>

#include "base/error.hpp"
#include "device/cuda/toolchain.hpp"

namespace cermet {

class FakeToolchain final : public cuda::Toolchain {
 public:
  explicit FakeToolchain(std::string version = "1.0") : version_(std::move(version)) {}

  std::string version() const override { return version_; }
  cuda::CompileResult compile(const cuda::CompileRequest& request) const override {
    const int now = ++running_;
    int most = most_at_once_.load();
    while (now > most && !most_at_once_.compare_exchange_weak(most, now)) {
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    --running_;
    ++compiled_;
    {
      const std::lock_guard lock(mutex_);
      last_ = request;
      last_.headers = {};
      for (const cuda::SourceHeader& header : request.headers) header_names_.emplace_back(header.name);
    }
    if (request.source.find("broken") != std::string::npos)
      fail(Status::internal, "{} does not compile:\nline 7: no such thing", request.name);
    return {image(request.source), "report"};
  }
  cuda::CompileResult link(std::span<const std::vector<std::byte>> pieces,
                           std::span<const std::string>) const override {
    ++linked_;
    std::vector<std::byte> all;
    for (const auto& piece : pieces) all.insert(all.end(), piece.begin(), piece.end());
    return {all, "linked"};
  }

  int compiled() const { return compiled_; }
  int linked() const { return linked_; }
  int most_at_once() const { return most_at_once_; }
  const cuda::CompileRequest& last() const { return last_; }
  const std::vector<std::string>& header_names() const { return header_names_; }

 private:
  static std::vector<std::byte> image(const std::string& text) {
    const auto bytes = std::as_bytes(std::span(text));
    return {bytes.begin(), bytes.end()};
  }

  std::string version_;
  mutable std::atomic<int> compiled_{0}, linked_{0}, running_{0}, most_at_once_{0};
  mutable std::mutex mutex_;
  mutable cuda::CompileRequest last_;
  mutable std::vector<std::string> header_names_;
};

}  // namespace cermet
