// SPDX-License-Identifier: Apache-2.0
// Shared services and best-effort work over many ticks (docs/decisions/levels.md). The use that berth sees is
// what the pins permit.
#include "policies/after.h"
#include "policies/decide.h"
#include "policies/interference/best_effort_cores.h"
#include "policies/level.h"
#include "policies/usage.h"
#include "tests/unit/policies/draws.h"
#include "tests/unit/policies/hosts.h"
#include "tests/unit/policies/seeds.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace berth::policies {

namespace {

using model::CpuSet;
using model::Isolation;
using model::Workload;
using testing::cpus;
using testing::HostShape;
using testing::two_domains;

constexpr std::size_t kHistory = 60;

// Cores that a service would use on vCPUs of its own, by the time since the start in seconds.
using Load = std::function<double(double)>;

Load steady(double cores) {
  return [cores](double) { return cores; };
}
// Idle and busy in turns of `half_s`.
Load turns(double cores, double half_s) {
  return [=](double at) { return std::fmod(at, 2 * half_s) < half_s ? 0 : cores; };
}

// A host in observe mode with what runs there.
class Machine {
 public:
  explicit Machine(const HostShape& shape) : snapshot_(testing::snapshot_of(testing::host(shape))) {}

  InterferenceSettings& settings() { return settings_.interference; }
  void on(model::Topology topology) { snapshot_.topology = std::move(topology); }
  const model::Topology& topology() const { return snapshot_.topology; }

  Workload& run(Workload workload, Load load) {
    stop(workload.id);
    workload.created = snapshot_.time;
    workload.cgroup_id = ++runs_;
    workload.usage = {};
    loads_[workload.id] = {std::move(load), snapshot_.time};
    const auto at = std::find_if(snapshot_.workloads.begin(), snapshot_.workloads.end(),
                                 [&](const Workload& it) { return it.id > workload.id; });
    return *snapshot_.workloads.insert(at, std::move(workload));
  }
  Workload& service(const std::string& id, int vcpus, Load load) {
    Workload made = testing::latency_sensitive(id, vcpus);
    made.isolation.reset();
    return run(std::move(made), std::move(load));
  }
  void batch(int count) {
    for (int i = 0; i < count; ++i) run(testing::best_effort(fmt::format("batch{}", i)), steady(1));
  }
  // Two readings are never exactly as far apart as their times say.
  void read_inexactly() { noise_ = 0.01; }
  void stop(const std::string& id) {
    std::erase_if(snapshot_.workloads, [&](const Workload& it) { return it.id == id; });
  }

  // Returns the plan after a second of work.
  model::Plan tick() {
    snapshot_.time += 1;
    measure();
    model::Plan plan = decide(snapshot_, settings_, {"interference"});
    standing_ = after(std::move(standing_), snapshot_, plan, assumed(plan), settings_);
    model::take_off(snapshot_);
    model::put_on(standing_, snapshot_);
    return plan;
  }
  // The plan of a placement between two ticks.
  model::Plan place(const std::set<std::string>& arrived) {
    model::Plan plan = decide_places(snapshot_, settings_, arrived, snapshot_.time + 0.5);
    standing_ = after_places(std::move(standing_), snapshot_, plan, assumed(plan), arrived);
    model::take_off(snapshot_);
    model::put_on(standing_, snapshot_);
    return plan;
  }
  // The actions of so many ticks.
  std::size_t actions_in(int ticks) {
    std::size_t actions = 0;
    while (ticks-- > 0) actions += tick().actions.size();
    return actions;
  }

  void resize(const std::string& id, int vcpus) {
    for (Workload& it : snapshot_.workloads) {
      if (it.id == id) it.vcpus = vcpus;
    }
  }
  const Workload& workload(const std::string& id) const { return *find_workload(snapshot_, id); }
  const std::vector<Workload>& workloads() const { return snapshot_.workloads; }

 private:
  struct Running {
    Load load;
    double since = 0;
  };

  // Services with the same vCPUs have no more than these together.
  void measure() {
    std::map<std::string, double> sums;
    const auto place_of = [&](const Workload& it) {
      CpuSet place = it.cpus.empty() ? snapshot_.topology.usable() : it.cpus & snapshot_.topology.usable();
      return it.allowed_cpus ? place & *it.allowed_cpus : place;
    };
    const auto wanted_by = [&](const Workload& it) {
      const Running& running = loads_.at(it.id);
      return std::min(running.load(snapshot_.time - running.since), static_cast<double>(place_of(it).size()));
    };
    std::map<std::string, double> wanted;
    for (const Workload& it : snapshot_.workloads) {
      // The first reading of a cgroup makes no sample.
      if (snapshot_.time - loads_.at(it.id).since < 2) continue;
      wanted[it.id] = wanted_by(it);
      if (it.workload_class == model::WorkloadClass::latency_sensitive)
        sums[place_of(it).to_string()] += wanted[it.id];
    }
    for (Workload& it : snapshot_.workloads) {
      const auto known = wanted.find(it.id);
      if (known == wanted.end()) continue;
      const CpuSet place = place_of(it);
      const double sum = std::max(1e-9, sums[place.to_string()]);
      model::UsageSample sample;
      sample.time = snapshot_.time;
      sample.cpu_cores = known->second * std::min(1.0, static_cast<double>(place.size()) / sum);
      sample.cpu_cores *= 1 + noise_ * (draws_.fraction() - 0.5);
      it.usage.add(sample, kHistory);
    }
  }

  PolicySettings settings_;
  model::Snapshot snapshot_;
  model::Standing standing_;
  std::map<std::string, Running> loads_;
  std::uint64_t runs_ = 0;
  double noise_ = 0;
  testing::Draws draws_{1};
};

const model::InterferenceFindings& findings(const model::Plan& plan) { return *plan.findings.interference; }

CpuSet of_domain(const model::Topology& topology, int id) {
  CpuSet cpus;
  for (const model::Cpu& cpu : topology.cpus()) {
    if (cpu.llc == id && topology.usable().contains(cpu.cpu)) cpus.insert(cpu.cpu);
  }
  return cpus;
}

void expect_rules_kept(const Machine& machine, const InterferenceSettings& settings,
                       const model::Plan& plan) {
  const auto& found = findings(plan);
  const CpuSet usable = machine.topology().usable();
  CpuSet owned;
  for (const auto& [id, instance] : found.instances) owned |= instance.cpus;
  const CpuSet pool = found.best_effort.cpus;
  const CpuSet given = testing::given_out(machine.topology(), settings);
  const int least = std::min(std::max(1, settings.be_min_cpus), static_cast<int>((given - owned).size()));
  RC_ASSERT(static_cast<int>(pool.size()) >= least);
  RC_ASSERT(pool.is_subset_of(given - owned));
  std::map<int, double> use;
  for (const auto& [id, instance] : found.shared) {
    const Workload& service = machine.workload(id);
    if (!service.cpus.empty()) {
      RC_ASSERT(service.cpus.is_subset_of(usable));
      RC_ASSERT(!service.cpus.intersects(owned));
      RC_ASSERT(static_cast<double>(service.cpus.size()) * 1.1 + 1e-6 >= mean_cores(service));
    }
    RC_ASSERT(service.home == instance.home);
    if (instance.home.size() != 1 || service.allowed_cpus) continue;
    use[instance.home.first()] += latest_use(service, model::Resource::cpu).value_or(0);
  }
  for (const auto& [domain, cores] : use) {
    const CpuSet open = of_domain(machine.topology(), domain) - owned - settings.reserved_cpus;
    const CpuSet lent = pool & open;
    const bool forced = static_cast<int>(pool.size()) - 2 < least;
    RC_ASSERT(lent.empty() || forced ||
              static_cast<double>((open - lent).size()) + 1e-6 >= kServicesShare * cores);
  }
  for (const Workload& batch : machine.workloads()) {
    if (batch.workload_class != model::WorkloadClass::best_effort) continue;
    const CpuSet may = batch.cpus.empty() ? usable : batch.cpus & usable;
    RC_ASSERT((found.shared.empty() && given == usable) || may.is_subset_of(pool));
  }
}

}  // namespace

TEST(LevelsOverTime, AServiceThatFillsItsHomeGetsAWiderOne) {
  Machine machine(two_domains());
  machine.service("web", 2, [](double at) { return at < 20 ? 1 : 7; });
  machine.actions_in(10);
  ASSERT_EQ(machine.workload("web").cpus, cpus("0-1,4-5"));
  machine.actions_in(100);
  EXPECT_TRUE(machine.workload("web").cpus.empty()) << "its pin hides the rest of its use";
}

TEST(LevelsOverTime, ServicesThatFillTheirHomeTogetherGetAWiderOne) {
  Machine machine(two_domains());
  machine.service("a", 2, [](double at) { return at < 20 ? 0.9 : 3; });
  machine.service("b", 2, [](double at) { return at < 20 ? 0.8 : 3; }).allowed_cpus = cpus("0-1,4-5");
  machine.actions_in(10);
  ASSERT_EQ(machine.workload("b").home, cpus("0"));
  machine.actions_in(100);
  EXPECT_EQ(machine.workload("b").home, cpus("0")) << "it may not run elsewhere";
  EXPECT_NE(machine.workload("a").cpus, cpus("0-1,4-5"));
}

TEST(LevelsOverTime, AShortBurstMakesNoHomeWider) {
  Machine machine(two_domains());
  machine.service("web", 2, [](double at) { return at < 20 || at >= 22 ? 1 : 7; });
  machine.actions_in(60);
  EXPECT_EQ(machine.workload("web").cpus, cpus("0-1,4-5"));
}

TEST(LevelsOverTime, NoiseAboutTheSizeOfItsPlaceMovesNoPin) {
  Machine machine({});
  machine.settings().reserved_cpus = cpus("0");
  machine.read_inexactly();
  machine.service("web", 2, steady(7));
  machine.actions_in(10);
  EXPECT_EQ(machine.actions_in(300), 0U);
}

TEST(LevelsOverTime, ANewServiceTakesCoresForTwoSecondsAtLeast) {
  Machine machine({});
  machine.batch(1);
  machine.tick();
  machine.service("web", 4, steady(0.1));
  EXPECT_EQ(findings(machine.tick()).best_effort.domains.at(0).cores, 1);
  EXPECT_EQ(machine.actions_in(1), 0U);
  EXPECT_EQ(machine.actions_in(10), 2U) << "one core at a time";
}

TEST(LevelsOverTime, CoresOfADomainThatServicesLeftComeBackWhateverHappensElsewhere) {
  Machine machine(two_domains());
  machine.batch(1);
  machine.service("web", 2, turns(3, 5));
  machine.actions_in(60);
  machine.service("new", 6, steady(0)).allowed_cpus = cpus("2-3,6-7");
  machine.tick();
  ASSERT_FALSE(of_domain(machine.topology(), 1).is_subset_of(machine.workload("batch0").cpus));
  machine.stop("new");
  machine.actions_in(30);
  const CpuSet& pin = machine.workload("batch0").cpus;
  EXPECT_TRUE(pin.empty() || of_domain(machine.topology(), 1).is_subset_of(pin)) << pin.to_string();
}

TEST(LevelsOverTime, AServiceThatCrashesInALoopCostsFewWrites) {
  for (const int half_s : {1, 2, 5}) {
    Machine machine(two_domains());
    machine.batch(1);
    machine.service("web", 1, steady(1));
    machine.actions_in(60);
    std::size_t actions = 0;
    for (int loop = 0; loop < 20; ++loop) {
      machine.service("crash", 4, steady(0.5));
      actions += machine.actions_in(half_s);
      machine.stop("crash");
      actions += machine.actions_in(half_s);
    }
    EXPECT_LE(actions, 60U) << half_s;
  }
}

TEST(LevelsOverTime, AnOscillatingUseCostsLessThanAWriteEachTick) {
  for (const double half_s : {1., 2., 3., 5., 10., 20.}) {
    Machine machine({.cores_per_llc = 64});
    machine.batch(1);
    machine.service("web", 1, turns(77, half_s));
    machine.actions_in(60);
    EXPECT_LE(machine.actions_in(200), 150U) << half_s;
  }
}

HostShape any_shape(testing::Draws& draws) {
  return {.sockets = draws.number(1, 2),
          .llcs_per_socket = draws.number(1, 3),
          .cores_per_llc = draws.number(1, 5),
          .threads_per_core = draws.number(1, 2)};
}

// Hosts, loads, hotplug and other levels, as they come.
RC_GTEST_PROP(LevelsOverTime, EveryTickKeepsTheRules, ()) {
  testing::Draws draws(*testing::any_seed());
  const HostShape shape = any_shape(draws);
  Machine machine(shape);
  const auto all = static_cast<int>(machine.topology().all().size());
  InterferenceSettings& settings = machine.settings();
  if (draws.chance(0.3)) settings.be_min_cpus = draws.number(1, all + 2);
  if (draws.chance(0.3)) settings.reserved_cpus = {draws.number(0, all - 1)};
  if (draws.chance(0.05)) settings.reserved_cpus = machine.topology().all();
  if (draws.chance(0.5)) settings.reserved = Reserved::shared;
  machine.batch(draws.number(1, 3));
  const auto load = [&]() -> Load {
    const double cores = draws.fraction() * all;
    if (draws.chance(0.4)) return steady(cores);
    return turns(cores, draws.number(1, 10));
  };
  const auto start = [&] {
    Workload made = testing::latency_sensitive(fmt::format("s{}", draws.number(0, 7)), draws.number(0, 4));
    made.isolation.reset();
    if (draws.chance(0.2)) made.vcpus.reset();
    machine.run(std::move(made), load());
  };
  for (int i = draws.number(1, 8); i > 0; --i) start();
  for (int tick = 0; tick < 60; ++tick) {
    if (draws.chance(0.1)) start();
    if (draws.chance(0.1)) machine.stop(fmt::format("s{}", draws.number(0, 7)));
    if (draws.chance(0.03)) settings.isolation = draws.chance(0.5) ? Isolation::shared : Isolation::vcpus;
    if (draws.chance(0.03)) {
      auto list = testing::cpus_of(shape);
      for (model::Cpu& cpu : list) cpu.online = cpu.cpu == 0 || draws.chance(0.8);
      machine.on(model::Topology::make(list).value());
    }
    expect_rules_kept(machine, settings, machine.tick());
  }
}

// Two machines with the same loads: a placement between two ticks of one, though nothing arrived, changes
// nothing there, and no tick after it.
RC_GTEST_PROP(LevelsOverTime, APlacementOfNothingNewChangesNoPlan, ()) {
  testing::Draws draws(*testing::any_seed());
  const HostShape shape = any_shape(draws);
  Machine placing(shape);
  Machine ticking(shape);
  const auto all = static_cast<int>(placing.topology().all().size());
  if (draws.chance(0.5)) placing.settings().isolation = ticking.settings().isolation = Isolation::vcpus;
  placing.batch(2);
  ticking.batch(2);
  for (int tick = 0; tick < 40; ++tick) {
    if (tick == 0 || draws.chance(0.2)) {
      const Load load = turns(draws.fraction() * all, draws.number(1, 10));
      Workload made = testing::latency_sensitive(fmt::format("s{}", draws.number(0, 5)), draws.number(0, 4));
      made.isolation.reset();
      placing.run(made, load);
      ticking.run(made, load);
    }
    const model::Plan plan = placing.tick();
    RC_ASSERT(plan.actions == ticking.tick().actions);
    RC_ASSERT(placing.place({}).actions.empty());
  }
}

// A service that arrives between two ticks takes vCPUs from best-effort work and from nobody else: owners
// keep theirs, and nobody is on another's. A pin that has become invalid may leave the vCPUs that it takes.
RC_GTEST_PROP(LevelsOverTime, APlacementTakesNoVcpuFromAnOwner, ()) {
  testing::Draws draws(*testing::any_seed());
  const HostShape shape = any_shape(draws);
  Machine machine(shape);
  const auto all = static_cast<int>(machine.topology().all().size());
  machine.batch(2);
  const auto start = [&] {
    Workload made = testing::latency_sensitive(fmt::format("s{}", draws.number(0, 7)), draws.number(0, 4));
    if (draws.chance(0.5)) made.isolation = Isolation::shared;
    const std::string id = made.id;
    machine.run(std::move(made), turns(draws.fraction() * all, draws.number(1, 10)));
    return id;
  };
  const auto owners = [&] {
    std::map<std::string, CpuSet> pins;
    for (const Workload& it : machine.workloads()) {
      const bool owns = it.workload_class == model::WorkloadClass::latency_sensitive && !it.shares;
      if (owns && !it.cpus.empty()) pins.emplace(it.id, it.cpus);
    }
    return pins;
  };
  start();
  bool invalid = false;  // some pin may be, from now on
  for (int tick = 0; tick < 40; ++tick) {
    machine.tick();
    if (!draws.chance(0.3)) continue;
    invalid = invalid || draws.chance(0.3);
    if (invalid && draws.chance(0.5)) machine.settings().reserved_cpus = {draws.number(0, all - 1)};
    for (int i = invalid ? draws.number(0, 3) : 0; i > 0; --i)
      machine.resize(fmt::format("s{}", draws.number(0, 7)), draws.number(0, 4));
    const std::string id = start();
    auto before = owners();
    before.erase(id);
    machine.place({id});
    auto now = owners();
    for (const auto& [one, pin] : now) {
      for (const auto& [other, pin_of_other] : now) RC_ASSERT(one == other || !pin.intersects(pin_of_other));
    }
    for (const auto& [other, pin] : before) {
      const CpuSet& pin_now = machine.workload(other).cpus;
      RC_ASSERT(pin_now == pin || (invalid && (pin - pin_now).intersects(machine.workload(id).cpus)));
    }
    const auto placed = now.extract(id);
    if (placed.empty()) continue;
    for (const Workload& it : machine.workloads()) {
      if (it.workload_class != model::WorkloadClass::best_effort) continue;
      RC_ASSERT(!it.cpus.empty() && !it.cpus.intersects(placed.mapped()));
    }
  }
}

// Once all uses stand still, nothing is written.
RC_GTEST_PROP(LevelsOverTime, ASteadyUseCostsNoWrites, ()) {
  testing::Draws draws(*testing::any_seed());
  Machine machine({.sockets = draws.number(1, 2),
                   .llcs_per_socket = draws.number(1, 3),
                   .cores_per_llc = draws.number(1, 5),
                   .threads_per_core = draws.number(1, 2)});
  const auto all = static_cast<int>(machine.topology().all().size());
  if (draws.chance(0.3)) machine.settings().be_min_cpus = draws.number(1, all);
  if (draws.chance(0.3)) machine.settings().reserved_cpus = {draws.number(0, all - 1)};
  machine.batch(2);
  for (int i = draws.number(1, 20); i > 0; --i)
    machine.service(fmt::format("s{}", i), draws.number(0, 4),
                    steady(draws.fraction() * draws.fraction() * all));
  machine.actions_in(200);
  RC_ASSERT(machine.actions_in(40) == 0U);
}

}  // namespace berth::policies
