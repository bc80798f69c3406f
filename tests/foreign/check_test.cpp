// Checks of shared objects, each in a process of its own: what is right is added and chosen, and what is wrong is
// refused with the case that failed.
#include "runtime/kernel_check.hpp"

#include <gtest/gtest.h>

#include "foreign/registry.hpp"
#include "op/schema/operator.hpp"
#include "select/bound_op.hpp"
#include "tests/foreign/manifests.hpp"

namespace cermet::test {
namespace {

namespace fs = std::filesystem;

std::string silu_manifest(std::string_view entry, std::string_view name = "test.silu") {
  return fmt::format(R"({{"cermet_kernel": 1, "name": "{}", "operator": "silu",
    "code": {{"kind": "shared_object", "file": "kernels.so", "entry": "{}"}},
    "operands": {{"x": {{"type": "f32", "dims": ["M..."]}}}}, "results": {{"y": {{"type": "f32", "dims": ["M..."]}}}},
    "parameters": [{{"pointer": "x"}}, {{"pointer": "y"}}, {{"i64": "M"}}]}})",
                     name, entry);
}

const KernelCheckOptions options{.seconds = 20, .program = "/proc/self/exe"};

struct ForeignCheck : testing::Test {
  ScratchFolder folder;

  fs::path manifest(std::string_view entry, std::string_view name = "test.silu") {
    fs::copy_file(CERMET_TEST_KERNELS, folder / "kernels.so", fs::copy_options::overwrite_existing);
    return folder.file("m.json", silu_manifest(entry, name));
  }
  ~ForeignCheck() override {
    for (const foreign::StoredKernel& kernel : foreign::stored_kernels())
      if (kernel.folder.parent_path() == foreign::own_store()) remove_stored_kernel(kernel.name);
  }
};

Region silu() {
  Problem problem = make_problem(*find_operator("silu"), {TensorType{DType::f32, {4, 5}}}, {});
  return problem;
}

TEST_F(ForeignCheck, WhatIsRightIsAddedAndRuns) {
  const AddedKernel added = add_kernel(manifest("right"), false, options);
  ASSERT_TRUE(added.check.has_value());
  EXPECT_TRUE(added.check->has_run);
  EXPECT_EQ(added.unchecked, "");
  EXPECT_EQ(added.check->record.device, foreign::device_key(nullptr));
  EXPECT_GT(added.check->record.taken, 3);
  EXPECT_GT(added.check->record.declined, 0) << "cases of other types";
  EXPECT_GT(added.check->record.runs, added.check->record.taken) << "in place, too";
  const Selection selection = explain_selection(silu());
  EXPECT_NE(selection.choice.kernel->name, "test.silu") << "our own has a model";
  EXPECT_EQ(selection.candidates.back().kernel->name, "test.silu");
  EXPECT_EQ(selection.candidates.back().decline, std::nullopt);
  std::vector<float> x(20, 1), y(20);
  const TensorView from(x.data(), DType::f32, {4, 5}), to(y.data(), DType::f32, {4, 5});
  ThreadPool pool(2);
  BoundOp(silu(), choose_by_name(silu(), "test.silu", ""), pool).run({&from, 1}, {&to, 1});
  EXPECT_FLOAT_EQ(y[19], 0.7310586f);
}

struct Wrong {
  const char *entry, *fragment;
};

TEST_F(ForeignCheck, WhatIsWrongIsRefusedWithTheCase) {
  const Wrong list[]{
      {"wrong", "expected"},
      {"crashes", "expected it to return, found a crash"},
      {"exits", "expected it to return, found that its process ended with exit code 0"},
      {"reports", "expected 0 from its function, found 42"},
      {"beyond", "expected it to return, found a crash"},
      {"before", "expected it to return, found a crash"},
      {"one_beyond", "expected nothing written outside of result 0, found a change"},
      {"not_in_place", "in place: output 0 (y), element"},
      {"changes_operand", "expected operand 0 (x) as it was, found a change"},
  };
  for (const Wrong& wrong : list) {
    SCOPED_TRACE(wrong.entry);
    expect_error(Status::invalid_file, {"kernel test.silu on ", "case ", wrong.fragment},
                 [&] { add_kernel(manifest(wrong.entry), false, options); });
    EXPECT_TRUE(foreign::stored_kernels().empty());
  }
}

TEST_F(ForeignCheck, AWrongElementIsShown) {
  expect_error(Status::invalid_file, {"case ", "output 0 (y), element ", ": expected ", ", found "},
               [&] { add_kernel(manifest("wrong"), false, options); });
}

TEST_F(ForeignCheck, WhatHangsIsKilled) {
  KernelCheckOptions impatient = options;
  impatient.seconds = 1;
  const auto begin = std::chrono::steady_clock::now();
  expect_error(Status::invalid_file, {"case ", "expected it to end within 1 seconds, found it still running"},
               [&] { add_kernel(manifest("hangs"), false, impatient); });
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
}

TEST_F(ForeignCheck, AKernelThatTakesNoCaseIsRefused) {
  const fs::path file = folder.file(
      "m.json", changed("\"operator\"", "\"where\": [\"M == 123456\"], \"operator\"", silu_manifest("right")));
  fs::copy_file(CERMET_TEST_KERNELS, folder / "kernels.so");
  expect_error(Status::invalid_file,
               {"expected at least one of", "to be taken, found that all are declined, the first because it"},
               [&] { add_kernel(file, false, options); });
}

TEST_F(ForeignCheck, CodeIsLookedAtBeforeItRuns) {
  manifest("right");
  expect_error(Status::invalid_file, {"kernels.so: expected a function missing, found none"},
               [&] { add_kernel(manifest("missing"), false, options); });
  folder.file("kernels.so", "no code");
  expect_error(Status::invalid_file, {"kernels.so: expected a shared object, found a file that is none"},
               [&] { add_kernel(folder / "m.json", false, options); });
  fs::remove(folder / "kernels.so");
  expect_error(Status::io, {"kernels.so"}, [&] { add_kernel(folder / "m.json", false, options); });
}

TEST_F(ForeignCheck, NamesAreTakenOnce) {
  add_kernel(manifest("right"), false, options);
  expect_error(Status::invalid_argument,
               {"kernel test.silu: expected a name that is not taken, found one that was added on 20", "--replace"},
               [&] { add_kernel(manifest("right"), false, options); });
  add_kernel(manifest("right"), true, options);
  EXPECT_EQ(foreign::stored_kernels().size(), 1u);
  expect_error(Status::invalid_file, {"case "}, [&] { add_kernel(manifest("wrong"), true, options); });
  EXPECT_EQ(foreign::check_decline(foreign::stored_kernel("test.silu"), nullptr), std::nullopt)
      << "the one that was there stays";
  expect_error(Status::invalid_argument, {"expected none of Cermet's own kernels'"},
               [&] { add_kernel(manifest("right", "rowwise.rms_norm"), false, options); });
}

TEST_F(ForeignCheck, AGpusKernelWithoutAGpuIsStoredAndNeverChosen) {
  folder.file("k.ptx", small_ptx);
  const AddedKernel added = add_kernel(folder.file("g.json", changed("compute_80", "compute_120a")), false, options);
  EXPECT_FALSE(added.check.has_value());
  EXPECT_NE(added.unchecked, "");
  const auto device = make_null_device(90);
  EXPECT_EQ(foreign::check_decline(foreign::stored_kernel("test.rms_norm"), device->target()),
            "is not checked on null:sm_90, 132 SMs; `cermet kernel check test.rms_norm` does that");
}

TEST_F(ForeignCheck, ADeviceThatDoesNotComputeOnlyCompiles) {
  folder.file("k.ptx", small_ptx);
  KernelCheckOptions null = options;
  null.device = "null:sm_90";
  const AddedKernel added = add_kernel(folder.file("g.json", good_manifest), false, null);
  ASSERT_TRUE(added.check.has_value());
  EXPECT_FALSE(added.check->has_run);
  EXPECT_GT(added.check->record.taken, 0);
  EXPECT_NE(added.unchecked.find("expected one that computes"), std::string::npos);
  EXPECT_TRUE(foreign::stored_checks(added.kernel.digest).empty());
  Problem problem =
      make_problem(*find_operator("rms_norm"), {TensorType{DType::f32, {4, 64}}, TensorType{DType::f32, {64}}}, {});
  const auto device = make_null_device(90);
  problem.target = device->target();
  const Selection selection = explain_selection(problem);
  EXPECT_EQ(selection.candidates.back().kernel->name, "test.rms_norm");
  EXPECT_NE(selection.candidates.back().decline.value_or("").find("is not checked"), std::string::npos);
  EXPECT_THROW(choose_by_name(problem, "test.rms_norm", ""), Error);
}

TEST_F(ForeignCheck, WithoutTheProgramThereIsNoCheck) {
  KernelCheckOptions nowhere = options;
  nowhere.program = "/no/such/program";
  expect_error(Status::io, {"program /no/such/program: expected Cermet's command line", "CERMET_PROGRAM"},
               [&] { add_kernel(manifest("right"), false, nowhere); });
  nowhere.program = "/bin/true";
  expect_error(Status::invalid_file, {"found that its process ended with exit code 0"},
               [&] { add_kernel(manifest("right"), false, nowhere); });
  KernelCheckOptions other = options;
  other.device = "null:sm_90";
  expect_error(Status::invalid_file, {"device null:sm_90: expected a CPU, for which the kernel is made"},
               [&] { add_kernel(manifest("right"), false, other); });
}

}  // namespace
}  // namespace cermet::test
