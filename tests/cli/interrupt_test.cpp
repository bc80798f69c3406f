// Ctrl-C ends every verb with exit code 130 within a second or so; `launch` passes SIGINT and SIGTERM on to its ranks.
#include <poll.h>

#include "tests/cli/ranks.hpp"
#include "tests/cli/shell.hpp"

namespace cermet::test {
namespace {

using namespace std::chrono_literals;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr auto soon = 30s;
#else
constexpr auto soon = 10s;  // of a verb that needs minutes: the machine may be busy
#endif

/// Starts a command line in the source's folder, sends the signal once it has worked for a while, and says how it
/// ended; -1 where it went on.
int code_after(const std::string& command, int signal, std::chrono::milliseconds at = 700ms) {
  Background run("env --chdir=" CERMET_SOURCE_DIR " " + command);
  std::this_thread::sleep_for(at);
  EXPECT_EQ(run.wait(0ms), -1) << command << " ended before it was interrupted\n" << run.err();
  run.signal(signal);
  const int code = run.wait(soon);
  const std::string said = run.err();
  EXPECT_TRUE(said.find("interrupted") != std::string::npos || said.find("cancelled") != std::string::npos ||
              said.find("stopped") != std::string::npos)
      << command << "\n"
      << said;
  return code;
}

TEST(Interrupt, LongVerbsEndWith130) {
  const ScratchFolder scratch;
  const std::string out = (scratch / "out").string();
  for (const std::string& verb :
       {std::string("limits --seconds 30"), std::string("bench model models/demo --limits --repeat 1000"),
        std::string("bench model models/demo --repeat 1000"),
        std::string("bench model models/demo --plan --limits --repeat 1000"),
        std::string("bench op rms_norm --shape 'f32[64,512] f32[512]' --seconds 100"),
        std::string("bench soak models/demo -n 1000000"), std::string("bench comm --ranks 2 --sizes 1M --seconds 100"),
        std::string("eval models/demo --text models/demo/heldout.txt"),
        "quantize models/demo --calib models/demo/calibration.jsonl --out " + out})
    EXPECT_EQ(code_after(program + " " + verb, SIGINT), 130) << verb;
}

/// A terminal and `timeout` may send the same one twice.
TEST(Interrupt, TwoAtOnceAreOne) {
  Background run("env --chdir=" CERMET_SOURCE_DIR " " + program + " limits --seconds 30");
  std::this_thread::sleep_for(700ms);
  run.signal(SIGINT);
  std::this_thread::sleep_for(1ms);
  run.signal(SIGINT);
  EXPECT_EQ(run.wait(soon), 130);
  EXPECT_NE(run.err().find("interrupted"), std::string::npos) << run.err();
}

TEST(Interrupt, LaunchPassesItOnAndEndsAsItsRanksDo) {
  for (const auto& [signal, code] : {std::pair(SIGINT, 130), std::pair(SIGTERM, 143)}) {
    Background run(program + " launch -n 2 -- bench comm --sizes 64M --seconds 100");
    const std::vector<pid_t> ranks = joined_ranks(run, 2);
    ASSERT_EQ(ranks.size(), 2u) << run.err();
    run.signal(signal);
    EXPECT_EQ(run.wait(soon), code) << run.err();
    for (const pid_t rank : ranks) EXPECT_NE(kill(rank, 0), 0) << "a rank runs on";
  }
}

TEST(Interrupt, LaunchEndsRanksThatDoNotListen) {
  Background run(program + " launch -n 2 --grace 0.3 -- bash -c \"trap '' INT TERM; while :; do sleep 0.1; done\"");
  for (int i = 0; i < 500 && run.children().size() < 2; ++i) std::this_thread::sleep_for(10ms);
  std::this_thread::sleep_for(300ms);
  run.signal(SIGINT);
  EXPECT_EQ(run.wait(soon), 130) << run.err();
}

}  // namespace
}  // namespace cermet::test
