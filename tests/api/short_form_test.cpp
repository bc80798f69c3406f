// Operators by name and as functions, in C++. It includes internal headers too: all share one namespace and must
// compile in one file.
#include <cermet/ops.hpp>

#include <gtest/gtest.h>

#include <thread>

#include "op/schema/operator.hpp"
#include "select/bound_op.hpp"
#include "tests/support/heap.hpp"

namespace {

using cermet::tensor;
using Floats = std::vector<float>;

/// The message of the cermet::error that a call throws.
template <class Call>
std::string refusal(Call&& call) {
  try {
    call();
  } catch (const cermet::error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

const tensor x({2, 4}, {1, 1, 1, 1, 2, 2, 2, 2}), w({4}, {1, 2, 3, 4});

TEST(GetOpFace, CallsTensorsOfAnyShape) {
  const cermet::handle cpu("cpu", 1);
  const tensor a({2, 3}, {1, 2, 3, 4, 5, 6}), b({3, 2}, {1, 0, 0, 1, 1, 1});
  auto matmul = cpu.get_op("matmul", a, b);
  EXPECT_EQ(matmul(a, b).values(), (Floats{4, 5, 10, 11}));
  EXPECT_EQ(matmul(b, a).shape(), (std::vector<std::int64_t>{3, 3}));
  EXPECT_EQ(matmul(b, a).values(), (Floats{1, 2, 3, 4, 5, 6, 5, 7, 9}));
  EXPECT_FALSE(matmul.kernel().empty());
  const tensor y({2, 2});
  matmul(a, b, cermet::out(y));
  EXPECT_EQ(y.values(), (Floats{4, 5, 10, 11}));
  matmul(a, b, cermet::out(y), cermet::stream());
  const std::int64_t before = cermet::heap::allocations();
  const cermet::out into(y);
  cermet::face::call_arguments arguments;
  arguments.add(a);
  arguments.add(b);
  arguments.call_into(matmul.get(), into);
  matmul(a, b, cermet::out(y));
  EXPECT_EQ(cermet::heap::allocations(), before);
  EXPECT_NE(refusal([&] { matmul(a, a); }).find("matmul"), std::string::npos);
  EXPECT_NE(refusal([&] { matmul(a, b, cermet::out(y, y)); }).find("1 outputs, found 2"), std::string::npos);
  EXPECT_NE(refusal([&] { matmul(std::vector<tensor>(65, a)); }).find("at most 64"), std::string::npos);
}

TEST(GetOpFace, ConstantsAndKernelsAreNamed) {
  const cermet::handle cpu("cpu", 1);
  const cermet::shared_weight shared(tensor({3, 4}, {1, 0, 0, 0, 0, 1, 0, 0, 1, 1, 1, 1}), cpu);
  auto linear = cpu.get_op("linear", {x, cermet::weight(shared)}, {{"out_dtype", "bf16"}});
  EXPECT_EQ(linear(x).type(), cermet::dtype::bf16);
  EXPECT_EQ(linear(x).values(), (Floats{1, 1, 4, 2, 2, 8}));
  auto copy =
      cpu.get_op("linear", {x, cermet::weight(tensor({1, 4}, {1, 2, 3, 4}))}, {}, {linear.kernel(), linear.config()});
  EXPECT_EQ(copy(x).values(), (Floats{10, 20})) << "the callable keeps the constant's memory";
  EXPECT_EQ(copy.kernel(), linear.kernel());
  EXPECT_NE(refusal([&] {
              cpu.get_op("linear", {x, x}, {}, {"gemm.nothing", ""});
            }).find("gemm.nothing"),
            std::string::npos);
  EXPECT_NE(refusal([&] {
              cpu.get_op("rms_norm", {cermet::descriptor(cermet::dtype::f32, {cermet::up_to('M', 4), 4})});
            }).find("up_to"),
            std::string::npos);
  const cermet::descriptor like(cermet::dtype::f32, {2, 4});
  EXPECT_EQ(cpu.get_op("rms_norm", like)(x).values(), cermet::rms_norm(x).values());
}

TEST(GetOpFace, EveryResultIsReturned) {
  const cermet::handle cpu("cpu", 1);
  auto topk = cpu.get_op("topk", {w}, {{"k", 2}});
  const std::vector<tensor> results = topk.all(w);
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results[0].values(), (Floats{4, 3}));
  EXPECT_EQ(results[1].values(), (Floats{3, 2}));
  auto add_rms_norm = cpu.get_op("add_rms_norm", x, x, w);
  const tensor y({2, 4}), sum({2, 4});
  add_rms_norm(x, x, w, cermet::out(y, sum));
  EXPECT_EQ(sum.values(), (Floats{2, 2, 2, 2, 4, 4, 4, 4}));
}

TEST(ShortForm, TakesOptionalOperandsAndAttributesByName) {
  cermet::rms_norm_options options;
  options.weight = w;
  options.eps = 0;
  EXPECT_EQ(cermet::rms_norm(x, options).values(), (Floats{1, 2, 3, 4, 1, 2, 3, 4}));
  EXPECT_EQ(cermet::rms_norm(x, {{}, 0}).values(), Floats(8, 1));
  EXPECT_EQ(cermet::rms_norm(x, {.weight = w, .eps = 0, .out_dtype = "bf16"}).type(), cermet::dtype::bf16);
  EXPECT_EQ(cermet::matmul(x, x, {.transpose_b = true}).values(), (Floats{4, 8, 8, 16}));
  EXPECT_EQ(cermet::concat({w, w}).values(), (Floats{1, 2, 3, 4, 1, 2, 3, 4})) << "a list of operands";
  EXPECT_EQ(cermet::split(w, {.sizes = {1, 3}})[1].values(), (Floats{2, 3, 4})) << "a list of results";
  const cermet::topk_gating_results routed =
      cermet::topk_gating(tensor({1, 4}, {0, 1, 3, 2}), {.k = 2, .renormalize = false});
  EXPECT_EQ(routed.ids.values(), (Floats{2, 3}));
  EXPECT_EQ(cermet::max(x, x).values(), x.values()) << "a name that the standard library has, too";
  EXPECT_EQ(cermet::layer_norm(x, {.eps = 1}).shape(), x.shape());
  EXPECT_NE(refusal([] { cermet::topk_gating(tensor({1, 4}), {.k = 9}); }).find("topk_gating"), std::string::npos);
}

TEST(ShortForm, KeepsApartAttributesAndHandles) {
  for (int round = 0; round < 3; ++round)
    for (std::int64_t k = 1; k <= 4; ++k) EXPECT_EQ(cermet::topk(w, {.k = k}).values.size(), k);
  for (int i = 0; i < 40; ++i)
    EXPECT_EQ(cermet::leaky_relu(tensor({1}, {-1.0f}), {static_cast<double>(i)}).values(),
              Floats{static_cast<float>(-i)});
  for (const char* device : {"cpu", "null", "cpu"}) {
    const cermet::handle made(device, 1);
    const tensor y({2, 4}, Floats(8, -1));
    cermet::rms_norm(x, {{}, 0}, {&made, {y}});
    EXPECT_EQ(y.values(), Floats(8, made.computes() ? 1.0f : -1.0f)) << "a handle at the address of another is another";
  }
}

TEST(ShortForm, ThreadsAreApart) {
  const auto work = [](float factor) {
    for (int i = 1; i < 50; ++i) {
      const tensor t({i, 2}, Floats(static_cast<std::size_t>(2 * i), factor));
      EXPECT_EQ(cermet::add(t, t).values(), Floats(static_cast<std::size_t>(2 * i), 2 * factor));
    }
  };
  std::thread other(work, 3.0f);
  work(5.0f);
  other.join();
}

TEST(ShortForm, ResultsOnAGpuAreTheCallers) {
  const tensor gpu = tensor::view(reinterpret_cast<void*>(0x1000), {2, 4}, cermet::dtype::f32, {}, {kDLCUDA, 0});
  EXPECT_NE(refusal([&] { cermet::rms_norm(gpu); }).find("out(..)"), std::string::npos);
}

TEST(Face, TensorsAreCast) {
  EXPECT_EQ(x.to(cermet::dtype::bf16).type(), cermet::dtype::bf16);
  EXPECT_EQ(x.to(cermet::dtype::i32).to(cermet::dtype::f64).values(), x.values());
}

}  // namespace
