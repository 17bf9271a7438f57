// SPDX-License-Identifier: Apache-2.0
#include "cgroup/interrupt_writer.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <iterator>
#include <string_view>
#include <utility>

#include <fmt/core.h>

namespace berth::cgroup {

namespace {

using model::CpuSet;
using model::ErrorKind;

constexpr std::string_view kInterrupt = "irq/";
constexpr std::string_view kIrqbalance = "irqbalance/";
// Longer than irqbalance gives no answer.
constexpr std::chrono::milliseconds kLongPatience{15000};

std::string name_of(int number) { return fmt::format("{}{}", kInterrupt, number); }

std::optional<int> number_of(std::string_view name) {
  if (!name.starts_with(kInterrupt)) return std::nullopt;
  name.remove_prefix(kInterrupt.size());
  int number = 0;
  const auto parsed = std::from_chars(name.data(), name.data() + name.size(), number);
  return parsed.ec == std::errc() ? std::optional(number) : std::nullopt;
}

// A record of berth's own: it has what to_string() wrote.
CpuSet set_of(const std::string& text) { return CpuSet::parse(text).value_or(CpuSet()); }

std::optional<CpuSet> set_of(const std::optional<std::string>& text) {
  return text ? std::optional(set_of(*text)) : std::nullopt;
}

std::string changed_by_another(const CpuSet& now, const HostRecord& record) {
  return fmt::format(
      "another program has changed it: it is \"{}\", berth wrote \"{}\", before that it was \"{}\"",
      now.to_string(), record.written, record.original);
}

}  // namespace

std::optional<InterruptWriter::Held> InterruptWriter::held(int number) const {
  const auto found = journal_.host().find(name_of(number));
  if (found == journal_.host().end()) return std::nullopt;
  const HostRecord& record = found->second;
  return Held{set_of(record.original), set_of(record.written), set_of(record.previous)};
}

std::vector<int> InterruptWriter::held() const {
  std::vector<int> numbers;
  for (const auto& [name, record] : journal_.host()) {
    if (const auto number = number_of(name)) numbers.push_back(*number);
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

model::Result<std::map<int, model::Error>> InterruptWriter::move(std::span<const Move> moves) {
  std::vector<HostRecord> records;
  std::vector<HostRecord> former;  // of those that were recorded before
  for (const Move& move : moves) {
    const auto known = journal_.host().find(name_of(move.number));
    const std::string now = move.now.to_string();
    HostRecord record{name_of(move.number), now, move.to.to_string(), std::nullopt};
    if (known != journal_.host().end()) {
      record.original = known->second.original;
      record.previous = now;
      former.push_back(known->second);
    }
    records.push_back(std::move(record));
  }
  if (const auto recorded = journal_.record(records); !recorded)
    return model::fail(recorded.error().context("moving no interrupt"));

  std::map<int, model::Error> errors;
  std::vector<std::string> unwritten;
  std::vector<HostRecord> as_before;
  for (const Move& move : moves) {
    const auto written = interrupts_.set_cpus(move.number, move.to);
    if (written) continue;
    errors.emplace(move.number, written.error());
    const std::string name = name_of(move.number);
    const auto known = std::ranges::find(former, name, &HostRecord::name);
    if (known == former.end()) {
      unwritten.push_back(name);
    } else {
      as_before.push_back(*known);
    }
  }
  // Where this fails, a restore finds the original in force and forgets the record.
  (void)journal_.record(as_before);
  (void)journal_.forget_host(unwritten);
  return errors;
}

// Returns true where the record is not needed any more.
bool InterruptWriter::restore_one(const HostRecord& record, int number, InterruptsBack& back) {
  const auto leave = [&](std::string reason, bool kept) {
    back.left.push_back({fmt::format("interrupt {}", number), std::move(reason), kept});
    return !kept;
  };
  const auto now = interrupts_.cpus(number);
  if (!now && now.error().kind() == ErrorKind::gone) return true;
  if (!now) return leave(now.error().message(), true);
  const CpuSet original = set_of(record.original);
  if (*now != original) {
    if (*now != set_of(record.written) && *now != set_of(record.previous))
      return leave(changed_by_another(*now, record), false);
    const auto written = interrupts_.set_cpus(number, original);
    if (!written && written.error().kind() == ErrorKind::gone) return true;
    if (!written) {
      // None of its vCPUs is online any more, and the kernel takes no such set.
      const bool offline = written.error().errno_value() == EINVAL;
      return leave(written.error().message(), !offline);
    }
  }
  back.restored.push_back(number);
  return true;
}

bool InterruptWriter::restore_irqbalance(const HostRecord& record, std::chrono::milliseconds patience,
                                         InterruptsBack& back) {
  const std::string socket = record.name.substr(kIrqbalance.size());
  const auto leave = [&](std::string reason, bool kept) {
    back.left.push_back({"irqbalance", std::move(reason), kept});
    return !kept;
  };
  if (!irqbalance_.has(socket)) return true;
  const auto state = irqbalance_.ask(patience);
  if (!state) return leave(state.error().message(), true);
  if (!*state || (*state)->socket != socket) return true;  // it has ended, and so has what it was told
  // The original may be in force although irqbalance was told otherwise: it follows late.
  const CpuSet original = set_of(record.original);
  const CpuSet& now = (*state)->banned;
  if (now != original && now != set_of(record.written) && now != set_of(record.previous))
    return leave(changed_by_another(now, record), false);
  const auto told = irqbalance_.ban(socket, original, patience);
  if (!told && told.error().kind() == ErrorKind::gone) return true;
  if (!told) return leave(told.error().message(), true);
  back.irqbalance = true;
  return true;
}

void InterruptWriter::forget(std::span<const std::string> names, InterruptsBack& back) {
  if (const auto forgotten = journal_.forget_host(names); !forgotten)
    back.problem = forgotten.error().message() + "; the next restore will find nothing to do for these";
}

InterruptsBack InterruptWriter::restore(std::span<const int> numbers) {
  InterruptsBack back;
  std::vector<std::string> served;
  for (const int number : numbers) {
    const auto found = journal_.host().find(name_of(number));
    if (found == journal_.host().end()) continue;
    if (restore_one(found->second, number, back)) served.push_back(found->first);
  }
  forget(served, back);
  return back;
}

InterruptsBack InterruptWriter::restore_all(std::chrono::milliseconds patience) {
  // irqbalance first: what it does from now on, it does with all vCPUs.
  InterruptsBack told;
  std::vector<std::string> served;
  for (const auto& [name, record] : journal_.host()) {
    if (!name.starts_with(kIrqbalance)) continue;
    if (restore_irqbalance(record, patient_ ? kLongPatience : patience, told)) served.push_back(name);
  }
  told_.clear();
  followed_.clear();
  foreign_.clear();
  auto back = restore(held());
  back.irqbalance = told.irqbalance;
  std::move(told.left.begin(), told.left.end(), std::back_inserter(back.left));
  forget(served, back);
  return back;
}

model::Result<void> InterruptWriter::disown(std::span<const int> numbers) {
  std::vector<std::string> names;
  for (const int number : numbers) names.push_back(name_of(number));
  return journal_.forget_host(names);
}

model::Result<InterruptWriter::Ban> InterruptWriter::ban(const CpuSet& cpus,
                                                         std::chrono::milliseconds patience) {
  const auto state = irqbalance_.ask(patience);
  if (!state) return model::fail(state.error());
  // What an irqbalance was told ended with it.
  std::vector<std::string> ended;
  const std::string own = *state ? fmt::format("{}{}", kIrqbalance, (*state)->socket) : std::string();
  for (const auto& [name, record] : journal_.host()) {
    if (name.starts_with(kIrqbalance) && name != own) ended.push_back(name);
  }
  if (const auto forgotten = journal_.forget_host(ended); !forgotten) return model::fail(forgotten.error());
  if (!*state) return Ban::absent;
  const auto& [socket, banned] = **state;
  if (foreign_ == socket) return Ban::foreign;
  const auto known = journal_.host().find(own);
  const bool recorded = known != journal_.host().end();
  HostRecord record{own, banned.to_string(), {}, std::nullopt};
  if (recorded) record = known->second;
  const CpuSet written = set_of(record.written);
  if (recorded && banned == written) {
    followed_ = socket;
  } else if (recorded && followed_ == socket) {
    foreign_ = socket;
    const auto forgotten = journal_.forget_host(std::span(&own, 1));
    return forgotten ? model::Result<Ban>(Ban::foreign) : model::fail(forgotten.error());
  }
  const CpuSet wanted = set_of(record.original) | cpus;
  if (recorded ? wanted == written && told_ == socket : wanted == banned) return Ban::told;
  if (recorded && wanted != written) record.previous = record.written;
  record.written = wanted.to_string();
  told_.clear();
  followed_.clear();
  if (const auto noted = journal_.record(std::span(&record, 1)); !noted) return model::fail(noted.error());
  if (const auto told = irqbalance_.ban(socket, wanted, patience); !told) return model::fail(told.error());
  told_ = socket;
  return Ban::told;
}

}  // namespace berth::cgroup
