#include "select/tuning_entry.hpp"

#include <cmath>
#include <ctime>

#include "base/error.hpp"
#include "base/text.hpp"
#include "kernel/config.hpp"

namespace cermet {
namespace {

constexpr std::size_t longest_text = 1 << 16, most_rivals = 4096;

std::string text_fault(std::string_view what, std::string_view text) {
  if (text.empty()) return fmt::format("{}: expected a text, found none", what);
  if (text.size() > longest_text)
    return fmt::format("{}: expected at most {} characters, found {}", what, longest_text, text.size());
  if (text.find('\0') != std::string_view::npos)
    return fmt::format("{}: expected a text without a zero byte, found one", what);
  return {};
}

std::string config_fault(std::string_view text) {
  try {
    if (const std::string canonical = parse_config(text).to_string(); canonical != text)
      return fmt::format("config: expected {}, found {}", quote(canonical), quote(text));
    return {};
  } catch (const Error& error) {
    return error.what();
  }
}

std::string measurement_fault(std::string_view kernel, std::string_view config, double seconds, double spread) {
  if (std::string fault = text_fault("kernel", kernel); !fault.empty()) return fault;
  if (std::string fault = config_fault(config); !fault.empty()) return fault;
  if (!std::isfinite(seconds) || seconds <= 0)
    return fmt::format("seconds: expected a positive number, found {}", seconds);
  if (!std::isfinite(spread) || spread < 0)
    return fmt::format("spread: expected a number of at least 0, found {}", spread);
  return {};
}

}  // namespace

std::string fault_of(const TuningEntry& entry) {
  for (const auto& [name, text] : {std::pair("region", &entry.key.region), std::pair("device", &entry.key.device),
                                   std::pair("versions", &entry.key.versions), std::pair("date", &entry.date)})
    if (std::string fault = text_fault(name, *text); !fault.empty()) return fault;
  if (std::string fault = measurement_fault(entry.kernel, entry.config, entry.seconds, entry.spread); !fault.empty())
    return fault;
  if (entry.rivals.size() > most_rivals)
    return fmt::format("rivals: expected at most {}, found {}", most_rivals, entry.rivals.size());
  for (std::size_t i = 0; i < entry.rivals.size(); ++i) {
    const TunedRival& rival = entry.rivals[i];
    if (std::string fault = measurement_fault(rival.kernel, rival.config, rival.seconds, rival.spread); !fault.empty())
      return fmt::format("rivals[{}].{}", i, fault);
  }
  return {};
}

std::string tuning_date() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%F %T", &parts)};
}

}  // namespace cermet
