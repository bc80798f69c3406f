// Calls between ranks that the next launches need nothing of: on a stream of their own, beside those.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/function_ref.hpp"
#include "device/device.hpp"
#include "device/plan.hpp"

namespace cermet {

class CallsBeside {
 public:
  /// Finds them in a plan that says what its launches touch. Calls of one group touch it, so that they follow each
  /// other on every rank.
  void find(const Plan& plan, FunctionRef<bool(const Launch& launch)> communicates);
  void forget() { calls_.clear(); }
  std::size_t count() const { return calls_.size(); }

  /// A run on `main` begins, in which the plan's launches are made in their order, from the first to the last.
  void begin(Device& device, Stream& main);
  /// Before launch `at` is made: waits for the calls that it needs. Null where it goes on the main stream, else the
  /// stream to make it on.
  Stream* stream_for(std::size_t at);
  /// Behind a call that was made on that stream.
  void made(std::size_t at);
  /// Behind the last launch: all calls have ended before what follows.
  void end();

 private:
  struct Call {
    std::size_t at, needed_at;
    std::unique_ptr<DeviceEvent> ended;
    bool under_way = false;
  };
  void join(Call& call);

  std::vector<std::size_t> needed_at_;  ///< by launch of the plan: the first later one that touches what a call does; 0
                                        ///< where there is none to put aside
  std::unique_ptr<Stream> side_;
  std::unique_ptr<DeviceEvent> forked_;
  std::vector<Call> calls_;
  Stream* main_ = nullptr;
};

}  // namespace cermet
