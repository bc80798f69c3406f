// Runs a function once for each rank of a local group, in a thread of its own.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "comm/local.hpp"

namespace cermet::test {

/// What each rank's call threw; "" where it returned. A rank's communicator goes when its call ends, as it would with
/// its thread.
inline std::vector<std::string> run_ranks(int ranks, const std::function<void(Communicator&)>& body) {
  std::vector<std::unique_ptr<Communicator>> group = comm::make_local_group(ranks);
  std::vector<std::string> errors(static_cast<std::size_t>(ranks));
  std::vector<std::thread> threads;
  for (int r = 0; r < ranks; ++r)
    threads.emplace_back([&, r] {
      const auto i = static_cast<std::size_t>(r);
      try {
        const std::unique_ptr<Communicator> own = std::move(group[i]);
        body(*own);
      } catch (const std::exception& error) {
        errors[i] = error.what();
      }
    });
  for (std::thread& thread : threads) thread.join();
  return errors;
}

}  // namespace cermet::test
