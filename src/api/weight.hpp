// A constant operand in memory of the handle's device: one copy for each layout that kernels need, shared by all
// operators that use it.
#pragma once

#include <list>
#include <memory>
#include <mutex>

#include "api/handle.hpp"
#include "base/buffer.hpp"
#include "kernel/kernel.hpp"

namespace cermet::api {

class Weight {
 public:
  /// `source`, in memory of the host or with `on_device` of the context's GPU, is read until detach().
  Weight(std::shared_ptr<Handle> handle, const TensorView& source, bool on_device)
      : handle_(std::move(handle)),
        type_(source.type()),
        shape_(source.shape),
        source_(source),
        on_device_(on_device) {}

  const Handle& handle() const { return *handle_; }
  const TensorType& type() const { return type_; }
  /// The copy in a layout (null: dense row-major): its address, and the shape of the whole. Made by the first call;
  /// safe from several threads.
  TensorView form(const WeightLayout* layout);
  /// The source is no longer read: form() then throws Error for a layout that was not used before.
  void detach();
  std::int64_t bytes() const;  ///< memory held by all copies

 private:
  struct Form {
    const WeightLayout* layout;
    AlignedBuffer host;
    DeviceBuffer device;
    std::byte* data() const { return device.data() ? device.data() : host.data(); }
  };
  Form make(const WeightLayout* layout) const;
  OwnedTensor host_copy() const;

  std::shared_ptr<Handle> handle_;
  TensorType type_;
  Shape shape_;
  TensorView source_;
  bool on_device_;
  mutable std::mutex mutex_;
  std::list<Form> forms_;
};

}  // namespace cermet::api

struct cermet_weight {
  std::shared_ptr<cermet::api::Weight> weight;
};
