// SPDX-License-Identifier: Apache-2.0
#include "policies/interference/borrowing/borrowing.h"

#include "model/name.h"
#include "model/path.h"
#include "policies/interference/borrowing/lender.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include <fmt/core.h>

namespace berth::policies {

namespace {

using model::CpuSet;
using model::Workload;
using model::WorkloadClass;

// The need of best-effort work for more vCPUs.
enum class Need { idle, some, more };

struct Lender {
  const Workload* workload = nullptr;
  const Owner* owner = nullptr;
  LenderNow now;
  bool wanted = false;  // some work could borrow from it
  CpuSet usable = {};   // its vCPUs that work may use which runs at idle priority already

  const CpuSet& lent() const { return now.finding.state.cpus; }
  // Cores of the lent vCPUs that its own threads leave.
  double left_cores() const {
    const double size = std::max(1.0, static_cast<double>(owner->cpus.size()));
    return static_cast<double>(lent().size()) * std::max(0.0, 1 - now.finding.use_cores / size);
  }
};

bool is_confined(const BorrowingInput& input, const Workload& workload) {
  return std::binary_search(input.confined.begin(), input.confined.end(), workload.id);
}

// Of work on the best-effort pool alone.
Need need_of(const BorrowingInput& input, const std::vector<Lender>& lenders) {
  double now = 0;
  double of_late = 0;
  for (const Workload* workload : input.workloads) {
    if (!is_confined(input, *workload)) continue;
    now += recent_use(*workload, kBusySamples).mean_cores;
    of_late += recent_use(*workload, kLenderSamples).mean_cores;
  }
  const auto pool = static_cast<double>(input.pool.size());
  if (of_late < kIdlePool * pool) return Need::idle;
  double room = pool;
  for (const Lender& lender : lenders) room += lender.left_cores();
  return now >= kBusyPool * room ? Need::more : Need::some;
}

// The one that has most to give comes first.
bool has_more_slack(const Lender& a, const Lender& b) {
  const auto key = [](const Lender& it) {
    const model::Lender& finding = it.now.finding;
    const auto size = static_cast<double>(it.owner->cpus.size());
    const double taken = (finding.use_cores + static_cast<double>(finding.state.cpus.size())) / size;
    const double waits = finding.delay_s.value_or(0) / finding.target_s.value_or(1);
    return std::make_tuple(taken, waits, it.owner->sensitivity, std::string_view(it.workload->id));
  };
  return key(a) < key(b);
}

struct Candidate {
  const Workload* workload = nullptr;
  const std::vector<std::size_t>* reaches = nullptr;  // lenders to which it yields
  std::string obstacle;                               // why it cannot borrow; empty where it can
  bool ready() const { return obstacle.empty() && workload->cpu_idle; }
  // Those of these vCPUs that its owner allows it.
  CpuSet allowed(const CpuSet& cpus) const {
    return workload->allowed_cpus ? cpus & *workload->allowed_cpus : cpus;
  }
};

// The change of priority that a workload needs. It goes back only when none of the vCPUs of best-effort work
// is an instance's.
std::optional<model::Action> change_of_priority(const Workload& workload, bool idle, const std::string& why,
                                                const CpuSet& owned) {
  if (workload.fixed.cpu_idle || idle == workload.cpu_idle) return std::nullopt;
  const bool best_effort = workload.workload_class == WorkloadClass::best_effort;
  if (!idle && best_effort && workload.cpus.intersects(owned)) return std::nullopt;
  std::string reason = idle ? "it may borrow vCPUs of instances, and runs there only while they are idle"
                            : "it borrows no vCPUs now: " + why;
  model::Action::What what = model::GiveBack{workload.id, model::Attribute::cpu_idle};
  if (idle) what = model::Set{workload.id, model::IdlePriority()};
  return model::Action{
      .what = std::move(what), .policy = "interference", .decision = {}, .reason = std::move(reason)};
}

class Round {
 public:
  // `owned`: the vCPUs of all owners.
  Round(const BorrowingInput& input, const CpuSet& owned, const InterferenceSettings& settings)
      : input_(input), owned_(owned), settings_(settings) {
    for (const Workload* workload : input_.workloads) {
      if (const auto owner = input_.owners.find(workload->id); owner != input_.owners.end())
        add_lender(*workload, owner->second);
    }
    need_ = need_of(input, lenders_);
    for (const Workload* workload : input_.workloads) {
      if (workload->workload_class == WorkloadClass::best_effort) add_candidate(*workload);
    }
    for (const Candidate& candidate : candidates_) {
      if (candidate.obstacle.empty()) note_interest(candidate);
    }
  }

  Borrowing decide() {
    give_back();
    grow();
    Borrowing result;
    result.findings.emplace();
    for (const Candidate& candidate : candidates_) settle(candidate, result);
    for (Lender& lender : lenders_)
      result.findings->lenders.emplace(lender.workload->id, std::move(lender.now.finding));
    return result;
  }

 private:
  void add_lender(const Workload& workload, const Owner& owner) {
    Lender& lender = lenders_.emplace_back();
    lender.workload = &workload;
    lender.owner = &owner;
    lender.now =
        judge_lender(workload, owner.cpus, input_.grown.contains(workload.id), input_.now, settings_);
  }

  // The same for all work with one parent cgroup.
  const std::vector<std::size_t>& reaches_of(const Workload& workload) {
    const auto [known, is_new] = reaches_.try_emplace(model::parent_path(workload.id));
    if (is_new) {
      for (std::size_t i = 0; i < lenders_.size(); ++i) {
        if (yields_to(workload.id, lenders_[i].workload->id)) known->second.push_back(i);
      }
    }
    return known->second;
  }

  void add_candidate(const Workload& workload) {
    Candidate candidate{.workload = &workload, .reaches = &reaches_of(workload), .obstacle = {}};
    if (!workload.borrow) {
      candidate.obstacle = "borrow is false for it";
    } else if (!is_confined(input_, workload)) {
      candidate.obstacle = "it is not confined to the best-effort pool";
    } else if (workload.fixed.cpu_idle && !workload.cpu_idle) {
      candidate.obstacle = "berth cannot give it idle priority";
    } else if (workload.evicted_at) {
      candidate.obstacle = "it is being evicted";
    } else if (candidate.reaches->empty()) {
      candidate.obstacle =
          fmt::format("idle priority counts among the cgroups of /{}, and no instance is there",
                      model::parent_path(workload.id));
    }
    candidates_.push_back(std::move(candidate));
  }

  // Tells the lenders that a candidate could borrow from them.
  void note_interest(const Candidate& candidate) {
    for (const std::size_t i : *candidate.reaches) {
      Lender& lender = lenders_[i];
      const CpuSet allowed = candidate.allowed(lender.owner->cpus);
      if (allowed.empty()) continue;
      lender.wanted = true;
      if (candidate.ready()) lender.usable |= allowed;
    }
  }

  // Takes vCPUs of a lender back, those first that were lent last.
  void take_back(Lender& lender, std::size_t most, std::string reason) {
    model::Lender& finding = lender.now.finding;
    const CpuSet kept = first_of(finding.state.cpus, lender, most);
    finding.withdrawn |= finding.state.cpus - kept;
    if (kept.empty()) {
      finding.state.quiet_since = input_.now;
      finding.state.cpi.reset();
    }
    finding.state.cpus = kept;
    finding.state.changed_at = input_.now;
    finding.reason = std::move(reason);
    lender.now.may_grow = false;
  }

  void give_back() {
    for (Lender& lender : lenders_) {
      const std::size_t lent = lender.lent().size();
      if (lent == 0) continue;
      if (need_ == Need::idle) {
        take_back(lender, 0, "best-effort work has enough vCPUs of its own");
      } else if (lender.usable.empty()) {
        take_back(lender, 0, "no best-effort work can borrow from it");
      } else if (lent > lender.now.most) {
        take_back(lender, lender.now.most,
                  fmt::format("it uses {:.3g} of its {} vCPUs itself", lender.now.finding.use_cores,
                              lender.owner->cpus.size()));
      }
    }
  }

  // Why no lender may lend more in this tick; empty where any may.
  std::string obstacle_to_all() const {
    if (need_ != Need::more) return "best-effort work has enough vCPUs";
    for (const Lender& lender : lenders_) {
      if (lender.now.finding.missed)
        return fmt::format("{} misses its target in this tick", lender.workload->id);
      if (lender.lent().empty()) continue;
      if (!lender.now.finding.delay_s)
        return fmt::format("the delay of {} is not known", lender.workload->id);
      if (const auto& it = lender.now.finding; it.delay_s && it.target_s && *it.delay_s > *it.target_s)
        return fmt::format("{} is not below its target", lender.workload->id);
    }
    return {};
  }

  void grow() {
    const std::string obstacle = obstacle_to_all();
    may_lend_ = obstacle.empty();
    if (may_lend_) {
      for (int step = 0; step < settings_.borrow_step; ++step) {
        if (!lend_one()) break;
      }
    }
    for (Lender& lender : lenders_) {
      std::string& reason = lender.now.finding.reason;
      if (!lender.now.may_grow || !reason.empty()) continue;
      if (!obstacle.empty()) {
        reason = obstacle;
      } else if (!lender.wanted) {
        reason = "no best-effort work can borrow from it";
      } else if (lender.usable.empty()) {
        reason = "best-effort work gets idle priority first";
      } else {
        reason = "others have more slack, and come first";
      }
    }
  }

  // Whether one more vCPU is lent.
  bool lend_one() {
    Lender* best = nullptr;
    for (Lender& lender : lenders_) {
      const CpuSet& lent = lender.lent();
      if (!lender.now.may_grow || lent.size() >= lender.now.most_to_grow) continue;
      if (lender.usable.is_subset_of(lent)) continue;
      if (best == nullptr || has_more_slack(lender, *best)) best = &lender;
    }
    if (best == nullptr) return false;
    model::Lender& finding = best->now.finding;
    const std::size_t wanted = finding.state.cpus.size() + 1;
    finding.state.cpus |= first_of(best->usable - finding.state.cpus, *best, 1);
    finding.state.changed_at = input_.now;
    finding.state.quiet_since.reset();
    finding.reason = fmt::format("it uses {:.3g} of its {} vCPUs, and lends {}", finding.use_cores,
                                 best->owner->cpus.size(), wanted);
    return true;
  }

  // `count` of these vCPUs of a lender, in the order of lending: first those whose core the lender uses least
  // itself, then the highest numbers.
  CpuSet first_of(const CpuSet& cpus, const Lender& lender, std::size_t count) const {
    const CpuSet own = lender.owner->cpus - lender.lent();
    std::vector<std::pair<int, int>> order;
    for (const int cpu : cpus) {
      int shared = 0;
      if (const int at = input_.node.position(cpu); at >= 0) {
        for (const int thread : input_.node.core_threads(input_.node.core(at))) {
          if (input_.node.cpu(thread) != cpu && own.contains(input_.node.cpu(thread))) ++shared;
        }
      }
      order.emplace_back(shared, -cpu);
    }
    std::sort(order.begin(), order.end());
    CpuSet first;
    for (std::size_t i = 0; i < std::min(count, order.size()); ++i) first.insert(-order[i].second);
    return first;
  }

  // Whether the work borrows now, or is to borrow at the next tick. Work that is idle stays idle while it
  // needs vCPUs and may soon have some: a change of priority costs more than a tick.
  bool is_to_be_idle(const Candidate& candidate) const {
    if (!candidate.obstacle.empty()) return false;
    const bool stays = candidate.workload->cpu_idle && need_ != Need::idle;
    const auto& reaches = *candidate.reaches;
    return std::any_of(reaches.begin(), reaches.end(), [&](std::size_t i) {
      const Lender& lender = lenders_[i];
      if (!candidate.allowed(lender.lent()).empty()) return true;
      if (candidate.allowed(lender.owner->cpus).empty()) return false;
      return (may_lend_ && lender.now.may_grow) || (stays && lender.now.open);
    });
  }

  void settle(const Candidate& candidate, Borrowing& result) const {
    const Workload& workload = *candidate.workload;
    CpuSet cpus;
    std::vector<std::string> from;
    if (candidate.ready()) {
      for (const std::size_t i : *candidate.reaches) {
        const CpuSet mine = candidate.allowed(lenders_[i].lent());
        if (mine.empty()) continue;
        cpus |= mine;
        from.push_back(lenders_[i].workload->id);
      }
    }
    model::Borrower borrower{.cpus = cpus, .reason = candidate.obstacle};
    const bool idle = is_to_be_idle(candidate);
    if (!cpus.empty()) {
      borrower.reason = "borrows from " + model::joined(from, ", ");
      result.borrowed.emplace(workload.id, std::move(cpus));
    } else if (borrower.reason.empty()) {
      borrower.reason = idle && !workload.cpu_idle ? "it gets idle priority first" : "no instance lends now";
    }
    if (auto action = change_of_priority(workload, idle, borrower.reason, owned_))
      result.actions.push_back(std::move(*action));
    result.findings->borrowers.emplace(workload.id, std::move(borrower));
  }

  const BorrowingInput& input_;
  const CpuSet& owned_;
  const InterferenceSettings& settings_;
  Need need_ = Need::idle;
  std::vector<Lender> lenders_;
  std::map<std::string_view, std::vector<std::size_t>> reaches_;  // by parent cgroup
  std::vector<Candidate> candidates_;
  bool may_lend_ = false;  // no lender keeps all from lending more
};

}  // namespace

bool yields_to(const std::string& workload, const std::string& other) {
  const std::string_view parent = model::parent_path(workload);
  if (parent.empty()) return true;
  return other.size() > parent.size() && other.starts_with(parent) && other[parent.size()] == '/';
}

Borrowing decide_borrowing(const BorrowingInput& input, const InterferenceSettings& settings) {
  CpuSet owned;
  for (const auto& [id, owner] : input.owners) owned |= owner.cpus;
  Borrowing result;
  if (settings.borrow) result = Round(input, owned, settings).decide();
  for (const Workload* workload : input.workloads) {
    if (!workload->cpu_idle) continue;
    const bool best_effort = workload->workload_class == WorkloadClass::best_effort;
    if (settings.borrow && best_effort) continue;  // decided above
    if (auto action = change_of_priority(
            *workload, false, best_effort ? "interference.borrow is false" : "it is latency-sensitive",
            owned))
      result.actions.push_back(std::move(*action));
  }
  return result;
}

}  // namespace berth::policies
