// Floating point arithmetic: float32 and float64 as IEEE 754 says, 16-bit types rounded once, approximations exactly.
#include <algorithm>
#include <cfenv>
#include <cmath>

#include "tests/emulator/decode.hpp"
#include "tests/emulator/float_formats.hpp"

namespace cermet::emulator {
namespace {

constexpr std::uint8_t flushes = 1, saturates = 2, rounding_shift = 2, propagates_nan = 16;

/// Modifiers of an operation, in Instruction::option.
std::uint8_t options_of(Decoder& d) {
  std::uint8_t option = 0;
  if (d.has("ftz")) option |= flushes;
  if (d.has("sat")) option |= saturates;
  if (d.has("NaN")) option |= propagates_nan;
  if (d.has("rz")) option |= 1 << rounding_shift;
  if (d.has("rm")) option |= 2 << rounding_shift;
  if (d.has("rp")) option |= 3 << rounding_shift;
  d.ignore({"rn", "approx", "full", "rna"});
  return option;
}

float flushed(float x) { return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0f, x) : x; }

class RoundingMode {
 public:
  explicit RoundingMode(int option) : is_set_((option >> rounding_shift & 3) != 0) {
    constexpr int modes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
    if (is_set_) std::fesetround(modes[option >> rounding_shift & 3]);
  }
  ~RoundingMode() {
    if (is_set_) std::fesetround(FE_TONEAREST);
  }
  RoundingMode(const RoundingMode&) = delete;
  RoundingMode& operator=(const RoundingMode&) = delete;

 private:
  bool is_set_;
};

constexpr auto add_op = [](auto a, auto b, auto) { return a + b; };
constexpr auto sub_op = [](auto a, auto b, auto) { return a - b; };
constexpr auto mul_op = [](auto a, auto b, auto) { return a * b; };
constexpr auto div_op = [](auto a, auto b, auto) { return a / b; };
constexpr auto fma_op = [](auto a, auto b, auto c) { return std::fma(a, b, c); };
constexpr auto neg_op = [](auto a, auto, auto) { return -a; };
constexpr auto abs_op = [](auto a, auto, auto) { return std::fabs(a); };
constexpr auto sqrt_op = [](auto a, auto, auto) { return std::sqrt(a); };
constexpr auto rcp_op = [](auto a, auto, auto) { return 1 / a; };
constexpr auto rsqrt_op = [](auto a, auto, auto) {
  return static_cast<decltype(a)>(1 / std::sqrt(static_cast<double>(a)));
};
constexpr auto ex2_op = [](auto a, auto, auto) { return std::exp2(a); };
constexpr auto lg2_op = [](auto a, auto, auto) { return std::log2(a); };
constexpr auto sin_op = [](auto a, auto, auto) { return std::sin(a); };
constexpr auto cos_op = [](auto a, auto, auto) { return std::cos(a); };
constexpr auto tanh_op = [](auto a, auto, auto) { return std::tanh(a); };
constexpr auto copysign_op = [](auto sign, auto a, auto) { return std::copysign(a, sign); };

/// Keeps the compiler from computing in another rounding mode than the one that is set.
float opaque(float x) {
  volatile float kept = x;
  return kept;
}

/// r[0] = F(r[1], r[2], r[3]) of float32.
template <auto F>
void run_f32(Thread& t, const Instruction& in) {
  float a = t.get<float>(in.r[1]), b = t.get<float>(in.r[2]), c = t.get<float>(in.r[3]);
  if (in.option & flushes) a = flushed(a), b = flushed(b), c = flushed(c);
  float result;
  {
    const RoundingMode mode(in.option);
    result = opaque(F(opaque(a), opaque(b), opaque(c)));
  }
  if (in.option & flushes) result = flushed(result);
  if (in.option & saturates) result = std::isnan(result) ? 0.0f : std::clamp(result, 0.0f, 1.0f);
  t.set<float>(in.r[0], result);
}
template <auto F>
void run_plain_f32(Thread& t, const Instruction& in) {
  t.set<float>(in.r[0], F(t.get<float>(in.r[1]), t.get<float>(in.r[2]), t.get<float>(in.r[3])));
}
template <auto F>
void run_f64(Thread& t, const Instruction& in) {
  const RoundingMode mode(in.option);
  t.set<double>(in.r[0], F(t.get<double>(in.r[1]), t.get<double>(in.r[2]), t.get<double>(in.r[3])));
}

struct Half {
  static double decode(std::uint16_t bits) { return decode_float(bits, half_format); }
  static std::uint16_t encode(double x) { return float_to_half(x); }
};
struct Bfloat {
  static double decode(std::uint16_t bits) { return bfloat_to_float(bits); }
  static std::uint16_t encode(double x) {
    return static_cast<std::uint16_t>(encode_float(x, bfloat_format, Rounding::nearest, false));
  }
};

/// One or two numbers of 16 bits: double is wide enough for their sums and products to be rounded once.
template <auto F, class Format, unsigned Count>
void run_16(Thread& t, const Instruction& in) {
  std::uint32_t result = 0;
  for (unsigned k = 0; k < Count; ++k) {
    const auto part = [&](std::uint32_t r) {
      return Format::decode(static_cast<std::uint16_t>(t.get<std::uint32_t>(r) >> 16 * k));
    };
    double value = F(part(in.r[1]), part(in.r[2]), part(in.r[3]));
    if (in.option & saturates) value = std::isnan(value) ? 0 : std::clamp<double>(value, 0, 1);
    result |= std::uint32_t{Format::encode(value)} << 16 * k;
  }
  t.set<std::uint32_t>(in.r[0], result);
}

template <auto F>
Run float_run(Decoder& d, Type type, std::uint8_t option) {
  switch (type) {
    case Type::f32: return option ? run_f32<F> : run_plain_f32<F>;
    case Type::f64: return run_f64<F>;
    case Type::f16: return run_16<F, Half, 1>;
    case Type::bf16: return run_16<F, Bfloat, 1>;
    case Type::f16x2: return run_16<F, Half, 2>;
    case Type::bf16x2: return run_16<F, Bfloat, 2>;
    default: d.unknown("type");
  }
}

bool is_float(Type type) { return type >= Type::f16; }

template <auto F>
void float_only(Decoder& d, Instruction& in) {
  in.r[1] = in.r[2] = in.r[3] = d.constant(0);
  d.all(in);
  in.option = options_of(d);
  in.run = float_run<F>(d, d.type(), in.option);
}

/// An operation that integers have, too.
template <auto F>
void any(Decoder& d, Instruction& in) {
  in.r[1] = in.r[2] = in.r[3] = d.constant(0);
  d.all(in);
  in.option = options_of(d);
  const Type type = d.type();
  if (is_float(type)) in.run = float_run<F>(d, type, in.option);
  else if (in.option) d.unknown("modifier");
  else in.run = integer_binary(d, d.operation(), type);
}

template <bool Largest>
constexpr auto extreme = [](auto a, auto b, auto) {
  if (std::isnan(a)) return b;
  if (std::isnan(b)) return a;
  if (a == b) return std::signbit(a) == Largest ? b : a;  // of two zeros the one of that sign
  return (a < b) == Largest ? b : a;
};
template <bool Largest>
constexpr auto extreme_or_nan = [](auto a, auto b, auto) {
  if (std::isnan(a) || std::isnan(b)) return static_cast<decltype(a)>(NAN);
  return extreme<Largest>(a, b, b);
};
template <bool Largest>
void minimum_or_maximum(Decoder& d, Instruction& in) {
  in.r[3] = d.constant(0);
  d.all(in);
  in.option = options_of(d);
  const Type type = d.type();
  if (!is_float(type)) in.run = integer_binary(d, d.operation(), type);
  else if (in.option & propagates_nan) in.run = float_run<extreme_or_nan<Largest>>(d, type, in.option);
  else in.run = float_run<extreme<Largest>>(d, type, in.option);
}

void multiply(Decoder& d, Instruction& in) {
  const bool adds = d.operation() == "mad";
  if (d.has_type()) {
    Decoder peek = d;
    if (const Type type = peek.type(); is_float(type))
      return adds ? float_only<fma_op>(d, in) : float_only<mul_op>(d, in);
  }
  integer_product(d, in, adds);
}

// Comparisons.

enum Compare : std::uint8_t { eq, ne, lt, le, gt, ge, equ, neu, ltu, leu, gtu, geu, num, nan };

Compare compare_of(Decoder& d) {
  const std::string_view word = d.word();
  constexpr std::string_view names[] = {"eq",  "ne",  "lt",  "le",  "gt",  "ge",  "equ",
                                        "neu", "ltu", "leu", "gtu", "geu", "num", "nan"};
  for (std::size_t i = 0; i < std::size(names); ++i)
    if (word == names[i]) return static_cast<Compare>(i);
  if (word == "lo") return lt;
  if (word == "ls") return le;
  if (word == "hi") return gt;
  if (word == "hs") return ge;
  d.unknown("comparison");
}

template <class T>
bool compare(Compare c, T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    const bool unordered = std::isnan(a) || std::isnan(b);
    if (c == num) return !unordered;
    if (c == nan) return unordered;
    if (unordered) return c >= equ;
    if (c >= equ) c = static_cast<Compare>(c - equ);
  }
  switch (c) {
    case eq: return a == b;
    case ne: return a != b;
    case lt: return a < b;
    case le: return a <= b;
    case gt: return a > b;
    default: return a >= b;
  }
}

/// r[0] (and its opposite r[1]) = r[2] compared with r[3], combined with r[4].
template <class T, auto Read>
void run_setp(Thread& t, const Instruction& in) {
  bool result = compare<T>(static_cast<Compare>(in.bytes), Read(t, in.r[2]), Read(t, in.r[3]));
  const bool other = t.predicate(in.r[4]) != (in.option >> 2 & 1);
  bool opposite = !result;
  switch (in.option & 3) {
    case 1: result = result && other, opposite = opposite && other; break;
    case 2: result = result || other, opposite = opposite || other; break;
    case 3: result = result != other, opposite = opposite != other; break;
    default: break;
  }
  t.set<std::uint8_t>(in.r[1], opposite);
  t.set<std::uint8_t>(in.r[0], result);
}

template <class T>
T plain(const Thread& t, std::uint32_t r) {
  return t.get<T>(r);
}
float flushed_read(const Thread& t, std::uint32_t r) { return flushed(t.get<float>(r)); }
double half_read(const Thread& t, std::uint32_t r) { return Half::decode(t.get<std::uint16_t>(r)); }
double bfloat_read(const Thread& t, std::uint32_t r) { return Bfloat::decode(t.get<std::uint16_t>(r)); }

void set_predicate(Decoder& d, Instruction& in) {
  in.bytes = compare_of(d);
  in.option = d.has("and") ? 1 : d.has("or") ? 2 : d.has("xor") ? 3 : 0;
  const std::vector<std::uint32_t> results = d.regs(d.at(0));
  in.r[0] = results[0];
  in.r[1] = results.size() > 1 ? results[1] : d.reg(Operand{});
  in.r[2] = d.reg(1);
  in.r[3] = d.reg(2);
  in.r[4] = d.count() > 3 ? d.reg(3) : d.constant(0);
  if (d.count() > 3 && d.at(3).negated) in.option |= 4;
  const bool ftz = d.has("ftz");
  switch (const Type type = d.type()) {
    case Type::f32: in.run = ftz ? run_setp<float, flushed_read> : run_setp<float, plain<float>>; break;
    case Type::f64: in.run = run_setp<double, plain<double>>; break;
    case Type::f16: in.run = run_setp<double, half_read>; break;
    case Type::bf16: in.run = run_setp<double, bfloat_read>; break;
    default:
      in.run = for_bits(d, type, [](auto zero) -> Run { return run_setp<decltype(zero), plain<decltype(zero)>>; });
  }
}

void test_float(Decoder& d, Instruction& in) {  // testp
  const std::string_view word = d.word();
  constexpr std::string_view names[] = {"finite", "infinite", "number", "notanumber", "normal", "subnormal"};
  const auto found = std::ranges::find(names, word);
  if (found == std::end(names) || d.type() != Type::f32) d.unknown("test");
  in.option = static_cast<std::uint8_t>(found - std::begin(names));
  d.all(in);
  in.run = [](Thread& t, const Instruction& i) {
    const float x = t.get<float>(i.r[1]);
    const bool results[] = {std::isfinite(x), std::isinf(x),    !std::isnan(x),
                            std::isnan(x),    std::isnormal(x), std::fpclassify(x) == FP_SUBNORMAL};
    t.set<std::uint8_t>(i.r[0], results[i.option]);
  };
}

void select(Decoder& d, Instruction& in) {  // selp
  d.all(in);
  in.option = d.at(3).negated;
  in.run = for_bits(d, d.type(), [](auto zero) -> Run {
    using T = decltype(zero);
    return [](Thread& t, const Instruction& i) {
      t.set<T>(i.r[0], t.get<T>(t.predicate(i.r[3]) != (i.option & 1) ? i.r[1] : i.r[2]));
    };
  });
}

}  // namespace

void add_float_arithmetic(Table& table) {
  table["add"] = any<add_op>;
  table["sub"] = any<sub_op>;
  table["div"] = any<div_op>;
  table["neg"] = any<neg_op>;
  table["abs"] = any<abs_op>;
  table["mul"] = multiply;
  table["mad"] = multiply;
  table["fma"] = float_only<fma_op>;
  table["min"] = minimum_or_maximum<false>;
  table["max"] = minimum_or_maximum<true>;
  table["rcp"] = float_only<rcp_op>;
  table["sqrt"] = float_only<sqrt_op>;
  table["rsqrt"] = float_only<rsqrt_op>;
  table["ex2"] = float_only<ex2_op>;
  table["lg2"] = float_only<lg2_op>;
  table["sin"] = float_only<sin_op>;
  table["cos"] = float_only<cos_op>;
  table["tanh"] = float_only<tanh_op>;
  table["copysign"] = float_only<copysign_op>;
  table["setp"] = set_predicate;
  table["selp"] = select;
  table["testp"] = test_float;
}

}  // namespace cermet::emulator
