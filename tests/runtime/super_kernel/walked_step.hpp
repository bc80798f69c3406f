// Small decode steps whose launches all join, on a device: for tests of their regions there.
#pragma once

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <utility>
#include <vector>

#include "device/cuda/plugin.hpp"
#include "runtime/overlap.hpp"
#include "runtime/session.hpp"
#include "runtime/super_kernel/device_region.hpp"
#include "runtime/super_kernel/joinable_choice.hpp"
#include "runtime/super_kernel/super_region.hpp"
#include "tests/runtime/graph_harness.hpp"

namespace cermet {

using Needs = std::vector<std::vector<std::uint32_t>>;

inline const std::string step_text =
    "graph step {\n  input %x : f32[1, 512]\n  constant %w : bf16[1024, 512]\n  constant %v : bf16[512, 1024]\n  "
    "constant %g : f32[512]\n"
    "  %a = rms_norm(%x, %g) : f32[1, 512]  // layers.0.norm\n  %b = linear(%a, %w) : f32[1, 1024]  // layers.0.up\n"
    "  %c = gelu(%b) : f32[1, 1024]  // layers.0.act\n  %d = linear(%c, %v) : f32[1, 512]  // layers.0.down\n  %e = "
    "add(%d, %x) : f32[1, 512]  // layers.0\n"
    "  %f = rms_norm(%e, %g) : f32[1, 512]  // layers.1.norm\n  %h = linear(%f, %w) : f32[1, 1024]  // layers.1.up\n"
    "  %i = softmax(%h) : f32[1, 1024]  // layers.1.weights\n  %j = linear(%i, %v) : f32[1, 512]  // layers.1.down\n  "
    "output y = %j\n}\n";

inline const std::string int8_text =
    "graph step {\n  input %x : f32[1, 512]\n  constant %w : i8[1024, 512]\n  constant %t : f32[1024]\n  constant %v : "
    "i8[512, 1024]\n  constant %u : "
    "f32[512]\n"
    "  constant %g : f32[512]\n  %a, %m = rms_norm_quant(%x, %g) : i8[1, 512], f32[1]\n  %b = scaled_mm(%a, %w, %m, "
    "%t) : f32[1, 1024]\n"
    "  %c = gelu(%b) : f32[1, 1024]\n  %d, %n = dynamic_quant(%c) : i8[1, 1024], f32[1]\n  %e = scaled_mm(%d, %v, %n, "
    "%u) : f32[1, 512]\n"
    "  %f, %h, %o = add_rms_norm_quant(%e, %x, %g) : i8[1, 512], f32[1, 512], f32[1]\n  %i = scaled_mm(%f, %w, %o, %t) "
    ": f32[1, 1024]\n"
    "  %j, %p = dynamic_quant(%i) : i8[1, 1024], f32[1]\n  %k = scaled_mm(%j, %v, %p, %u) : f32[1, 512]\n  %y = "
    "add(%k, %h) : f32[1, 512]\n  output y = "
    "%y\n}\n";

/// Rows of 4096 and 8192: launches by themselves have 512 threads for one, or clusters.
inline const std::string wide_text =
    "graph step {\n  input %x : f32[1, 512]\n  constant %v : bf16[4096, 512]\n  constant %g : f32[4096]\n  constant %w "
    ": bf16[512, 4096]\n"
    "  constant %z : i8[512, 4096]\n  constant %u : f32[512]\n  constant %k : bf16[8192, 512]\n  constant %l : i8[512, "
    "4096]\n"
    "  %a = linear(%x, %v) : f32[1, 4096]\n  %b, %m = add_rms_norm(%a, %a, %g) : f32[1, 4096], f32[1, 4096]\n  %c = "
    "softmax(%b) : f32[1, 4096]\n"
    "  %d, %s = dynamic_quant(%m) : i8[1, 4096], f32[1]\n  %e = linear(%c, %w) : f32[1, 512]\n  %f = scaled_mm(%d, %z, "
    "%s, %u) : f32[1, 512]\n"
    "  %h = linear(%x, %k) : f32[1, 8192]\n  %i, %t = silu_and_mul_quant(%h) : i8[1, 4096], f32[1]\n  %j = "
    "scaled_mm(%i, %l, %t, %u) : f32[1, 512]\n"
    "  %n = add(%e, %f) : f32[1, 512]\n  %y = add(%n, %j) : f32[1, 512]\n  output y = %y\n}\n";

/// A mixture's layer: 8 experts of 16.
inline const std::string mixture_text =
    "graph step {\n  input %x : f32[1, 512]\n  constant %g : bf16[512]\n  constant %router : bf16[16, 512]\n  constant "
    "%w : bf16[16, 512, 512]\n"
    "  constant %v : bf16[16, 512, 256]\n  constant %o : bf16[512, 512]\n  %b = cast(%x) {out_dtype = \"bf16\"} : "
    "bf16[1, 512]\n"
    "  %a = rms_norm(%b, %g) : bf16[1, 512]\n  %scores = linear(%a, %router) {out_dtype = \"f32\"} : f32[1, 16]\n"
    "  %weights, %experts = topk_gating(%scores) {k = 8} : f32[1, 8], i32[1, 8]\n"
    "  %rows, %offsets, %row_of = moe_permute(%a, %experts) {experts = 16} : bf16[8, 512], i32[17], i32[1, 8]\n"
    "  %h = grouped_linear(%rows, %w, %offsets) : bf16[8, 512]\n  %act = silu_and_mul(%h) : bf16[8, 256]\n"
    "  %down = grouped_linear(%act, %v, %offsets) : bf16[8, 512]\n  %sum = moe_unpermute(%down, %row_of, %weights) : "
    "bf16[1, 512]\n"
    "  %y = linear(%sum, %o) {out_dtype = \"f32\"} : f32[1, 512]\n  output y = %y\n}\n";

/// Heads of a query between products, over 600 keys: blocks share the keys of each of two heads.
inline const std::string attention_text =
    "graph step {\n  input %x : f32[1, 512]\n  constant %w : bf16[512, 512]\n  constant %v : bf16[512, 512]\n  "
    "constant %k_cache : bf16[40, 2, 16, 64]\n"
    "  constant %v_cache : bf16[40, 2, 16, 64]\n  constant %pages : i32[1, 40]\n  constant %lengths : i32[1]\n"
    "  %a = linear(%x, %w) : f32[1, 512]\n  %q = reshape(%a) {shape = [0, 8, 64]} : f32[1, 8, 64]\n"
    "  %o = incre_flash_attention(%q, %k_cache, %v_cache, %pages, %lengths) : f32[1, 8, 64]\n  %f = reshape(%o) {shape "
    "= [0, 512]} : f32[1, 512]\n"
    "  %b = linear(%f, %v) : f32[1, 512]\n  %r = reshape(%b) {shape = [0, 8, 64]} : f32[1, 8, 64]\n"
    "  %s = incre_flash_attention(%r, %v_cache, %k_cache, %pages, %lengths) : f32[1, 8, 64]\n  %g = reshape(%s) {shape "
    "= [0, 512]} : f32[1, 512]\n"
    "  %y = linear(%g, %w) : f32[1, 512]\n  output y = %y\n}\n";

/// Products of so many rows in bf16, int8 and fp8: of one weight and of two, of an item for each block, of several, and
/// of fewer stages than sets of warps.
inline std::string rows_step(int rows) {
  std::string text =
      "graph step {\n  input %x : f32[R, 512]\n  constant %w : bf16[2048, 512]\n  constant %gate : bf16[1040, 2048]\n  "
      "constant %up : bf16[1040, 2048]\n"
      "  constant %v : i8[1536, 1040]\n  constant %t : f32[1536]\n  constant %e : f8_e4m3[1024, 1536]\n  constant %u : "
      "f32[1024]\n"
      "  constant %g : f32[512]\n  constant %n : bf16[64, 1024]\n  constant %h : bf16[24000, 64]\n"
      "  %a = rms_norm(%x, %g) {out_dtype = \"bf16\"} : bf16[R, 512]\n  %b = linear(%a, %w) : bf16[R, 2048]\n"
      "  %c = dual_linear(%b, %gate, %up) : bf16[R, 1040]\n  %d, %m = dynamic_quant(%c) : i8[R, 1040], f32[R]\n"
      "  %f = scaled_mm(%d, %v, %m, %t) {out_dtype = \"bf16\"} : bf16[R, 1536]\n"
      "  %i, %p = dynamic_quant(%f) {out_dtype = \"f8_e4m3\"} : f8_e4m3[R, 1536], f32[R]\n"
      "  %j = scaled_mm(%i, %e, %p, %u) {out_dtype = \"bf16\"} : bf16[R, 1024]\n  %k = linear(%j, %n) : bf16[R, 64]\n"
      "  %y = linear(%k, %h) : bf16[R, 24000]\n  output y = %y\n}\n";
  for (std::size_t at; (at = text.find("[R")) != std::string::npos;) text.replace(at + 1, 1, std::to_string(rows));
  return text;
}
/// Products of many rows, whose tasks have whole blocks.
inline const std::string whole_text =
    "graph step {\n  input %x : f32[300, 512]\n  constant %w : i8[1024, 512]\n  constant %t : f32[1024]\n  constant %s "
    ": f32[300, 1024]\n"
    "  constant %v : i8[768, 512]\n  constant %u : f32[768]\n  %a, %m = dynamic_quant(%x) : i8[300, 512], f32[300]\n"
    "  %b = scaled_mm(%a, %w, %m, %t) {out_dtype = \"bf16\"} : bf16[300, 1024]\n  %q, %n = dequant_swiglu_quant(%b, "
    "%s) : i8[300, 512], f32[300]\n"
    "  %y = scaled_mm(%q, %v, %n, %u) : f32[300, 768]\n  output y = %y\n}\n";
inline const std::string two_rows_text = rows_step(2), eight_rows_text = rows_step(8),
                         sixteen_rows_text = rows_step(16);

/// Branches of a few rows that do not need each other, of norms and softmax in turn, and their sum, or each for itself.
inline std::string branches_step(int branches, int pairs = 2, int columns = 512, bool sums = true) {
  const std::string rows = fmt::format("f32[16, {}]", columns);
  std::string text = fmt::format("graph step {{\n  input %x : {}\n", rows), nodes, outputs, sum;
  for (int b = 0; b < branches; ++b) {
    text += fmt::format("  constant %g{} : f32[{}]\n", b, columns);
    std::string last = "%x";
    for (int p = 0; p < pairs; ++p) {
      nodes += fmt::format("  %a{0}_{1} = rms_norm({2}, %g{0}) : {3}\n  %b{0}_{1} = softmax(%a{0}_{1}) : {3}\n", b, p,
                           last, rows);
      last = fmt::format("%b{}_{}", b, p);
    }
    if (!sums) outputs += fmt::format("  output y{} = {}\n", b, last);
    else if (b > 0) nodes += fmt::format("  %s{} = add({}, {}) : {}\n", b, sum, last, rows);
    sum = b > 0 ? fmt::format("%s{}", b) : last;
  }
  if (sums) outputs = "  output y = " + sum + "\n";
  return text + nodes + outputs + "}\n";
}
inline const std::string branches_text = branches_step(4);

/// A mixture of two experts a token whose second product has rows of 14336: products and their sum by themselves.
inline const std::string long_rows_text =
    "graph step {\n  input %x : f32[1, 512]\n  constant %router : bf16[4, 512]\n  constant %w : bf16[4, 28672, 512]\n  "
    "constant %v : bf16[4, 512, 14336]\n"
    "  %b = cast(%x) {out_dtype = \"bf16\"} : bf16[1, 512]\n  %scores = linear(%b, %router) {out_dtype = \"f32\"} : "
    "f32[1, 4]\n"
    "  %weights, %experts = topk_gating(%scores) {k = 2} : f32[1, 2], i32[1, 2]\n"
    "  %rows, %offsets, %row_of = moe_permute(%b, %experts) {experts = 4} : bf16[2, 512], i32[5], i32[1, 2]\n"
    "  %h = grouped_linear(%rows, %w, %offsets) : bf16[2, 28672]\n  %act = silu_and_mul(%h) : bf16[2, 14336]\n"
    "  %down = grouped_linear(%act, %v, %offsets) : bf16[2, 512]\n  %y = moe_unpermute(%down, %row_of, %weights) : "
    "bf16[1, 512]\n  output y = %y\n}\n";

inline void load_attention(const std::string& name, std::int64_t slice, const TensorView& destination) {
  if (name == "pages")
    for (std::int64_t i = 0; i < 40; ++i) store(destination, i, static_cast<double>(39 - i));
  else if (name == "lengths") store(destination, 0, 600);
  else load_by_name(name, slice, destination);
}

/// The step on a device, with its input there.
struct Step {
  Context context;
  Session session;
  DeviceBuffer x;

  static SessionOptions options_of(const std::string& select, const std::string& options) {
    SessionOptions made;
    made.fusion.super_kernel = {select, options};
    return made;
  }
  Step(const std::string& device, const std::string& select, const std::string& options,
       const std::string& text = step_text)
      : context({device, 2}),
        session(parse_graph(text), context, text == attention_text ? load_attention : load_by_name,
                options_of(select, options)) {
    const std::size_t at = text.find("%x : f32[") + 9;
    const std::int64_t rows = std::stoll(text.substr(at)), columns = std::stoll(text.substr(text.find(',', at) + 1));
    OwnedTensor values(DType::f32, {rows, columns});
    fill_by_name("x", values.view);
    x = context.device().allocate(rows * columns * 4);
    context.stream()->upload(x.data(), values.view.data, x.size());
    context.stream()->synchronize();
    session.bind("x", {x.data(), DType::f32, {rows, columns}});
  }
  std::vector<std::byte> run() {
    session.run();
    const TensorView y = session.host_output("y");
    return {y.as<std::byte>(), y.as<std::byte>() + dense_bytes(y.dtype, y.shape)};
  }
  /// Programs and names of the launches of the only region, to make it by hand.
  std::vector<cuda::Program> programs;
  std::vector<RegionLaunch> launches() {
    const Plan& plan = session.executable().plan();
    const SuperRegion& region = session.executable().super_kernels()->regions.at(0);
    programs.clear();
    for (std::size_t l = region.first_launch; l < region.end_launch; ++l) {
      const StepInfo& info = session.executable().steps()[plan.launches()[l].step];
      Choice choice = select_kernel(info.region);
      choose_joinable(info.region, choice);
      programs.push_back(choice.kernel->programs(info.region, choice.config).at(plan.launches()[l].program));
    }
    std::vector<RegionLaunch> list;
    for (std::size_t i = 0; i < programs.size(); ++i) list.push_back({&programs[i], fmt::format("launch {}", i)});
    return list;
  }
};

/// Blocks of a walk that go on in any order. Each takes its items of one launch after the other: every blocks-th, from
/// its place after the launch's first block on (`first_block`; empty: 0). It waits for the launches that it needs, and
/// arrives once after its own. Nothing where all end, and each item began when all launches that write what its own
/// touches, or touch what that writes, had ended.
/// `needs` begin with the launch `first`.
inline std::string walk_in_any_order(const Plan& plan, std::uint32_t blocks, std::uint64_t seed, const Needs& needs,
                                     std::size_t first = 0, std::span<const std::uint32_t> first_block = {}) {
  const std::size_t count = needs.size();
  const std::span<const Launch> launches = plan.launches().subspan(first, count);
  std::vector<std::uint32_t> at(blocks), arrivals(count), ended(count);
  Needs all_needs(count);
  for (std::uint32_t l = 0; l < count; ++l)
    for (std::uint32_t before = 0; before < l; ++before)
      if (must_follow(plan, first + before, first + l)) all_needs[l].push_back(before);
  const auto arrives = [&](std::size_t l) { return std::min(launches[l].items, blocks); };
  std::mt19937_64 random(seed);
  for (std::vector<std::uint32_t> able;; able.clear()) {
    bool all = true;
    for (std::uint32_t b = 0; b < blocks; ++b) {
      all = all && at[b] == count;
      if (at[b] < count &&
          std::ranges::all_of(needs[at[b]], [&](std::uint32_t need) { return arrivals[need] == arrives(need); }))
        able.push_back(b);
    }
    if (able.empty()) return all ? "" : "deadlock";
    const std::uint32_t b = able[random() % able.size()];
    const std::size_t l = at[b]++;
    const std::uint32_t place = first_block.empty() ? b : (b + blocks - first_block[l]) % blocks;
    for (std::uint32_t item = place; item < launches[l].items; item += blocks) {
      for (const std::uint32_t before : all_needs[l])
        if (ended[before] < launches[before].items)
          return fmt::format("launch {} item {} began before launch {} had ended", l, item, before);
      ++ended[l];
    }
    if (place < arrives(l)) ++arrivals[l];
  }
}

class DeviceStep : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = cuda::unavailable_reason(); !reason.empty()) GTEST_SKIP() << reason;
    if (make_device("cuda")->target()->compute_capability != 90)
      GTEST_SKIP() << "super-kernels need compute capability 9.0";
  }
};

/// Each by its name.
inline const auto walked_steps =
    testing::Values(std::pair("bf16", &step_text), std::pair("int8", &int8_text), std::pair("wide", &wide_text),
                    std::pair("mixture", &mixture_text), std::pair("two_rows", &two_rows_text),
                    std::pair("eight_rows", &eight_rows_text), std::pair("sixteen_rows", &sixteen_rows_text),
                    std::pair("whole", &whole_text), std::pair("branches", &branches_text));
inline const auto name_of_step = [](const auto& step) { return std::string(step.param.first); };

}  // namespace cermet
