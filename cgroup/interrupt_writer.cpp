// SPDX-License-Identifier: Apache-2.0
#include "cgroup/interrupt_writer.h"

#include "os/proc_files.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstddef>
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

// vCPUs online now; nullopt where that cannot be read.
std::optional<CpuSet> online_in(const std::filesystem::path& sys_root) {
  constexpr std::size_t kMostBytes = std::size_t{64} << 10;
  const std::string text = os::read_start(sys_root / "devices/system/cpu/online", kMostBytes);
  auto online = CpuSet::parse(text);
  return online && !online->empty() ? std::optional(std::move(*online)) : std::nullopt;
}

std::string changed_by_another(const CpuSet& now, const HostRecord& record) {
  return fmt::format(
      "another program has changed it: it is \"{}\", berth wrote \"{}\", before that it was \"{}\"",
      now.to_string(), record.written, record.original);
}

// irqbalance follows an order at its next scan. Until then, it answers with its former banned CPUs. Its
// record has a `previous` until the answer shows that `written` is in force. Since 1.9.1 it may ban hot CPUs,
// too.
bool was_in_force(const HostRecord& record) { return !record.previous; }

// That irqbalance is to be told `cpus`. Whatever berth may have banned until then is in `previous`.
void change(HostRecord& record, const CpuSet& cpus) {
  record.previous = (set_of(record.previous).value_or(CpuSet()) | set_of(record.written)).to_string();
  record.written = cpus.to_string();
}

// Whether irqbalance, which was told its original and now bans `now`, has nothing of berth's any more. It
// reads orders before later questions, so nothing of berth's comes after that.
bool has_followed(const HostRecord& record, const CpuSet& now) {
  return !now.intersects(set_of(record.previous).value_or(CpuSet()) - set_of(record.original));
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
    const CpuSet berths = set_of(record.written);
    // Once all of an interrupt's vCPUs are offline, the kernel itself chooses others.
    const bool kernels = !berths.intersects(online_in(sys_root_).value_or(berths));
    if (*now != berths && *now != set_of(record.previous) && !kernels)
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

bool InterruptWriter::restore_irqbalance(HostRecord record, std::chrono::milliseconds patience,
                                         InterruptsBack& back) {
  const std::string socket = record.name.substr(kIrqbalance.size());
  const auto leave = [&](std::string reason, bool kept) {
    back.left.push_back({"irqbalance", std::move(reason), kept});
    return !kept;
  };
  if (!irqbalance_.has(socket)) return true;
  const auto state = irqbalance_.ask(patience);
  if (!state && record.is_undone()) return false;
  if (!state) return leave(state.error().message(), true);
  if (!*state || (*state)->socket != socket) return true;  // it has ended, and has banned none since
  const CpuSet& now = (*state)->banned;
  if (record.is_undone()) return has_followed(record, now);
  const CpuSet original = set_of(record.original);
  if (now != original && was_in_force(record) && !set_of(record.written).is_subset_of(now))
    return leave(changed_by_another(now, record), false);
  const auto told = irqbalance_.ban(socket, original, patience);
  if (!told && told.error().kind() == ErrorKind::gone) return true;
  if (!told) return leave(told.error().message(), true);
  back.irqbalance = true;
  told_ = socket;
  // Until it follows, its answer is still berth's ban, which nobody may take for its own. After an error, the
  // next restore tells it again.
  change(record, original);
  (void)journal_.record(std::span(&record, 1));
  return false;
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
  // irqbalance comes first, so that it places interrupts on all vCPUs from then on.
  InterruptsBack told;
  std::vector<std::string> served;
  const auto records = journal_.host();  // it changes below
  for (const auto& [name, record] : records) {
    if (!name.starts_with(kIrqbalance)) continue;
    if (restore_irqbalance(record, patient_ ? kLongPatience : patience, told)) served.push_back(name);
  }
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
  HostRecord record{own, banned.to_string(), banned.to_string(), std::nullopt};
  if (const auto known = journal_.host().find(own); known != journal_.host().end()) {
    if (known->second.is_undone() && has_followed(known->second, banned)) {
      if (auto done = journal_.forget_host(std::span(&own, 1)); !done) return model::fail(done.error());
    } else {
      record = known->second;
    }
  }
  const CpuSet original = set_of(record.original);
  const CpuSet written = set_of(record.written);
  const bool in_force = written.is_subset_of(banned);
  if (!in_force && was_in_force(record)) {
    foreign_ = socket;
    const auto forgotten = journal_.forget_host(std::span(&own, 1));
    return forgotten ? model::Result<Ban>(Ban::foreign) : model::fail(forgotten.error());
  }
  const CpuSet wanted = original | cpus;
  const bool is_recorded = journal_.host().contains(own);
  if (wanted == written && (!is_recorded || told_ == socket)) {
    if (in_force && record.previous && !record.is_undone()) {
      record.previous.reset();
      if (const auto noted = journal_.record(std::span(&record, 1)); !noted)
        return model::fail(noted.error());
    }
    return in_force ? Ban::told : Ban::pending;
  }
  for (const CpuSet& list : {wanted, original}) {
    if (const auto said = os::Irqbalance::can_say(list); !said) return model::fail(said.error());
  }
  change(record, wanted);
  told_.clear();
  if (const auto noted = journal_.record(std::span(&record, 1)); !noted) return model::fail(noted.error());
  if (const auto told = irqbalance_.ban(socket, wanted, patience); !told) return model::fail(told.error());
  told_ = socket;
  return Ban::pending;
}

}  // namespace berth::cgroup
