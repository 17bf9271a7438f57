// SPDX-License-Identifier: Apache-2.0
#include "daemon/interrupts.h"

#include "daemon/ledger/enforcer_log.h"
#include "policies/interrupts.h"

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <utility>

#include <fmt/core.h>

namespace berth::daemon {

namespace {

using model::CpuSet;
using model::ErrorKind;

LogEntry entry_for(double now, const std::vector<int>& numbers, const char* result, std::string reason) {
  LogEntry entry = interrupts_entry(now, kEnforce, numbers, result);
  entry.policy = "interference";
  entry.reason = std::move(reason);
  return entry;
}

const char* word_of(cgroup::InterruptWriter::Ban ban) {
  switch (ban) {
    case cgroup::InterruptWriter::Ban::absent:
      return "absent";
    case cgroup::InterruptWriter::Ban::told:
      return "told";
    case cgroup::InterruptWriter::Ban::pending:
      return "pending";
    case cgroup::InterruptWriter::Ban::foreign:
      break;
  }
  return "foreign";
}

// It cannot be moved, whenever berth tries.
bool is_lasting(const model::Error& error) {
  return error.errno_value() == EIO || error.kind() == ErrorKind::permission;
}

}  // namespace

// One reading of all interrupts, and what comes of it.
struct Interrupts::Look {
  const CpuSet& owned;
  const CpuSet& online;
  double now = 0;
  bool replugged = false;  // drivers may have spread their interrupts over the vCPUs that are online now
  std::vector<cgroup::InterruptWriter::Move> moves{};
  std::vector<int> back{};         // none of their vCPUs is owned any more
  std::vector<int> foreign{};      // another program changed them since
  std::vector<int> renewed{};      // drivers made them again, with their number
  std::optional<CpuSet> of_new{};  // the vCPUs of a new interrupt
  std::vector<LogEntry> entries{};
};

std::vector<LogEntry> Interrupts::follow(const CpuSet& owned, const CpuSet& of_others,
                                         const model::Topology& topology, double now) {
  if (owned.empty()) return put_back(now);
  told_ = false;
  const CpuSet online = policies::online_of(topology);
  if (!is_due(owned, online, now)) {
    std::vector<LogEntry> entries;
    if (again_) tell_irqbalance(owned, now, entries);
    return entries;
  }
  if (owned != owned_) forget_numbers();
  // A driver may do so after the vCPU is online already, so the next look takes it for that, too.
  const bool replugs = looked_at_ && online != online_;
  Look look{
      .owned = owned, .online = online, .now = now, .replugged = std::exchange(replugs_, replugs) || replugs};
  report_ = {};
  report_.off = owned;
  // First, so that it moves none back.
  tell_irqbalance(owned, now, look.entries);
  const auto numbers = writer_.interrupts().numbers();
  if (!numbers) {
    report_.problem = numbers.error().message();
    return std::move(look.entries);
  }
  // Another interrupt may get the number of one that has gone.
  const auto has_gone = [&](int number) { return !std::ranges::binary_search(*numbers, number); };
  std::erase_if(refused_, has_gone);
  std::erase_if(others_, has_gone);
  std::erase_if(renewed_, has_gone);
  auto gone = writer_.held();
  std::erase_if(gone, [&](int number) { return !has_gone(number); });

  look.of_new = writer_.interrupts().default_cpus();
  if (const auto forgotten = writer_.disown(gone); !forgotten) report_.problem = forgotten.error().message();
  for (const int number : *numbers) look_at(number, look, of_others, topology);
  carry_out(look);
  numbers_ = *numbers;
  owned_ = owned;
  online_ = online;
  looked_at_ = now;
  report_.moved = writer_.held().size();
  return std::move(look.entries);
}

bool Interrupts::is_due(const CpuSet& owned, const CpuSet& online, double now) const {
  if (!looked_at_ || owned != owned_ || online != online_) return true;
  if (now - *looked_at_ >= kLook_s || now < *looked_at_) return true;
  if (const auto count = writer_.interrupts().count()) return *count != numbers_.size();
  return writer_.interrupts().numbers().value_or(std::vector<int>()) != numbers_;
}

void Interrupts::look_at(int number, Look& look, const CpuSet& of_others, const model::Topology& topology) {
  const auto now = writer_.interrupts().cpus(number);
  if (!now) return;  // it goes
  if (const auto held = writer_.held(number)) {
    const bool ours = *now == held->written || (held->previous && *now == *held->previous);
    // The kernel itself chooses other vCPUs once all of an interrupt's are offline.
    if (ours || !held->written.intersects(look.online)) {
      const auto to = policies::off_owned(held->original, look.owned, of_others, topology);
      if (!to) {
        look.back.push_back(number);
      } else if (*to != *now) {
        look.moves.push_back({number, *now, *to});
      }
      return;
    }
    // A driver that resets its device makes its interrupts anew, often with the same numbers.
    const bool as_new = *now == held->original || now.value() == look.of_new;
    const bool by_driver = look.replugged || (as_new && renewed_.insert(number).second);
    if (!by_driver) {
      look.foreign.push_back(number);
      if (now->intersects(look.owned)) ++report_.others;
      return;
    }
    look.renewed.push_back(number);
  }
  if (!now->intersects(look.owned)) return;
  if (others_.contains(number)) {
    ++report_.others;
  } else if (refused_.contains(number)) {
    ++report_.refused;
  } else if (!writer_.interrupts().has_handler(number)) {
    return;  // it never comes
  } else if (auto to = policies::off_owned(*now, look.owned, of_others, topology)) {
    look.moves.push_back({number, *now, std::move(*to)});
  }
}

void Interrupts::carry_out(Look& look) {
  if (const auto done = writer_.disown(look.renewed); !done) report_.problem = done.error().message();
  if (!look.foreign.empty()) {
    others_.insert(look.foreign.begin(), look.foreign.end());
    if (const auto done = writer_.disown(look.foreign); !done) report_.problem = done.error().message();
    look.entries.push_back(entry_for(look.now, look.foreign, "left", "another program has changed them"));
  }
  if (!look.back.empty()) {
    const auto back = writer_.restore(look.back);
    append(look.entries, entries_of(back, look.now, kEnforce, "no instance owns their vCPUs any more"));
  }
  if (look.moves.empty()) return;
  const auto errors = writer_.move(look.moves);
  if (!errors) {
    report_.problem = errors.error().message();
    return;
  }
  std::vector<int> moved;
  for (const auto& move : look.moves) {
    const auto error = errors->find(move.number);
    if (error == errors->end()) {
      moved.push_back(move.number);
    } else if (error->second.errno_value() == EROFS) {
      report_.problem = error->second.message();
    } else if (error->second.kind() != ErrorKind::gone) {
      if (is_lasting(error->second)) refused_.insert(move.number);
      ++report_.refused;
    }
  }
  if (moved.empty()) return;
  look.entries.push_back(
      entry_for(look.now, moved, "applied",
                fmt::format("instances own vCPUs {}, so interrupts leave these", look.owned.to_string())));
}

void Interrupts::tell_irqbalance(const CpuSet& owned, double now, std::vector<LogEntry>& entries) {
  using Ban = cgroup::InterruptWriter::Ban;
  const auto ban = writer_.ban(owned);
  report_.irqbalance = ban ? word_of(*ban) : "silent";
  if (!ban) {
    again_ = ban.error().kind() == ErrorKind::transient;
    if (!again_) report_.problem = ban.error().message();
    return;
  }
  again_ = *ban == Ban::pending;
  // An irqbalance that has ended places no interrupt any more.
  if (std::exchange(balanced_, *ban != Ban::absent) && !balanced_) others_.clear();
  const CpuSet told = again_ || *ban == Ban::told ? owned : CpuSet();
  if (std::exchange(banned_, told) == told || told.empty()) return;
  LogEntry& entry = entries.emplace_back(irqbalance_entry(now, kEnforce, "applied"));
  entry.policy = "interference";
  entry.new_value = owned.to_string();
  entry.reason = "instances own these vCPUs";
}

std::vector<LogEntry> Interrupts::put_back(double now) {
  report_ = {};
  looked_at_.reset();
  replugs_ = false;
  again_ = false;
  banned_ = {};
  forget_numbers();
  if (!writer_.holds_any()) return {};
  auto back = writer_.restore_all();
  // The next tick tries again, and the first one has told about these.
  if (std::exchange(told_, true)) std::erase_if(back.left, [](const auto& left) { return left.kept; });
  return entries_of(back, now, kEnforce, "no instance owns vCPUs whose interrupts move");
}

void Interrupts::forget_numbers() {
  refused_.clear();
  others_.clear();
  renewed_.clear();
}

void Interrupts::retry() {
  refused_.clear();
  looked_at_.reset();
}

}  // namespace berth::daemon
