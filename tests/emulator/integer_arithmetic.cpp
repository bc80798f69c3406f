// Integers, bits and predicates.
#include <algorithm>
#include <bit>

#include "tests/emulator/decode.hpp"

namespace cermet::emulator {
namespace {

/// r[0] = F(r[1], r[2]) in a type.
template <auto F>
Run binary(Decoder& d, Type type) {
  return for_bits(d, type, [](auto zero) -> Run {
    using T = decltype(zero);
    return [](Thread& t, const Instruction& in) {
      t.set<T>(in.r[0], static_cast<T>(F(t.get<T>(in.r[1]), t.get<T>(in.r[2]))));
    };
  });
}
template <auto F>
Run unary(Decoder& d, Type type) {
  return for_bits(d, type, [](auto zero) -> Run {
    using T = decltype(zero);
    return [](Thread& t, const Instruction& in) { t.set<T>(in.r[0], static_cast<T>(F(t.get<T>(in.r[1])))); };
  });
}
template <auto F>
Run ternary(Decoder& d, Type type) {
  return for_bits(d, type, [](auto zero) -> Run {
    using T = decltype(zero);
    return [](Thread& t, const Instruction& in) {
      t.set<T>(in.r[0], static_cast<T>(F(t.get<T>(in.r[1]), t.get<T>(in.r[2]), t.get<T>(in.r[3]))));
    };
  });
}

/// Overflow wraps.
template <class T>
using Bits = std::make_unsigned_t<T>;
constexpr auto plus = [](auto a, auto b) {
  return static_cast<Bits<decltype(a)>>(a) + static_cast<Bits<decltype(a)>>(b);
};
constexpr auto minus = [](auto a, auto b) {
  return static_cast<Bits<decltype(a)>>(a) - static_cast<Bits<decltype(a)>>(b);
};

template <class T>
struct Wider;
template <>
struct Wider<std::uint8_t> {
  using type = std::uint16_t;
};
template <>
struct Wider<std::int8_t> {
  using type = std::int16_t;
};
template <>
struct Wider<std::uint16_t> {
  using type = std::uint32_t;
};
template <>
struct Wider<std::int16_t> {
  using type = std::int32_t;
};
template <>
struct Wider<std::uint32_t> {
  using type = std::uint64_t;
};
template <>
struct Wider<std::int32_t> {
  using type = std::int64_t;
};
template <>
struct Wider<std::uint64_t> {
  using type = unsigned __int128;
};
template <>
struct Wider<std::int64_t> {
  using type = __int128;
};

constexpr auto product = [](auto a, auto b) {
  using W = typename Wider<decltype(a)>::type;
  return static_cast<W>(static_cast<W>(a) * static_cast<W>(b));
};
constexpr auto low = [](auto a, auto b) { return static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b); };
constexpr auto high = [](auto a, auto b) { return product(a, b) >> (8 * sizeof a); };

/// mul and mad: .lo, .hi, or .wide, whose result is twice as wide.
void multiply(Decoder& d, Instruction& in, bool adds) {
  d.all(in);
  const bool hi = d.has("hi"), wide = d.has("wide");
  d.ignore({"lo"});
  const Type type = d.type();
  if (wide)
    in.run = for_bits(d, type, [adds](auto zero) -> Run {
      using T = decltype(zero);
      if constexpr (sizeof(T) < 8) {
        using W = typename Wider<T>::type;
        if (adds)
          return [](Thread& t, const Instruction& i) {
            t.set<W>(i.r[0], static_cast<W>(
                                 plus(static_cast<W>(product(t.get<T>(i.r[1]), t.get<T>(i.r[2]))), t.get<W>(i.r[3]))));
          };
        return [](Thread& t, const Instruction& i) {
          t.set<W>(i.r[0], static_cast<W>(product(t.get<T>(i.r[1]), t.get<T>(i.r[2]))));
        };
      } else {
        return nullptr;
      }
    });
  else if (adds && hi)
    in.run = ternary<[](auto a, auto b, auto c) {
      return static_cast<std::uint64_t>(high(a, b)) + static_cast<std::uint64_t>(c);
    }>(d, type);
  else if (adds)
    in.run = ternary<[](auto a, auto b, auto c) { return low(a, b) + static_cast<std::uint64_t>(c); }>(d, type);
  else in.run = hi ? binary<high>(d, type) : binary<low>(d, type);
  if (!in.run) d.unknown("type");
}

constexpr auto shift_left = [](auto a, std::uint32_t by) {
  return by >= 8 * sizeof a ? 0 : static_cast<Bits<decltype(a)>>(a) << by;
};
constexpr auto shift_right = [](auto a, std::uint32_t by) {
  constexpr std::uint32_t bits = 8 * sizeof a;
  if constexpr (std::is_signed_v<decltype(a)>) return a >> std::min(by, bits - 1);
  else return static_cast<decltype(a)>(by >= bits ? 0 : a >> by);
};
template <auto F>
void shift(Decoder& d, Instruction& in) {
  d.all(in);
  in.run = for_bits(d, d.type(), [](auto zero) -> Run {
    using T = decltype(zero);
    return [](Thread& t, const Instruction& i) {
      t.set<T>(i.r[0], static_cast<T>(F(t.get<T>(i.r[1]), t.get<std::uint32_t>(i.r[2]))));
    };
  });
}

void funnel_shift(Decoder& d, Instruction& in) {
  d.all(in);
  in.option = static_cast<std::uint8_t>(d.has("l") | d.has("clamp") << 1);
  d.ignore({"r", "wrap", "b32"});
  in.run = [](Thread& t, const Instruction& i) {
    const std::uint64_t both = std::uint64_t{t.get<std::uint32_t>(i.r[2])} << 32 | t.get<std::uint32_t>(i.r[1]);
    const std::uint32_t n = t.get<std::uint32_t>(i.r[3]), by = i.option & 2 ? std::min(n, 32u) : n & 31;
    t.set<std::uint32_t>(i.r[0], static_cast<std::uint32_t>(i.option & 1 ? (both << by) >> 32 : both >> by));
  };
}

void permute_bytes(Decoder& d, Instruction& in) {
  d.all(in);
  d.ignore({"b32"});
  in.run = [](Thread& t, const Instruction& i) {
    const std::uint64_t both = std::uint64_t{t.get<std::uint32_t>(i.r[2])} << 32 | t.get<std::uint32_t>(i.r[1]);
    const std::uint32_t selector = t.get<std::uint32_t>(i.r[3]);
    std::uint32_t result = 0;
    for (unsigned b = 0; b < 4; ++b) {
      const std::uint32_t s = selector >> 4 * b & 15;
      std::uint32_t byte = both >> 8 * (s & 7) & 0xff;
      if (s & 8) byte = byte & 0x80 ? 0xff : 0;
      result |= byte << 8 * b;
    }
    t.set<std::uint32_t>(i.r[0], result);
  };
}

void any_of_three(Decoder& d, Instruction& in) {  // lop3
  d.all(in);
  d.ignore({"b32"});
  in.option = static_cast<std::uint8_t>(d.number(4));
  in.run = [](Thread& t, const Instruction& i) {
    const auto a = t.get<std::uint32_t>(i.r[1]), b = t.get<std::uint32_t>(i.r[2]), c = t.get<std::uint32_t>(i.r[3]);
    std::uint32_t result = 0;
    for (unsigned bit = 0; bit < 8; ++bit)
      if (i.option >> bit & 1) result |= (bit & 4 ? a : ~a) & (bit & 2 ? b : ~b) & (bit & 1 ? c : ~c);
    t.set<std::uint32_t>(i.r[0], result);
  };
}

void extract_field(Decoder& d, Instruction& in) {
  d.all(in);
  in.run = for_bits(d, d.type(), [](auto zero) -> Run {
    using T = decltype(zero);
    return [](Thread& t, const Instruction& i) {
      const T a = t.get<T>(i.r[1]);
      constexpr unsigned bits = 8 * sizeof(T);
      const unsigned at = t.get<std::uint32_t>(i.r[2]) & 255, length = t.get<std::uint32_t>(i.r[3]) & 255;
      Bits<T> result = 0;
      if (length > 0) {
        const unsigned sign_at = std::min(at + length - 1, bits - 1);
        const bool sign = std::is_signed_v<T> && (static_cast<Bits<T>>(a) >> sign_at & 1);
        const Bits<T> field = at < bits ? static_cast<Bits<T>>(static_cast<Bits<T>>(a) >> at) : 0;
        const unsigned kept = at < bits ? std::min(length, bits - at) : 0;
        const Bits<T> ones = static_cast<Bits<T>>(~Bits<T>{0});
        const Bits<T> mask = kept >= bits ? ones : static_cast<Bits<T>>(~(ones << kept));
        result = static_cast<Bits<T>>((field & mask) | (sign ? static_cast<Bits<T>>(~mask) : Bits<T>{0}));
      }
      t.set<T>(i.r[0], static_cast<T>(result));
    };
  });
}

void insert_field(Decoder& d, Instruction& in) {
  d.all(in);
  in.run = for_bits(d, d.type(), [](auto zero) -> Run {
    using T = decltype(zero);
    return [](Thread& t, const Instruction& i) {
      constexpr unsigned bits = 8 * sizeof(T);
      const auto a = t.get<Bits<T>>(i.r[1]), b = t.get<Bits<T>>(i.r[2]);
      const unsigned at = t.get<std::uint32_t>(i.r[3]) & 255, length = t.get<std::uint32_t>(i.r[4]) & 255;
      Bits<T> mask = 0;
      for (unsigned k = at; k < std::min(at + length, bits); ++k) mask |= static_cast<Bits<T>>(Bits<T>{1} << k);
      t.set<Bits<T>>(i.r[0], static_cast<Bits<T>>((b & ~mask) | (at < bits ? (a << at) & mask : 0)));
    };
  });
}

void find_first(Decoder& d, Instruction& in) {  // bfind
  d.all(in);
  in.option = d.has("shiftamt");
  in.run = for_bits(d, d.type(), [](auto zero) -> Run {
    using T = decltype(zero);
    return [](Thread& t, const Instruction& i) {
      T a = t.get<T>(i.r[1]);
      if constexpr (std::is_signed_v<T>) a = a < 0 ? ~a : a;
      const int zeros = std::countl_zero(static_cast<Bits<T>>(a)), bits = 8 * sizeof(T);
      const std::uint32_t found = zeros == bits ? ~0u : static_cast<std::uint32_t>(i.option ? zeros : bits - 1 - zeros);
      t.set<std::uint32_t>(i.r[0], found);
    };
  });
}

template <class B>
std::uint32_t dot_of_bytes(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
  for (unsigned k = 0; k < 4; ++k)
    c += static_cast<std::uint32_t>(static_cast<std::int32_t>(static_cast<B>(a >> 8 * k)) *
                                    static_cast<std::int32_t>(static_cast<B>(b >> 8 * k)));
  return c;
}

void dot_product(Decoder& d, Instruction& in) {  // dp4a
  d.all(in);
  const Type b = d.type(), a = d.type();
  if (a != b) d.unknown("types");
  in.run = a == Type::s32
               ? Run([](Thread& t, const Instruction& i) {
                   t.set(i.r[0], dot_of_bytes<std::int8_t>(t.get<std::uint32_t>(i.r[1]), t.get<std::uint32_t>(i.r[2]),
                                                           t.get<std::uint32_t>(i.r[3])));
                 })
               : Run([](Thread& t, const Instruction& i) {
                   t.set(i.r[0], dot_of_bytes<std::uint8_t>(t.get<std::uint32_t>(i.r[1]), t.get<std::uint32_t>(i.r[2]),
                                                            t.get<std::uint32_t>(i.r[3])));
                 });
}

/// Arithmetic whose float types are in the other table.
template <auto F>
void integer(Decoder& d, Instruction& in) {
  d.all(in);
  in.run = binary<F>(d, d.type());
}
template <auto F>
void bits(Decoder& d, Instruction& in) {
  d.all(in);
  const Type type = d.type();
  if (type != Type::pred) return void(in.run = binary<F>(d, type));
  in.option = static_cast<std::uint8_t>(d.at(1).negated | d.at(2).negated << 1);
  in.run = [](Thread& t, const Instruction& i) {
    const bool a = t.predicate(i.r[1]) != (i.option & 1), b = t.predicate(i.r[2]) != (i.option >> 1 & 1);
    t.set<std::uint8_t>(i.r[0], static_cast<std::uint8_t>(F(static_cast<unsigned>(a), static_cast<unsigned>(b)) & 1));
  };
}

template <auto F>
void count_bits(Decoder& d, Instruction& in) {
  d.all(in);
  in.run = for_bits(d, d.type(), [](auto zero) -> Run {
    using T = Bits<decltype(zero)>;
    return [](Thread& t, const Instruction& i) {
      t.set<std::uint32_t>(i.r[0], static_cast<std::uint32_t>(F(t.get<T>(i.r[1]))));
    };
  });
}

}  // namespace

Run integer_binary(Decoder& d, std::string_view operation, Type type) {
  if (operation == "add") return binary<plus>(d, type);
  if (operation == "sub") return binary<minus>(d, type);
  if (operation == "min") return binary<[](auto a, auto b) { return std::min(a, b); }>(d, type);
  if (operation == "max") return binary<[](auto a, auto b) { return std::max(a, b); }>(d, type);
  if (operation == "neg") return unary<[](auto a) { return minus(decltype(a){0}, a); }>(d, type);
  if (operation == "abs")
    return unary<[](auto a) { return a < 0 ? minus(decltype(a){0}, a) : static_cast<Bits<decltype(a)>>(a); }>(d, type);
  if (operation == "div")  // what division by zero gives is not defined
    return binary<[](auto a, auto b) {
      if (b == 0 || (std::is_signed_v<decltype(a)> && b == static_cast<decltype(b)>(-1)))
        return static_cast<decltype(a)>(b == 0 ? static_cast<Bits<decltype(a)>>(~0ull) : minus(decltype(a){0}, a));
      return static_cast<decltype(a)>(a / b);
    }>(d, type);
  if (operation == "rem")
    return binary<[](auto a, auto b) {
      if (b == 0) return a;
      if (std::is_signed_v<decltype(a)> && b == static_cast<decltype(b)>(-1)) return decltype(a){0};
      return static_cast<decltype(a)>(a % b);
    }>(d, type);
  d.unknown("instruction");
}

void add_integer_arithmetic(Table& table) {
  table["rem"] = [](Decoder& d, Instruction& in) {
    d.all(in);
    in.run = integer_binary(d, "rem", d.type());
  };
  table["and"] = bits<[](auto a, auto b) { return a & b; }>;
  table["or"] = bits<[](auto a, auto b) { return a | b; }>;
  table["xor"] = bits<[](auto a, auto b) { return a ^ b; }>;
  table["not"] = [](Decoder& d, Instruction& in) {
    d.all(in);
    const Type type = d.type();
    in.run = type == Type::pred
                 ? Run([](Thread& t, const Instruction& i) { t.set<std::uint8_t>(i.r[0], !t.predicate(i.r[1])); })
                 : unary<[](auto a) { return ~a; }>(d, type);
  };
  table["cnot"] = [](Decoder& d, Instruction& in) {
    d.all(in);
    in.run = unary<[](auto a) { return a == 0 ? 1 : 0; }>(d, d.type());
  };
  table["shl"] = shift<shift_left>;
  table["shr"] = shift<shift_right>;
  table["shf"] = funnel_shift;
  table["prmt"] = permute_bytes;
  table["lop3"] = any_of_three;
  table["bfe"] = extract_field;
  table["bfi"] = insert_field;
  table["bfind"] = find_first;
  table["dp4a"] = dot_product;
  table["popc"] = count_bits<[](auto a) { return std::popcount(a); }>;
  table["clz"] = count_bits<[](auto a) { return std::countl_zero(a); }>;
  table["brev"] = [](Decoder& d, Instruction& in) {
    d.all(in);
    in.run = unary<[](auto a) {
      Bits<decltype(a)> result = 0;
      for (unsigned k = 0; k < 8 * sizeof a; ++k)
        result = static_cast<Bits<decltype(a)>>(result << 1 | (static_cast<Bits<decltype(a)>>(a) >> k & 1));
      return result;
    }>(d, d.type());
  };
}

void integer_product(Decoder& d, Instruction& in, bool adds) { multiply(d, in, adds); }

}  // namespace cermet::emulator
