// SPDX-License-Identifier: Apache-2.0
#include "integrations/slurm/gres.h"

#include "model/number.h"

#include <algorithm>
#include <limits>

#include <fmt/core.h>

namespace berth::slurm {

namespace {

constexpr std::string_view kUnits = "KMGTP";

std::string_view name_of(std::string_view entry) { return entry.substr(0, entry.find_first_of(":=(")); }

std::string_view without_sockets(std::string_view entry) { return entry.substr(0, entry.find('(')); }

// "14", or "2K" for 2048.
std::optional<std::uint64_t> number_of(std::string_view text) {
  std::uint64_t unit = 1;
  if (!text.empty()) {
    if (const std::size_t power = kUnits.find(text.back()); power != std::string_view::npos) {
      unit <<= 10 * (power + 1);
      text.remove_suffix(1);
    }
  }
  const auto number = model::to_number<std::uint64_t>(text);
  if (!number || *number > std::numeric_limits<std::uint64_t>::max() / unit) return std::nullopt;
  return *number * unit;
}

}  // namespace

std::optional<std::uint64_t> count_of(const std::vector<std::string>& entries, std::string_view name) {
  const auto is_own = [name](const std::string& entry) { return name_of(entry) == name; };
  const auto own = std::count_if(entries.begin(), entries.end(), is_own);
  if (own == 0) return 0;
  if (own > 1) return std::nullopt;
  const std::string_view entry = without_sockets(*std::find_if(entries.begin(), entries.end(), is_own));
  if (entry.size() <= name.size() || entry[name.size()] != ':') return std::nullopt;
  return number_of(entry.substr(name.size() + 1));
}

std::string with_count(const std::vector<std::string>& entries, std::string_view name, std::uint64_t count) {
  std::string list;
  bool written = false;
  const auto add = [&list](std::string_view entry) {
    if (!list.empty()) list += ',';
    list += entry;
  };
  const std::string own = fmt::format("{}:{}", name, count);
  for (const std::string& entry : entries) {
    if (name_of(entry) != name) {
      add(without_sockets(entry));
    } else if (!written) {
      add(own);
      written = true;
    }
  }
  if (!written) add(own);
  return list;
}

}  // namespace berth::slurm
