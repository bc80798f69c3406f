// cvt, mov between sizes, and addresses of windows.
#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/emulator/decode.hpp"
#include "tests/emulator/float_formats.hpp"

namespace cermet::emulator {
namespace {

constexpr std::uint8_t flushes = 1, saturates = 2, to_integer = 4, relu = 8;

template <class T>
struct IntegerSource {
  static __int128 read(const Thread& t, std::uint32_t r) { return t.get<T>(r); }
};
struct F32Source {
  static double read(const Thread& t, std::uint32_t r) { return t.get<float>(r); }
};
struct F64Source {
  static double read(const Thread& t, std::uint32_t r) { return t.get<double>(r); }
};
struct F16Source {
  static double read(const Thread& t, std::uint32_t r) { return decode_float(t.get<std::uint16_t>(r), half_format); }
};
struct Bf16Source {
  static double read(const Thread& t, std::uint32_t r) { return bfloat_to_float(t.get<std::uint16_t>(r)); }
};

template <class T>
T clamp_integer(__int128 x) {
  constexpr __int128 low = std::numeric_limits<T>::min(), high = std::numeric_limits<T>::max();
  return static_cast<T>(x < low ? low : x > high ? high : x);
}

float round_f32(double x, Rounding rounding) {
  const auto nearest = static_cast<float>(x);
  if (rounding == Rounding::nearest || std::isnan(nearest) || nearest == x) return nearest;
  const bool too_high = nearest > x;
  const bool wants_low = rounding == Rounding::down || (rounding == Rounding::zero && x > 0);
  if (too_high == wants_low) return std::nextafter(nearest, wants_low ? -INFINITY : INFINITY);
  return nearest;
}

/// r[0] = the integer type T of what Source reads from r[1].
template <class T, class Source>
void to_int(Thread& t, const Instruction& in) {
  const auto x = Source::read(t, in.r[1]);
  if constexpr (std::is_same_v<std::remove_const_t<decltype(x)>, double>) {
    const double whole = round_integer(x, static_cast<Rounding>(in.count));
    constexpr double low = static_cast<double>(std::numeric_limits<T>::min()),
                     high = static_cast<double>(std::numeric_limits<T>::max());
    T result;
    if (std::isnan(x)) result = sizeof(T) == 8 ? static_cast<T>(std::uint64_t{1} << 63) : T{0};
    else if (whole <= low) result = std::numeric_limits<T>::min();
    else if (whole >= high) result = std::numeric_limits<T>::max();
    else result = static_cast<T>(whole);
    t.set<T>(in.r[0], result);
  } else {
    t.set<T>(in.r[0], in.option & saturates ? clamp_integer<T>(x) : static_cast<T>(x));
  }
}

template <class Source>
double float_source(Thread& t, const Instruction& in) {
  double x = static_cast<double>(Source::read(t, in.r[1]));
  if ((in.option & flushes) && std::fabs(x) < std::numeric_limits<float>::min()) x = std::copysign(0.0, x);
  if (in.option & to_integer) x = round_integer(x, static_cast<Rounding>(in.count));
  if (in.option & saturates) x = std::isnan(x) ? 0 : std::clamp(x, 0.0, 1.0);
  if (in.option & relu) x = std::isnan(x) ? x : std::max(x, 0.0);
  return x;
}

template <class Source>
void to_f32(Thread& t, const Instruction& in) {
  // 64-bit integers and their like are rounded once: long double holds them all.
  const auto raw = Source::read(t, in.r[1]);
  if constexpr (!std::is_same_v<std::remove_const_t<decltype(raw)>, double>)
    t.set<float>(in.r[0], static_cast<float>(static_cast<long double>(raw)));
  else t.set<float>(in.r[0], round_f32(float_source<Source>(t, in), static_cast<Rounding>(in.count)));
}
template <class Source>
void to_f64(Thread& t, const Instruction& in) {
  t.set<double>(in.r[0], float_source<Source>(t, in));
}
template <class Source>
void to_f16(Thread& t, const Instruction& in) {
  t.set<std::uint16_t>(in.r[0], static_cast<std::uint16_t>(encode_float(float_source<Source>(t, in), half_format,
                                                                        static_cast<Rounding>(in.count), false)));
}
template <class Source>
void to_bf16(Thread& t, const Instruction& in) {
  t.set<std::uint16_t>(in.r[0], static_cast<std::uint16_t>(encode_float(float_source<Source>(t, in), bfloat_format,
                                                                        static_cast<Rounding>(in.count), false)));
}

template <class Source>
Run convert_from(Decoder& d, Type to) {
  switch (to) {
    case Type::u8: return to_int<std::uint8_t, Source>;
    case Type::s8: return to_int<std::int8_t, Source>;
    case Type::u16: return to_int<std::uint16_t, Source>;
    case Type::s16: return to_int<std::int16_t, Source>;
    case Type::u32: return to_int<std::uint32_t, Source>;
    case Type::s32: return to_int<std::int32_t, Source>;
    case Type::u64: return to_int<std::uint64_t, Source>;
    case Type::s64: return to_int<std::int64_t, Source>;
    case Type::f16: return to_f16<Source>;
    case Type::bf16: return to_bf16<Source>;
    case Type::f32: return to_f32<Source>;
    case Type::f64: return to_f64<Source>;
    default: d.unknown("type");
  }
}

Run convert_run(Decoder& d, Type to, Type from) {
  switch (from) {
    case Type::b8:
    case Type::u8: return convert_from<IntegerSource<std::uint8_t>>(d, to);
    case Type::s8: return convert_from<IntegerSource<std::int8_t>>(d, to);
    case Type::u16: return convert_from<IntegerSource<std::uint16_t>>(d, to);
    case Type::s16: return convert_from<IntegerSource<std::int16_t>>(d, to);
    case Type::u32: return convert_from<IntegerSource<std::uint32_t>>(d, to);
    case Type::s32: return convert_from<IntegerSource<std::int32_t>>(d, to);
    case Type::u64: return convert_from<IntegerSource<std::uint64_t>>(d, to);
    case Type::s64: return convert_from<IntegerSource<std::int64_t>>(d, to);
    case Type::f16: return convert_from<F16Source>(d, to);
    case Type::bf16: return convert_from<Bf16Source>(d, to);
    case Type::f32: return convert_from<F32Source>(d, to);
    case Type::f64: return convert_from<F64Source>(d, to);
    default: d.unknown("type");
  }
}

FloatFormat format_of(Type type) {
  switch (type) {
    case Type::f16x2: return half_format;
    case Type::bf16x2: return bfloat_format;
    case Type::e4m3x2: return e4m3_format;
    default: return e5m2_format;
  }
}

/// Two numbers at a time: cvt.rn.bf16x2.f32 d, high, low, or between pairs.
void convert_pair(Instruction& in, Type to, Type from) {
  const bool eight_bits = to == Type::e4m3x2 || to == Type::e5m2x2;
  in.bytes = static_cast<std::uint8_t>(static_cast<unsigned>(to));
  in.offset = static_cast<std::int64_t>(from);
  if (eight_bits) in.option |= saturates;
  if (from == Type::f32) {
    in.run = [](Thread& t, const Instruction& i) {
      const FloatFormat f = format_of(static_cast<Type>(i.bytes));
      const unsigned bits = static_cast<unsigned>(1 + f.exponent_bits + f.mantissa_bits);
      std::uint32_t result = 0;
      for (unsigned k = 0; k < 2; ++k) {
        double x = t.get<float>(i.r[2 - k]);
        if (i.option & relu) x = std::isnan(x) ? x : std::max(x, 0.0);
        result |= encode_float(x, f, static_cast<Rounding>(i.count), i.option & saturates) << bits * k;
      }
      t.set<std::uint32_t>(i.r[0], result);
    };
    return;
  }
  in.run = [](Thread& t, const Instruction& i) {
    const FloatFormat f = format_of(static_cast<Type>(i.bytes)), g = format_of(static_cast<Type>(i.offset));
    const auto width = [](FloatFormat x) { return static_cast<unsigned>(1 + x.exponent_bits + x.mantissa_bits); };
    std::uint32_t result = 0;
    for (unsigned k = 0; k < 2; ++k) {
      const std::uint32_t part = t.get<std::uint32_t>(i.r[1]) >> width(g) * k & ((1u << width(g)) - 1);
      result |= encode_float(decode_float(part, g), f, static_cast<Rounding>(i.count), i.option & saturates)
                << width(f) * k;
    }
    t.set<std::uint32_t>(i.r[0], result);
  };
}

bool is_pair(Type type) { return type >= Type::f16x2 && type <= Type::e5m2x2; }

void convert(Decoder& d, Instruction& in) {
  d.all(in);
  in.option = static_cast<std::uint8_t>((d.has("ftz") ? flushes : 0) | (d.has("relu") ? relu : 0));
  if (d.has("sat") || d.has("satfinite")) in.option |= saturates;
  Rounding rounding = Rounding::nearest;
  for (const auto& [word, r] :
       {std::pair("rz", Rounding::zero), std::pair("rm", Rounding::down), std::pair("rp", Rounding::up)})
    if (d.has(word)) rounding = r;
  for (const auto& [word, r] : {std::pair("rni", Rounding::nearest), std::pair("rzi", Rounding::zero),
                                std::pair("rmi", Rounding::down), std::pair("rpi", Rounding::up)})
    if (d.has(word)) rounding = r, in.option |= to_integer;
  d.ignore({"rn", "rna"});
  in.count = static_cast<std::uint8_t>(rounding);
  const Type from = d.type(), to = d.type();
  if (to == Type::tf32) {
    in.run = [](Thread& t, const Instruction& i) {
      t.set<std::uint32_t>(i.r[0], (t.get<std::uint32_t>(i.r[1]) + 0x1000u) & 0xffffe000u);
    };
  } else if (is_pair(to) || is_pair(from)) {
    convert_pair(in, to, from);
  } else {
    in.run = convert_run(d, to, from);
  }
}

/// Also between a register and those that hold its parts.
void move(Decoder& d, Instruction& in) {
  if (d.count() > 1 && d.at(1).kind == Operand::Kind::name &&
      (d.at(1).name.starts_with("%clock") || d.at(1).name.starts_with("%globaltimer"))) {
    in.r[0] = d.reg(0);
    d.type();
    in.run = [](Thread& t, const Instruction& i) { t.set<std::uint64_t>(i.r[0], ++t.launch().executed); };
    return;
  }
  const std::vector<std::uint32_t> to = d.regs(d.at(0)), from = d.regs(d.at(1));
  const Type type = d.type();
  d.all(in);
  in.option = d.at(1).negated;
  const unsigned parts = static_cast<unsigned>(std::max(to.size(), from.size()));
  const unsigned whole = type >= Type::b64 && type <= Type::s64 ? 64 : type >= Type::b32 && type <= Type::s32 ? 32 : 16;
  in.bytes = static_cast<std::uint8_t>(parts > 1 ? whole / parts : 0);
  in.count = static_cast<std::uint8_t>(parts);
  if (to.size() > 1)
    in.run = [](Thread& t, const Instruction& i) {
      const std::uint64_t value = t.registers[i.r[i.count]], mask = ~std::uint64_t{0} >> (64 - i.bytes);
      for (unsigned k = 0; k < i.count; ++k) t.registers[i.r[k]] = value >> i.bytes * k & mask;
    };
  else if (from.size() > 1)
    in.run = [](Thread& t, const Instruction& i) {
      const std::uint64_t mask = ~std::uint64_t{0} >> (64 - i.bytes);
      std::uint64_t value = 0;
      for (unsigned k = 0; k < i.count; ++k) value |= (t.registers[i.r[1 + k]] & mask) << i.bytes * k;
      t.registers[i.r[0]] = value;
    };
  else if (type == Type::pred)
    in.run = [](Thread& t, const Instruction& i) { t.set<std::uint8_t>(i.r[0], t.predicate(i.r[1]) != i.option); };
  else in.run = [](Thread& t, const Instruction& i) { t.registers[i.r[0]] = t.registers[i.r[1]]; };
}

template <std::uint64_t Window>
Run to_generic() {
  return [](Thread& t, const Instruction& i) { t.registers[i.r[0]] = t.registers[i.r[1]] | Window; };
}
template <std::uint64_t Window>
Run from_generic() {
  return [](Thread& t, const Instruction& i) { t.registers[i.r[0]] = t.registers[i.r[1]] & ~Window; };
}

void convert_address(Decoder& d, Instruction& in) {  // cvta
  d.all(in);
  const bool to = d.has("to");
  const bool shared = d.has("shared") || d.has("shared::cta") || d.has("shared::cluster"), local = d.has("local");
  d.ignore({"global", "const", "param"});
  if (d.type() != Type::u64) d.unknown("type");
  if (shared) in.run = to ? from_generic<shared_window>() : to_generic<shared_window>();
  else if (local) in.run = to ? from_generic<local_window>() : to_generic<local_window>();
  else in.run = to_generic<0>();
}

void is_space(Decoder& d, Instruction& in) {
  d.all(in);
  in.option = d.has("shared") || d.has("shared::cta") ? 1 : d.has("local") ? 2 : d.has("global") ? 3 : 0;
  if (in.option == 0) d.unknown("space");
  in.run = [](Thread& t, const Instruction& i) {
    const std::uint64_t a = t.registers[i.r[1]];
    const int space = a & local_window ? 2 : a & shared_window ? 1 : 3;
    t.set<std::uint8_t>(i.r[0], space == i.option);
  };
}

}  // namespace

void add_conversions(Table& table) {
  table["cvt"] = convert;
  table["mov"] = move;
  table["cvta"] = convert_address;
  table["isspacep"] = is_space;
}

}  // namespace cermet::emulator
