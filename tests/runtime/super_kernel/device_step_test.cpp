// Super-kernels on a GPU: the bits of launches one by one, and the watchdog.
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <set>
#include <thread>

#include "tests/runtime/super_kernel/walked_step.hpp"
#include "tests/support/error_text.hpp"

namespace cermet {
namespace {

/// Run after run: launched one by one, captured, replayed.
TEST_F(DeviceStep, GivesTheBitsOfLaunchesOneByOne) {
  const std::vector<std::byte> expected = Step("cuda", "", "").run();
  for (const std::string options : {"", "debug-sync-all=1", "width=7", "width=1", "profile=1"})
    for (const std::string select : {"decode", "layer"}) {
      Step step("cuda", select, options);
      for (int run = 0; run < 100; ++run)
        ASSERT_EQ(step.run(), expected) << select << " " << options << ", run " << run;
    }
}

class DeviceStepOf : public DeviceStep,
                     public testing::WithParamInterface<std::pair<const char*, const std::string*>> {};

TEST_P(DeviceStepOf, GivesTheBitsOfLaunchesOneByOne) {
  const std::string& text = *GetParam().second;
  const bool has_same_kernels =
      text.find("%x : f32[1,") != std::string::npos;  // of several rows, those that join add up in another order
  const std::vector<std::byte> alone = Step("cuda", "", "", text).run();
  for (const std::string options : {"width=132", "profile=1", "width=7:debug-sync-all=1", "width=132:stream-fusion=0",
                                    "width=132:prefetch=0", "width=132:early-start=0"}) {
    Step step("cuda", "decode", options + ":strict-scope-check=abort", text);
    const std::vector<std::byte> first = step.run(),
                                 &expected = has_same_kernels ? alone : first;  // the first run is launched one by one
    for (int run = 0; run < 100; ++run) ASSERT_EQ(step.run(), expected) << options << ", run " << run;
  }
}
INSTANTIATE_TEST_SUITE_P(Of, DeviceStepOf, walked_steps, name_of_step);

TEST_F(DeviceStep, AWaitThatNobodyEndsIsReportedAndTheNextRunIsRight) {
  Step step("cuda", "decode", "profile=1");
  const std::vector<std::byte> expected = step.run();
  const std::vector<RegionLaunch> launches = step.launches();
  Stream& stream = *step.context.stream();
  DeviceRegion region(step.session.executable().plan(), 0, launches, step.context.queue(), {.patience = 50'000'000});
  region.enqueue(stream);
  stream.synchronize();
  EXPECT_EQ(region.take_stuck(), "");
  const std::uint32_t poison = 0xffffff00u;  // as if blocks had not ended their part of launch 0 in many runs
  stream.upload(region.counter(0), &poison, 4);
  region.enqueue(stream);
  stream.synchronize();
  const std::string stuck = region.take_stuck();
  EXPECT_NE(stuck.find("waited 0.1 s for launch 0: expected "), std::string::npos) << stuck;
  EXPECT_EQ(region.take_stuck(), "") << "once";
  region.reset(stream);
  region.enqueue(stream);
  stream.synchronize();
  EXPECT_EQ(region.take_stuck(), "");
  const TensorView y = step.session.host_output("y");
  EXPECT_EQ(std::vector<std::byte>(y.as<std::byte>(), y.as<std::byte>() + dense_bytes(y.dtype, y.shape)), expected);
}

/// The patience of a region that says nothing of it, and the engine's way: the run ends, the next one throws, the one
/// after that is right.
TEST_F(DeviceStep, AWaitThatNobodyEndsTakesTwoSeconds) {
  Step step("cuda", "decode", "profile=1");
  step.run();
  DeviceRegion region(step.session.executable().plan(), 0, step.launches(), step.context.queue(), {});
  Stream& stream = *step.context.stream();
  const std::uint32_t poison = 0xffffff00u;
  stream.upload(region.counter(1), &poison, 4);
  const auto start = std::chrono::steady_clock::now();
  region.enqueue(stream);
  stream.synchronize();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  EXPECT_GE(seconds, 1.9);
  EXPECT_LE(seconds, 3.0);
  EXPECT_NE(region.take_stuck().find("waited 2.0 s for launch 1"), std::string::npos);
}

/// A region on a device, walked once so that its counters are what a run leaves. Its waits take 50 ms.
struct SmallRegion {
  Step step{"cuda", "decode", "profile=1"};
  std::vector<std::byte> expected = step.run();
  std::vector<RegionLaunch> launches = step.launches();
  Stream& stream = *step.context.stream();
  DeviceRegion region{step.session.executable().plan(), 0, launches, step.context.queue(), {.patience = 50'000'000}};

  SmallRegion() { walk(stream); }
  std::string walk(Stream& on) {
    region.enqueue(on);
    stream.synchronize();
    return region.take_stuck();
  }
  /// What a reset and another run give.
  std::vector<std::byte> again() {
    region.reset(stream);
    EXPECT_EQ(walk(stream), "");
    const TensorView y = step.session.host_output("y");
    return {y.as<std::byte>(), y.as<std::byte>() + dense_bytes(y.dtype, y.shape)};
  }
};

TEST_F(DeviceStep, AnArrivalThatIsMissingIsReportedByName) {
  SmallRegion small;
  std::uint32_t arrived = 0;
  small.stream.download(&arrived, small.region.counter(1), 4);
  small.stream.synchronize();
  ASSERT_GE(arrived, 1u);
  const std::uint32_t fewer = arrived - 1;
  small.stream.upload(small.region.counter(1), &fewer, 4);
  EXPECT_NE(small.walk(small.stream)
                .find(fmt::format("waited 0.1 s for launch 1: expected {} blocks to have ended it, found {}", arrived,
                                  fewer)),
            std::string::npos);
  EXPECT_EQ(small.again(), small.expected);
}

TEST_F(DeviceStep, ARegionThatWouldLoseRunsAsLaunchesOrIsRefused) {
  Step step("cuda", "decode", "");
  const std::vector<std::byte> expected = step.run();
  EXPECT_EQ(step.run(), expected);
  EXPECT_TRUE(step.session.executable().linked_regions().empty());
  Step strict("cuda", "decode", "strict-scope-check=abort");
  strict.run();
  const std::string text = error_text([&] { strict.run(); });  // the run that would link it
  EXPECT_NE(text.find("super-kernel 'decode': launches 0 to "), std::string::npos) << text;
  EXPECT_NE(text.find("loss: a super-kernel that is predicted to be slower than launches one by one"),
            std::string::npos)
      << text;
}

/// As a user sees it: reading the results is an error, and the run after that is right.
TEST_F(DeviceStep, ASessionSaysThatItsRunGaveUpAWait) {
  Step step("cuda", "decode", "profile=1");
  const std::vector<std::byte> expected = step.run();
  EXPECT_EQ(step.run(), expected);
  const auto regions = step.session.executable().linked_regions();
  ASSERT_EQ(regions.size(), 1u);
  Stream& stream = *step.context.stream();
  const std::uint32_t poison = 0xffffff00u;
  stream.upload(regions[0]->counter(0), &poison, 4);
  const std::string text = error_text([&] { step.run(); });
  EXPECT_NE(text.find("super-kernel: block "), std::string::npos) << text;
  EXPECT_NE(text.find(fmt::format("waited 2.0 s for {}", regions[0]->names()[0])), std::string::npos) << text;
  for (int run = 0; run < 3; ++run) EXPECT_EQ(step.run(), expected);
}

/// Launches half of the thread blocks that it is announced to.
class HalfStream final : public Stream {
 public:
  explicit HalfStream(Stream& stream) : stream_(stream) {}
  void launch(const LaunchShape& shape, DeviceFunction function, void** parameters) override {
    LaunchShape fewer = shape;
    fewer.blocks /= 2;
    stream_.launch(fewer, function, parameters);
  }
  void upload(void* device, const void* host, std::int64_t bytes) override { stream_.upload(device, host, bytes); }
  void download(void* host, const void* device, std::int64_t bytes) override { stream_.download(host, device, bytes); }
  void copy(void* to, const void* from, std::int64_t bytes) override { stream_.copy(to, from, bytes); }
  void fill(void* device, unsigned char value, std::int64_t bytes) override { stream_.fill(device, value, bytes); }
  void synchronize() override { stream_.synchronize(); }
  void multiply(const MatrixProduct& product) override { stream_.multiply(product); }
  void begin_capture() override { stream_.begin_capture(); }
  std::unique_ptr<CapturedGraph> end_capture() override { return stream_.end_capture(); }
  void abandon_capture() noexcept override { stream_.abandon_capture(); }
  void replay(const CapturedGraph& graph) override { stream_.replay(graph); }
  std::unique_ptr<DeviceEvent> make_event() override { return stream_.make_event(); }
  void record(DeviceEvent& event) override { stream_.record(event); }
  void wait(const DeviceEvent& event) override { stream_.wait(event); }
  void synchronize_event(const DeviceEvent& event) override { stream_.synchronize_event(event); }
  double seconds_between(const DeviceEvent& start, const DeviceEvent& end) override {
    return stream_.seconds_between(start, end);
  }

 private:
  Stream& stream_;
};

TEST_F(DeviceStep, BlocksThatNeverArriveAreReportedByName) {
  SmallRegion small;
  HalfStream half(small.stream);
  const std::string stuck = small.walk(half);
  EXPECT_NE(
      stuck.find(fmt::format("blocks to have ended it, found {}", small.step.context.target()->multiprocessors / 2)),
      std::string::npos)
      << stuck;
  EXPECT_EQ(small.again(), small.expected);
}

/// Kernels that fill a GPU must not wait for each other's blocks.
TEST_F(DeviceStep, TwoThreadsRunRegionsOnOneGpu) {
  const std::vector<std::byte> expected = Step("cuda", "", "").run();
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t)
    threads.emplace_back([&] {
      Step step("cuda", "decode", "profile=1");
      for (int run = 0; run < 2000; ++run) ASSERT_EQ(step.run(), expected) << "run " << run;
    });
  for (std::thread& thread : threads) thread.join();
}

TEST_F(DeviceStep, TasksTellWhenTheyRan) {
  Step step("cuda", "decode", "profile=1");
  for (int run = 0; run < 3; ++run) step.run();
  const std::vector<TaskTime> tasks = step.session.executable().task_times();
  const SuperRegion& region = step.session.executable().super_kernels()->regions.at(0);
  std::map<int, double> ends;
  std::set<std::size_t> steps;
  for (const TaskTime& task : tasks) {
    EXPECT_LE(task.begin, task.ready);
    EXPECT_LE(task.ready, task.end);
    EXPECT_LE(task.end, task.announced);
    EXPECT_LT(task.announced, 10) << "in seconds; under a sanitizer a step takes some tenths";
    EXPECT_GE(task.begin, ends[task.block]) << "tasks of a block follow each other";
    ends[task.block] = task.announced;
    steps.insert(task.step);
  }
  EXPECT_EQ(steps.size(), region.last_step - region.first_step + 1);
}

}  // namespace
}  // namespace cermet
