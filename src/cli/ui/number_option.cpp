#include "cli/ui/number_option.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "base/text.hpp"

namespace cermet::cli {
namespace {

template <class T>
bool parse_whole(std::string_view text, T& value, bool& overflows) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  overflows = error == std::errc::result_out_of_range && end == text.data() + text.size();
  return error == std::errc() && end == text.data() + text.size();
}

/// Numbers as they are, other text quoted.
std::string shown_number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return !text.empty() && error != std::errc::invalid_argument && end == text.data() + text.size() ? std::string(text)
                                                                                                   : quote(text);
}

std::string expected(const NumberBounds& b) {
  if (b.is_unsigned) return fmt::format("a whole number from 0 to {}", std::numeric_limits<std::uint64_t>::max());
  if (b.is_whole) return b.is_ranged ? fmt::format("{} to {}", b.least, b.most) : "a whole number";
  if (!b.is_ranged) return "a number";
  return b.is_open ? fmt::format("a number above {:g}, up to {:g}", b.least_real, b.most_real)
                   : fmt::format("{:g} to {:g}", b.least_real, b.most_real);
}

/// The error, or nothing and the number as CLI11 reads it without doubt.
std::string check_number(const NumberBounds& b, std::string& text) {
  bool overflows = false, fits = false;
  if (b.is_unsigned) {
    std::uint64_t value = 0;
    fits = parse_whole(text, value, overflows);
    if (fits) text = std::to_string(value);
  } else if (b.is_whole) {
    std::int64_t value = 0;
    fits = parse_whole(text, value, overflows) && value >= b.least && value <= b.most;
    if (fits) text = std::to_string(value);
    else if (overflows && !b.is_ranged) return fmt::format("expected {} to {}, found {}", b.least, b.most, text);
  } else {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    fits = error == std::errc() && end == text.data() + text.size() && std::isfinite(value) && value <= b.most_real &&
           (b.is_open ? value > b.least_real : value >= b.least_real);
  }
  return fits ? "" : fmt::format("expected {}, found {}", expected(b), shown_number(text));
}

}  // namespace

std::function<std::string(std::string&)> number_check(std::shared_ptr<const NumberBounds> bounds) {
  return [bounds = std::move(bounds)](std::string& text) { return check_number(*bounds, text); };
}

}  // namespace cermet::cli
