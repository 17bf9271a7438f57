// SPDX-License-Identifier: Apache-2.0
// What stands after many ticks, against a restatement that keeps no memory: it looks through all ticks.
#include "policies/after.h"
#include "policies/decide.h"
#include "tests/unit/policies/draws.h"
#include "tests/unit/policies/seeds.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace berth::policies {

namespace {

constexpr double kHold_s = 5;
constexpr double kOwnQuota = 2;  // cores

struct Tick {
  model::Snapshot snapshot;
  model::Plan plan;
  Outcomes outcomes;
};

const std::vector<std::string>& names() {
  static const std::vector<std::string> kNames{"a", "b", "c", "d"};
  return kNames;
}

// Some of the workloads run. Now and then one is another run than before. A recorded one has no cgroup id.
model::Snapshot next_snapshot(testing::Draws& draws, std::map<std::string, int>& run, double time,
                              bool recorded) {
  model::Snapshot made;
  made.time = time;
  made.load1 = draws.fraction();
  for (const std::string& name : names()) {
    if (draws.chance(0.2)) ++run[name];
    if (draws.chance(0.2)) continue;
    model::Workload& workload = made.workloads.emplace_back();
    workload.id = name;
    workload.created = run[name];
    workload.cpu_quota_cores = kOwnQuota;
    if (!recorded) workload.cgroup_id = static_cast<std::uint64_t>(1 + run[name]);
    if (draws.chance(0.7)) {
      const char* app = name < "c" ? "app-1" : "app-2";
      workload.spark = model::SparkIdentity{app, model::SparkRole::executor, name};
    }
  }
  for (const std::string& name : names()) {
    if (draws.chance(0.8)) made.groups.push_back({.id = name});
  }
  return made;
}

model::Plan next_plan(testing::Draws& draws, const model::Snapshot& snapshot) {
  using Kind = model::LimitMove::Kind;
  model::Plan made;
  made.time = snapshot.time;
  if (draws.chance(0.8)) {
    auto& findings = made.findings.straggler.emplace();
    for (const std::string& name : names()) {
      if (draws.chance(0.5)) findings.tasks[name].straggler = draws.chance(0.5);
      if (draws.chance(0.2)) findings.relocate.push_back({name, {1, 0}});
      if (draws.chance(0.3))
        findings.moves.push_back({draws.chance(0.5) ? Kind::recall : Kind::restore, name, {1, 0}, ""});
    }
  }
  if (draws.chance(0.8)) {
    auto& findings = made.findings.interference.emplace();
    if (draws.chance(0.3)) findings.unplaceable.push_back({"d", "no room"});
  }
  if (draws.chance(0.3)) made.findings.eviction.emplace().need_bytes = draws.chance(0.5) ? 1 : 0;
  if (draws.chance(0.8)) made.findings.oversell.emplace().cpu.utilisation = draws.fraction();
  for (const model::Workload& workload : snapshot.workloads) {
    const std::string& id = workload.id;
    if (draws.chance(0.1)) made.actions.push_back({model::Evict{.workload = id}, "eviction", "", ""});
    if (draws.chance(0.2)) {
      made.actions.push_back({model::Set{id, model::CpuSet{draws.number(0, 3)}}, "interference", "", ""});
    } else if (draws.chance(0.1)) {
      made.actions.push_back({model::GiveBack{id, model::Attribute::cpus}, "interference", "", ""});
    }
    if (draws.chance(0.2)) {
      const model::CpuQuota quota{draws.number(1, 3) * kOwnQuota / 2};
      made.actions.push_back({model::Set{id, quota}, "straggler", "", ""});
    }
  }
  for (const std::string& name : names()) {
    model::Action::What what = model::GiveBack{name, model::Attribute::cpu_idle};
    if (draws.chance(0.7))
      what = model::Set{name, draws.chance(0.5) ? model::LowPriority::idle : model::LowPriority::weight};
    if (draws.chance(0.2)) made.actions.push_back({what, "interference", "", ""});
  }
  return made;
}

// The priority that the group would have: of the newest action about it, if it was a group since then.
std::optional<model::LowPriority> held_by(const std::vector<Tick>& ticks, const std::string& group) {
  for (auto tick = ticks.rbegin(); tick != ticks.rend(); ++tick) {
    if (find_group(tick->snapshot, group) == nullptr) return std::nullopt;
    if (!tick->outcomes.assumed) continue;
    for (const model::Action& action : tick->plan.actions) {
      if (*action.workload() != group || action.attribute() != model::Attribute::cpu_idle) continue;
      const auto* priority = action.sets<model::LowPriority>();
      return priority != nullptr ? std::optional(*priority) : std::nullopt;
    }
  }
  return std::nullopt;
}

std::vector<Tick> random_ticks(std::uint64_t seed) {
  testing::Draws draws(seed);
  const bool recorded = draws.chance(0.5);
  std::map<std::string, int> run;
  std::vector<Tick> ticks;
  double time = 1000;
  for (int i = 0, count = draws.number(1, 30); i < count; ++i) {
    // Now and then the clock was set back.
    time += draws.chance(0.05) ? -draws.number(1, 20) : draws.number(1, draws.chance(0.02) ? 200 : 3);
    Tick& tick = ticks.emplace_back();
    tick.snapshot = next_snapshot(draws, run, time, recorded);
    tick.plan = next_plan(draws, tick.snapshot);
    tick.outcomes = assumed(tick.plan);
    if (draws.chance(0.2)) tick.outcomes = {};
  }
  return ticks;
}

// The time of the newest tick that found something of the workload, as `found` says, in the run of the last
// tick, if that run was there in every tick since.
template <typename Found>
std::optional<double> last_found(const std::vector<Tick>& ticks, const model::Workload& workload,
                                 Found found) {
  for (auto tick = ticks.rbegin(); tick != ticks.rend(); ++tick) {
    const auto& present = tick->snapshot.workloads;
    const bool same_run = std::any_of(present.begin(), present.end(), [&](const model::Workload& it) {
      return it.id == workload.id && it.created == workload.created;
    });
    if (!same_run) return std::nullopt;
    if (found(tick->plan)) return tick->plan.time;
  }
  return std::nullopt;
}

// The newest of the workload's actions of which `wanted` says so, in the same run.
template <typename Wanted>
std::optional<model::Action> last_action(const std::vector<Tick>& ticks, const model::Workload& workload,
                                         Wanted wanted) {
  std::vector<Tick> carried_out = ticks;
  for (Tick& tick : carried_out) {
    if (!tick.outcomes.assumed) tick.plan.actions.clear();
  }
  std::optional<model::Action> newest;
  last_found(carried_out, workload, [&](const model::Plan& plan) {
    for (const model::Action& action : plan.actions) {
      if (*action.workload() == workload.id && wanted(action)) newest = action;
    }
    return newest.has_value();
  });
  return newest;
}

// By application: the newest eviction, unless a later tick came kHold_s or more after both it and the last
// lack of memory, or before them.
std::map<std::string, double> evicted(const std::vector<Tick>& ticks) {
  std::map<std::string, double> apps;
  for (std::size_t i = 0; i < ticks.size(); ++i) {
    for (const model::Workload& workload : ticks[i].snapshot.workloads) {
      if (!workload.spark || !ticks[i].outcomes.evicted.contains(workload.id)) continue;
      const double began = ticks[i].plan.time;
      bool stays = true;
      for (std::size_t later = i + 1; later < ticks.size(); ++later) {
        std::optional<double> lack;
        for (std::size_t k = 0; k <= later; ++k) {
          const auto& spark = ticks[k].plan.findings.eviction;
          if (spark && spark->need_bytes > 0) lack = ticks[k].plan.time;
        }
        const double since = ticks[later].plan.time - std::max(began, lack.value_or(began));
        stays = stays && since >= 0 && since < kHold_s;
      }
      if (stays) {
        apps[workload.spark->app] = began;
      } else if (apps.contains(workload.spark->app)) {
        // An older one that stayed would have been replaced by this one, and gone with it.
        apps.erase(workload.spark->app);
      }
    }
  }
  return apps;
}

}  // namespace

RC_GTEST_PROP(AfterProperty, IsWhatALookThroughAllTicksFinds, ()) {
  const std::vector<Tick> ticks = random_ticks(*testing::any_seed());
  PolicySettings settings;
  settings.eviction.hold_s = kHold_s;
  model::Standing standing;
  for (const Tick& tick : ticks)
    standing = after(std::move(standing), tick.snapshot, tick.plan, tick.outcomes, settings);

  const Tick& last = ticks.back();
  model::Snapshot shown = last.snapshot;
  model::put_on(standing, shown);
  std::optional<double> any_straggler;
  for (const Tick& tick : ticks) {
    if (!tick.plan.findings.straggler) continue;
    for (const auto& [id, task] : tick.plan.findings.straggler->tasks) {
      const auto& present = tick.snapshot.workloads;
      const bool runs = std::any_of(present.begin(), present.end(),
                                    [&name = id](const model::Workload& it) { return it.id == name; });
      if (task.straggler && runs) any_straggler = tick.plan.time;
    }
  }
  RC_ASSERT(shown.straggler_seen_at == any_straggler);
  RC_ASSERT(shown.spark_evicted == evicted(ticks));
  for (const model::Workload& workload : shown.workloads) {
    const std::string& id = workload.id;
    RC_ASSERT(workload.straggled_at == last_found(ticks, workload, [&](const model::Plan& plan) {
                const auto& findings = plan.findings.straggler;
                return findings && findings->tasks.contains(id) && findings->tasks.at(id).straggler;
              }));
    RC_ASSERT(workload.pressed_at == last_found(ticks, workload, [&](const model::Plan& plan) {
                if (!plan.findings.straggler) return false;
                const auto& moves = plan.findings.straggler->moves;
                return std::any_of(moves.begin(), moves.end(), [&](const model::LimitMove& move) {
                  return move.kind == model::LimitMove::Kind::recall && move.workload == id;
                });
              }));
    const auto relocated = last_found(ticks, workload, [&](const model::Plan& plan) {
      if (!plan.findings.straggler) return false;
      const auto& all = plan.findings.straggler->relocate;
      return std::any_of(all.begin(), all.end(),
                         [&](const model::Relocation& relocation) { return relocation.workload == id; });
    });
    const auto memory = standing.runs.find(id);
    RC_ASSERT((memory != standing.runs.end() ? memory->second.relocated_at : std::nullopt) == relocated);
    const auto of = [](model::Attribute attribute) {
      return [attribute](const model::Action& action) { return action.attribute() == attribute; };
    };
    const auto pin = last_action(ticks, workload, of(model::Attribute::cpus));
    const auto* cpus = pin ? pin->sets<model::CpuSet>() : nullptr;
    RC_ASSERT(workload.cpus == (cpus != nullptr ? *cpus : model::CpuSet()));
    const auto change = last_action(ticks, workload, of(model::Attribute::cpu_quota));
    const double quota = change ? *change->sets<model::CpuQuota>()->cores : kOwnQuota;
    RC_ASSERT(workload.cpu_quota_cores == quota);
    RC_ASSERT(workload.held_cpu.has_value() == (quota != kOwnQuota));
    const auto is_eviction = [](const model::Action& action) {
      return std::holds_alternative<model::Evict>(action.what);
    };
    RC_ASSERT(workload.evicted_at.has_value() == last_action(ticks, workload, is_eviction).has_value());
  }
  for (const model::BestEffortGroup& group : shown.groups) RC_ASSERT(group.held == held_by(ticks, group.id));
  model::take_off(shown);
  for (const model::BestEffortGroup& group : shown.groups) RC_ASSERT(!group.held);
  for (const model::Workload& workload : shown.workloads)
    RC_ASSERT(workload.cpus.empty() && workload.cpu_quota_cores == kOwnQuota && !workload.evicted_at);
  for (const auto& [id, memory] : standing.runs) RC_ASSERT(find_workload(last.snapshot, id) != nullptr);
  RC_ASSERT(standing.sharing == without_own_vcpus(last.plan));
  // A clock that went back may have cost some older ticks.
  const bool steady = std::is_sorted(ticks.begin(), ticks.end(), [](const Tick& one, const Tick& other) {
    return one.plan.time < other.plan.time;
  });
  if (!steady) return;
  int samples = 0;
  for (const Tick& tick : ticks) {
    const double ago_s = last.plan.time + 1 - tick.plan.time;
    if (tick.plan.findings.oversell && ago_s > 0 && ago_s < model::kRecent_s) ++samples;
  }
  const auto use = model::recent_use(standing, last.plan.time + 1);
  RC_ASSERT((use ? use->samples : 0) == samples);
}

RC_GTEST_PROP(AfterProperty, APlacementChangesTheMemoryOfPinsAlone, ()) {
  const std::uint64_t seed = *testing::any_seed();
  const std::vector<Tick> ticks = random_ticks(seed);
  model::Standing before;
  for (const Tick& tick : ticks)
    before = after(std::move(before), tick.snapshot, tick.plan, tick.outcomes, PolicySettings());
  const Tick& last = ticks.back();
  testing::Draws draws(seed + 1);
  model::Plan plan = next_plan(draws, last.snapshot);
  std::erase_if(plan.actions,
                [](const model::Action& action) { return action.attribute() != model::Attribute::cpus; });
  const std::set<std::string> arrived{"d"};
  model::Standing now = after_places(before, last.snapshot, plan, assumed(plan), arrived);
  std::set<std::string> placed = arrived;
  for (const model::Action& action : plan.actions) placed.insert(*action.workload());
  const auto sharing = without_own_vcpus(plan);
  for (const model::Workload& workload : last.snapshot.workloads) {
    const std::string& id = workload.id;
    RC_ASSERT(now.sharing.contains(id) == (placed.contains(id) ? sharing : before.sharing).contains(id));
  }
  const auto forget_pins = [](model::Standing& standing) {
    standing.sharing.clear();
    standing.best_effort_cores.clear();
    for (auto& [id, memory] : standing.runs) {
      memory.held.erase(model::Attribute::cpus);
    }
    // A run may be known by its pin alone.
    std::erase_if(standing.runs, [](const auto& item) {
      model::RunMemory nothing;
      nothing.run = item.second.run;
      return item.second == nothing;
    });
  };
  forget_pins(before);
  forget_pins(now);
  RC_ASSERT(now == before);
}

}  // namespace berth::policies
