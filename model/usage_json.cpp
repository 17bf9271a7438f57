// SPDX-License-Identifier: Apache-2.0
#include "model/usage_json.h"

#include "model/bounds.h"
#include "model/json.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <system_error>
#include <utility>

namespace berth::model {

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// A position in a text, and the character there. After a failed take the position is undefined: the caller
// gives up.
class Cursor {
 public:
  explicit Cursor(std::string_view text) : at_(text.data()), begin_(at_), end_(at_ + text.size()) {}

  std::size_t position() const { return static_cast<std::size_t>(at_ - begin_); }
  bool at_end() const { return at_ == end_; }

  // The next character that is no blank; '\0' at the end.
  char peek() {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\t' || *at_ == '\r')) ++at_;
    return at_ == end_ ? '\0' : *at_;
  }
  bool take(char wanted) {
    if (peek() != wanted) return false;
    ++at_;
    return true;
  }
  bool take_null() {
    constexpr std::string_view kNull = "null";
    if (peek() != 'n' || !std::string_view(at_, static_cast<std::size_t>(end_ - at_)).starts_with(kNull))
      return false;
    at_ += kNull.size();
    return true;
  }
  // A string as it is written, without its quotes.
  bool take_string(std::string_view& raw) {
    if (!take('"')) return false;
    const char* first = at_;
    for (; at_ != end_; ++at_) {
      if (*at_ == '"') {
        raw = std::string_view(first, static_cast<std::size_t>(at_ - first));
        ++at_;
        return true;
      }
      if (*at_ == '\\' && ++at_ == end_) return false;
    }
    return false;
  }
  // Skips to the end of a value of any kind. It only tells strings from brackets.
  bool skip_value() {
    int depth = 0;
    std::string_view ignored;
    do {
      switch (peek()) {
        case '\0':
          return false;
        case '"':
          if (!take_string(ignored)) return false;
          break;
        case '{':
        case '[':
          ++depth;
          ++at_;
          break;
        case '}':
        case ']':
          if (--depth < 0) return false;
          ++at_;
          break;
        case ',':
        case ':':
          if (depth == 0) return false;
          ++at_;
          break;
        default:
          skip_word();
      }
    } while (depth > 0);
    return true;
  }
  // A number 0..highest in JSON's grammar, without a sign.
  bool take_number(double highest, double& value) {
    peek();
    const char* first = at_;
    if (!take_digits()) return false;
    if (*first == '0' && at_ - first > 1) return false;
    if (at_ != end_ && *at_ == '.') {
      ++at_;
      if (!take_digits()) return false;
    }
    if (at_ != end_ && (*at_ == 'e' || *at_ == 'E')) {
      ++at_;
      if (at_ != end_ && (*at_ == '+' || *at_ == '-')) ++at_;
      if (!take_digits()) return false;
    }
    const auto [end, error] = std::from_chars(first, at_, value);
    return error == std::errc() && end == at_ && value <= highest;
  }
  bool take_integer(std::uint64_t highest, std::uint64_t& value) {
    peek();
    const char* first = at_;
    if (!take_digits() || (*first == '0' && at_ - first > 1)) return false;
    const auto [end, error] = std::from_chars(first, at_, value);
    return error == std::errc() && value <= highest;
  }

 private:
  bool take_digits() {
    const char* first = at_;
    while (at_ != end_ && is_digit(*at_)) ++at_;
    return at_ != first;
  }
  // Skips a number, true, false, null, or any other word.
  void skip_word() {
    constexpr std::string_view kEnds = " \n\t\r\"{}[],:";
    while (at_ != end_ && kEnds.find(*at_) == std::string_view::npos) ++at_;
  }

  const char* at_;
  const char* begin_;
  const char* end_;
};

// In the order of kMembers.
enum class Member : unsigned { time, cpu, memory, progress, latency, median_latency, misses };
constexpr std::array<std::string_view, 7> kMembers{
    "time", "cpu", "memory_bytes", "progress", "runq_latency_us", "runq_latency_p50_us", "llc_mpki"};

// As take_number, into a figure that may be unknown.
template <typename T>
bool take_figure(Cursor& cursor, double highest, Maybe<T>& figure) {
  if (cursor.take_null()) return true;
  double value = 0;
  if (!cursor.take_number(highest, value)) return false;
  figure = value;
  return true;
}

bool take_member(Cursor& cursor, Member member, UsageSample& sample) {
  switch (member) {
    case Member::time:
      return cursor.take_number(kLastTime_s, sample.time);
    case Member::cpu:
      return cursor.take_number(kMaxUsedCores, sample.cpu_cores);
    case Member::memory: {
      if (cursor.take_null()) return true;
      std::uint64_t bytes = 0;
      if (!cursor.take_integer(kMaxBytes, bytes)) return false;
      sample.memory_bytes = bytes;
      return true;
    }
    case Member::progress:
      return take_figure(cursor, 1, sample.progress);
    case Member::latency:
      return take_figure(cursor, kMaxMicroseconds, sample.runq_latency_us);
    case Member::median_latency:
      return take_figure(cursor, kMaxMicroseconds, sample.runq_latency_p50_us);
    case Member::misses:
      return take_figure(cursor, kMaxMpki, sample.llc_mpki);
  }
  return false;
}

// Adds the number of values in the sample to `values`.
bool take_sample(Cursor& cursor, UsageSample& sample, std::size_t& values) {
  constexpr unsigned kTimeSeen = 1U << static_cast<unsigned>(Member::time);
  if (!cursor.take('{')) return false;
  unsigned seen = 0;
  do {
    std::string_view name;
    if (!cursor.take_string(name) || !cursor.take(':')) return false;
    const auto known = std::find(kMembers.begin(), kMembers.end(), name);
    const auto number = static_cast<unsigned>(known - kMembers.begin());
    if (known == kMembers.end() || (seen >> number & 1U) != 0) return false;
    if (!take_member(cursor, static_cast<Member>(number), sample)) return false;
    seen |= 1U << number;
    ++values;
  } while (cursor.take(','));
  ++values;
  return (seen & kTimeSeen) != 0 && cursor.take('}');
}

bool take_samples(Cursor& cursor, UsageWindow& samples, std::size_t& values) {
  if (!cursor.take('[')) return false;
  if (cursor.take(']')) return true;
  do {
    UsageSample sample;
    if (!take_sample(cursor, sample, values) || values > kMaxJsonValues) return false;
    samples.push_back(sample);
  } while (cursor.take(','));
  return cursor.take(']');
}

// Goes through a document along the one path that leads to samples. Keeps all the rest as it is.
class Taker {
 public:
  explicit Taker(std::string_view text) : text_(text), cursor_(text) {}

  bool take() {
    const bool done = each_member([this](std::string_view name) {
      return name == "workloads" && cursor_.peek() == '[' ? take_workloads() : cursor_.skip_value();
    });
    if (!done || cursor_.peek() != '\0' || !cursor_.at_end()) return false;
    taken.text.append(text_.substr(kept_));
    // A value and its separator take two characters at least.
    return values_ + taken.text.size() / 2 + 1 <= kMaxJsonValues;
  }

  TextWithoutUsage taken;

 private:
  // Calls visit(name) at the value of each member; names as they are written.
  template <typename Visit>
  bool each_member(Visit visit) {
    if (!cursor_.take('{')) return false;
    if (cursor_.take('}')) return true;
    do {
      std::string_view name;
      if (!cursor_.take_string(name) || !cursor_.take(':') || !visit(name)) return false;
    } while (cursor_.take(','));
    return cursor_.take('}');
  }

  bool take_workloads() {
    if (!cursor_.take('[')) return false;
    if (cursor_.take(']')) return true;
    std::size_t index = 0;
    do {
      const bool done =
          cursor_.peek() != '{' ? cursor_.skip_value() : each_member([&](std::string_view name) {
            return name == "usage" && cursor_.peek() == '[' ? take_usage_of(index) : cursor_.skip_value();
          });
      if (!done) return false;
      ++index;
    } while (cursor_.take(','));
    return cursor_.take(']');
  }

  bool take_usage_of(std::size_t workload) {
    const std::size_t begin = cursor_.position();
    UsageWindow samples;
    if (!take_samples(cursor_, samples, values_)) return false;
    taken.text.append(text_.substr(kept_, begin - kept_)).append("[]");
    kept_ = cursor_.position();
    taken.usage.emplace_back(workload, std::move(samples));
    return true;
  }

  std::string_view text_;
  Cursor cursor_;
  std::size_t kept_ = 0;    // `taken.text` has everything up to here
  std::size_t values_ = 0;  // number of values that `taken.text` lacks
};

}  // namespace

std::optional<TextWithoutUsage> take_usage(std::string_view text) {
  if (text.size() > kMaxDocumentBytes) return std::nullopt;
  Taker taker(text);
  if (!taker.take()) return std::nullopt;
  return std::move(taker.taken);
}

}  // namespace berth::model
