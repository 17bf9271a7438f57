// SPDX-License-Identifier: Apache-2.0
#include "model/cpu_set.h"

#include "model/text.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <charconv>
#include <optional>

#include <fmt/core.h>

namespace berth::model {

namespace {

constexpr int kWordBits = 64;

std::size_t word_of(int cpu) { return static_cast<std::size_t>(cpu) / kWordBits; }
std::uint64_t bit_of(int cpu) { return std::uint64_t{1} << (static_cast<unsigned>(cpu) % kWordBits); }
bool in_range(int cpu) { return cpu >= 0 && cpu <= kMaxCpu; }

// The text goes into one-line messages: keep it short and printable.
std::string shown(std::string_view text) {
  constexpr std::size_t kLongest = 40;
  std::string out;
  for (const char c : text.substr(0, kLongest)) out += (c >= ' ' && c <= '~') ? c : '?';
  if (text.size() > kLongest) out += "...";
  return out;
}

Result<int> parse_number(std::string_view text, std::string_view cpulist) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  // from_chars takes a minus sign, a cpulist does not.
  if (text.empty() || text.front() == '-' || error == std::errc::invalid_argument ||
      end != text.data() + text.size())
    return fail(ErrorKind::invalid_input,
                fmt::format("'{}' is not a list of CPUs such as \"0-3,8\": '{}' is not a number",
                            shown(cpulist), shown(text)));
  if (error == std::errc::result_out_of_range || value > kMaxCpu)
    return fail(ErrorKind::invalid_input, fmt::format("'{}': {} is above the largest CPU number, {}",
                                                      shown(cpulist), shown(text), kMaxCpu));
  return value;
}

// One element of a cpulist: "7", "0-3" or "0-15:2/4" (of every group of 4, the first 2).
Result<CpuSet> parse_element(std::string_view element, std::string_view cpulist) {
  int used = 1;
  int group = 1;
  bool grouped = false;
  if (const auto colon = element.find(':'); colon != std::string_view::npos) {
    const std::string_view pattern = element.substr(colon + 1);
    element = element.substr(0, colon);
    const auto slash = pattern.find('/');
    if (slash == std::string_view::npos)
      return fail(ErrorKind::invalid_input,
                  fmt::format("'{}': ':{}' is not a group such as ':2/4'", shown(cpulist), shown(pattern)));
    const auto used_size = parse_number(pattern.substr(0, slash), cpulist);
    if (!used_size) return fail(used_size.error());
    const auto group_size = parse_number(pattern.substr(slash + 1), cpulist);
    if (!group_size) return fail(group_size.error());
    used = *used_size;
    group = *group_size;
    grouped = true;
    if (used < 1 || used > group)
      return fail(ErrorKind::invalid_input,
                  fmt::format("'{}': a group takes between 1 and all of its CPUs, not {} of {}",
                              shown(cpulist), used, group));
  }

  const auto dash = element.find('-');
  const auto first = parse_number(element.substr(0, dash), cpulist);
  if (!first) return fail(first.error());
  if (dash == std::string_view::npos) {
    if (grouped)
      return fail(ErrorKind::invalid_input, fmt::format("'{}': only a range has groups", shown(cpulist)));
    return CpuSet{*first};
  }
  const auto last = parse_number(element.substr(dash + 1), cpulist);
  if (!last) return fail(last.error());
  if (*last < *first)
    return fail(ErrorKind::invalid_input,
                fmt::format("'{}': the range {}-{} descends", shown(cpulist), *first, *last));
  if (!grouped) return CpuSet::range(*first, *last);
  CpuSet set;
  for (int start = *first; start <= *last; start += group)
    set |= CpuSet::range(start, std::min(start + used - 1, *last));
  return set;
}

}  // namespace

CpuSet::CpuSet(std::initializer_list<int> cpus) {
  for (const int cpu : cpus) insert(cpu);
}

Result<CpuSet> CpuSet::parse(std::string_view cpulist) {
  std::string_view rest = trimmed(cpulist, kWhiteSpace);
  CpuSet set;
  if (rest.empty()) return set;
  while (true) {
    const auto comma = rest.find(',');
    const auto element = parse_element(rest.substr(0, comma), cpulist);
    if (!element) return fail(element.error());
    set |= *element;
    if (comma == std::string_view::npos) return set;
    rest.remove_prefix(comma + 1);
  }
}

CpuSet CpuSet::range(int first, int last) {
  CpuSet set;
  if (last < first) return set;
  assert(in_range(first) && in_range(last));
  set.words_.resize(word_of(last) + 1);
  for (int cpu = first; cpu <= last; ++cpu) set.words_[word_of(cpu)] |= bit_of(cpu);
  return set;
}

std::string CpuSet::to_string() const {
  std::string out;
  for (int cpu = first(); cpu >= 0;) {
    int last = cpu;
    int following = next(last);
    while (following == last + 1) {
      last = following;
      following = next(last);
    }
    if (!out.empty()) out += ',';
    out += last == cpu ? std::to_string(cpu) : fmt::format("{}-{}", cpu, last);
    cpu = following;
  }
  return out;
}

void CpuSet::insert(int cpu) {
  assert(in_range(cpu));
  if (word_of(cpu) >= words_.size()) words_.resize(word_of(cpu) + 1);
  words_[word_of(cpu)] |= bit_of(cpu);
}

void CpuSet::erase(int cpu) {
  if (!contains(cpu)) return;
  words_[word_of(cpu)] &= ~bit_of(cpu);
  trim();
}

bool CpuSet::contains(int cpu) const {
  return cpu >= 0 && word_of(cpu) < words_.size() && (words_[word_of(cpu)] & bit_of(cpu)) != 0;
}

bool CpuSet::empty() const { return words_.empty(); }

std::size_t CpuSet::size() const {
  std::size_t count = 0;
  for (const std::uint64_t word : words_) count += static_cast<std::size_t>(std::popcount(word));
  return count;
}

int CpuSet::first() const { return next(-1); }

int CpuSet::next(int cpu) const {
  const int start = std::max(cpu + 1, 0);
  for (std::size_t index = word_of(start); index < words_.size(); ++index) {
    std::uint64_t word = words_[index];
    if (index == word_of(start)) word &= ~(bit_of(start) - 1);
    if (word != 0) return static_cast<int>(index) * kWordBits + std::countr_zero(word);
  }
  return -1;
}

std::vector<int> CpuSet::to_vector() const {
  std::vector<int> cpus;
  cpus.reserve(size());
  for (const int cpu : *this) cpus.push_back(cpu);
  return cpus;
}

bool CpuSet::is_subset_of(const CpuSet& other) const {
  if (words_.size() > other.words_.size()) return false;
  for (std::size_t index = 0; index < words_.size(); ++index)
    if ((words_[index] & ~other.words_[index]) != 0) return false;
  return true;
}

bool CpuSet::intersects(const CpuSet& other) const {
  const std::size_t common = std::min(words_.size(), other.words_.size());
  for (std::size_t index = 0; index < common; ++index)
    if ((words_[index] & other.words_[index]) != 0) return true;
  return false;
}

CpuSet& CpuSet::operator|=(const CpuSet& other) {
  if (words_.size() < other.words_.size()) words_.resize(other.words_.size());
  for (std::size_t index = 0; index < other.words_.size(); ++index) words_[index] |= other.words_[index];
  return *this;
}

CpuSet& CpuSet::operator&=(const CpuSet& other) {
  if (words_.size() > other.words_.size()) words_.resize(other.words_.size());
  for (std::size_t index = 0; index < words_.size(); ++index) words_[index] &= other.words_[index];
  trim();
  return *this;
}

CpuSet& CpuSet::operator-=(const CpuSet& other) {
  const std::size_t common = std::min(words_.size(), other.words_.size());
  for (std::size_t index = 0; index < common; ++index) words_[index] &= ~other.words_[index];
  trim();
  return *this;
}

void CpuSet::trim() {
  while (!words_.empty() && words_.back() == 0) words_.pop_back();
}

}  // namespace berth::model
