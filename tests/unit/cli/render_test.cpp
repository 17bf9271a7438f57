// SPDX-License-Identifier: Apache-2.0
#include "cli/render.h"

#include "cli/render_plan.h"
#include "topology/discover.h"

#include <algorithm>
#include <optional>
#include <sstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::cli {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

namespace {

Document status() {
  return Document::parse(R"({"schema":"berth.status/1","version":"0.1.0","host":"node-a","mode":"observe",
    "started":1000,"tick":{"count":3600,"interval_s":1.0,"last_wall_ms":4.0,"mean_cpu_ms":2.5},
    "sampling":{"configured_interval_s":0.5,"max_cpu":0.005,"cpu":0.0049,"bpf_cpu":0.0004,"read_cpu_ms":4.5,
      "figures":[{"figure":"run-time","way":"sched-switch","available":true,"detail":""},
                 {"figure":"hardware-counters","way":"none","available":false,"detail":"no PMU"}]},
    "capabilities":[{"name":"cgroup-v2","available":true,"detail":"/sys/fs/cgroup"},
                    {"name":"cpuset-controller","available":false,"detail":"not enabled; pins are not possible"}],
    "workloads":{"latency-sensitive":3,"best-effort":5,"left_alone":1},"score_node":0.0825,
    "best_effort_cpus":"6-7","undo_records":4,"stragglers":3,"relocations":1,
    "held_limits":{"extended":2,"lent":4,"preempted":0},"memory_rss_bytes":15728640,
    "config":{"file":"/etc/berth/berth.toml","loaded":1000,"error":null},"last_actions":[]})");
}

template <typename Render>
std::string text_of_render(Render render) {
  std::ostringstream out;
  render(out);
  return out.str();
}

std::string shown(const Document& document) {
  return text_of_render([&](std::ostream& out) { render_status(out, document, 4600, {}); });
}

}  // namespace

TEST(RenderStatus, SaysWhatANewcomerNeeds) {
  const std::string text = shown(status());
  EXPECT_THAT(text, HasSubstr("berthd 0.1.0 on node-a"));
  EXPECT_THAT(text, HasSubstr("changes nothing (berthctl mode enforce)"));
  EXPECT_THAT(text, HasSubstr("1 h 0 min, 3600 ticks"));
  EXPECT_THAT(text, HasSubstr("15.0 MiB"));
  EXPECT_THAT(text, HasSubstr("3 latency-sensitive, 5 best-effort, 1 left alone"));
  EXPECT_THAT(text, HasSubstr("0.0825"));
  EXPECT_THAT(text, HasSubstr("3, of which 1 should run elsewhere"));
  EXPECT_THAT(text, HasSubstr("2 extended, 4 lent, 0 preempted"));
  EXPECT_THAT(text, HasSubstr("vCPUs 6-7"));
  EXPECT_THAT(text, HasSubstr("yes  cgroup-v2"));
  EXPECT_THAT(text,
              HasSubstr("0.0049 cores of at most 0.0050: 0.0004 at context switches, 4.50 ms each reading, "
                        "so ticks come every 1.0 s"));
  EXPECT_THAT(text, HasSubstr("yes  run-time             by sched-switch\n"));
  EXPECT_THAT(text, HasSubstr("no   hardware-counters    no PMU\n"));
  EXPECT_THAT(text, HasSubstr("no   cpuset-controller    not enabled; pins are not possible"));
  EXPECT_THAT(text, HasSubstr("Last actions: none yet"));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
}

TEST(RenderStatus, SaysHowManyPlacementsThereWereBetweenTicks) {
  Document document = status();
  document["placement"] = {{"count", 0}, {"last_wall_ms", 0.0}, {"mean_cpu_ms", 0.0}};
  EXPECT_THAT(shown(document), Not(HasSubstr("placement")));
  document["placement"] = {{"count", 1}, {"last_wall_ms", 4.0}, {"mean_cpu_ms", 3.25}};
  EXPECT_THAT(shown(document), HasSubstr("1 placement between ticks, 3.25 ms"));
}

TEST(RenderStatus, SaysWhichInterruptsStay) {
  Document document = status();
  EXPECT_THAT(shown(document), Not(HasSubstr("interrupts")));
  document["interrupts"] = {{"cpus", "2-3"}, {"moved", 12},          {"refused", 3},
                            {"others", 1},   {"irqbalance", "told"}, {"problem", nullptr}};
  EXPECT_THAT(shown(document),
              AllOf(HasSubstr("vCPUs 2-3: 12 moved"), HasSubstr("3 stay"), HasSubstr("1 stay")));
  document["interrupts"]["problem"] = "Read-only file system";
  EXPECT_THAT(shown(document), HasSubstr("Read-only file system"));
}

TEST(RenderStatus, OneOfAThingIsOne) {
  Document document = status();
  document["undo_records"] = 1;
  document["tick"]["count"] = 1;
  document["overridden_workloads"] = 1;
  EXPECT_THAT(shown(document), HasSubstr("1 changed attribute\n"));
  EXPECT_THAT(shown(document), HasSubstr(", 1 tick of"));
  EXPECT_THAT(shown(document), HasSubstr("overridden    1 workload (berthctl set)"));
  EXPECT_THAT(shown(status()), Not(HasSubstr("overridden")));
}

TEST(RenderStatus, NamesServicesWithoutVcpusAndUnusedRules) {
  Document document = status();
  document["unplaceable"].push_back(
      {{"workload", "system.slice/db.service"}, {"reason", "no domain is free"}});
  document["config"]["unused_rules"].push_back({{"rule", "/etc/berth/berth.toml:7"},
                                                {"match", "system.slice/dv.service"},
                                                {"reason", "no cgroup matches"}});
  const std::string text = shown(document);
  EXPECT_THAT(text, HasSubstr("\n  no vCPUs      system.slice/db.service: no domain is free\n"));
  EXPECT_THAT(text,
              HasSubstr("\n  unused rule   \"system.slice/dv.service\" (/etc/berth/berth.toml:7): no cgroup "
                        "matches\n"));
  EXPECT_THAT(shown(status()), Not(HasSubstr("no vCPUs")));
  EXPECT_THAT(shown(status()), Not(HasSubstr("unused rule")));
}

TEST(RenderStatus, SaysWhoOwnsVcpusAndHowThatIsKnown) {
  Document document = status();
  document["owned_cpus"].push_back({{"owner", "rt"},
                                    {"cpus", "6-7"},
                                    {"how", "partition"},
                                    {"reason", "vCPUs 6-7 belong to rt: it is a partition"}});
  EXPECT_THAT(shown(document), HasSubstr("\n  owned         vCPUs 6-7 belong to rt: it is a partition\n"));
  EXPECT_THAT(shown(status()), Not(HasSubstr("owned")));
}

TEST(RenderStatus, AServiceThatIsWarnedOfIsNamedOnceWithTheNumberThatWouldDo) {
  Document document = status();
  document["unplaceable"].push_back({{"workload", "web"}, {"reason", "uses more than its vcpus"}});
  document["warnings"].push_back(
      {{"workload", "web"}, {"cause", "use"}, {"vcpus", 5}, {"reason", "vcpus = 5 would do"}});
  const std::string text = shown(document);
  EXPECT_THAT(text, HasSubstr("\n  warning       web: vcpus = 5 would do\n"));
  EXPECT_THAT(text, Not(HasSubstr("no vCPUs")));
}

TEST(RenderStatus, AServiceWithoutVcpusIsNamedThoughItIsWarnedOfThePriority) {
  Document document = status();
  document["unplaceable"].push_back({{"workload", "web"}, {"reason", "no domain is free"}});
  document["warnings"].push_back(
      {{"workload", "web"}, {"cause", "priority"}, {"vcpus", nullptr}, {"reason", "it competes"}});
  const std::string text = shown(document);
  EXPECT_THAT(text, HasSubstr("\n  warning       web: it competes\n"));
  EXPECT_THAT(text, HasSubstr("\n  no vCPUs      web: no domain is free\n"));
}

TEST(RenderStatus, NamesReservedVcpusThatTheHostLacks) {
  Document document = status();
  document["absent_reserved_cpus"] = "20-23";
  EXPECT_THAT(shown(document), HasSubstr("reserved_cpus names vCPUs 20-23, which this host does not have"));
  EXPECT_THAT(shown(status()), Not(HasSubstr("reserved")));
}

TEST(RenderStatus, SaysWhetherBestEffortWorkIsKeptOffReservedVcpus) {
  Document document = status();
  document["reserved_cpus"] = "0-1";
  EXPECT_THAT(shown(document),
              HasSubstr("\n  reserved      vCPUs 0-1, which best-effort work is kept off\n"));
  document["reserved_cpus"] = "";
  document["shared_reserved_cpus"] = "0-7";
  EXPECT_THAT(shown(document), HasSubstr("best-effort work runs on vCPUs 0-7 all the same"));
}

TEST(RenderStatus, ManyServicesWithoutVcpusAreCounted) {
  Document document = status();
  for (int i = 1; i <= 7; ++i)
    document["unplaceable"].push_back({{"workload", "w" + std::to_string(i)}, {"reason", "none is free"}});
  const std::string text = shown(document);
  EXPECT_THAT(text,
              HasSubstr("  no vCPUs      w5: none is free\n                and 2 more (berthctl plan)\n"));
  EXPECT_THAT(text, Not(HasSubstr("w6")));
}

TEST(RenderStatus, AdvisesToEnforceOnlyWhereThatIsPossible) {
  Document document = status();
  document["config"]["mode"] = "observe";
  EXPECT_THAT(shown(document), Not(HasSubstr("configured ")));
  document["enforce_problem"] = "no cpuset controller";
  EXPECT_THAT(shown(document), Not(HasSubstr("berthctl mode enforce")));
  document["config"]["mode"] = "enforce";
  EXPECT_THAT(shown(document), HasSubstr("configured    enforce, not possible: no cpuset controller"));
}

TEST(RenderStatus, SaysWhereTheFileAsksForAnotherMode) {
  Document document = status();
  document["config"]["mode"] = "enforce";
  EXPECT_THAT(shown(document), HasSubstr("configured    enforce, but switched since by berthctl"));
  EXPECT_THAT(shown(document), HasSubstr("berthctl mode enforce"));
}

TEST(RenderStatus, ATrialIsNamedWithItsCaller) {
  Document document = status();
  EXPECT_THAT(shown(document), Not(HasSubstr("  trial ")));
  document["trial"] = {{"kept", false}, {"pid", 123},   {"user", 0},
                       {"side", "b"},   {"begun", 100}, {"until", 4e9}};
  EXPECT_THAT(shown(document), HasSubstr("trial         side b, led by process 123 of user 0, until 2096-"));
  document["trial"]["kept"] = true;
  EXPECT_THAT(shown(document), HasSubstr("the settings of side b are kept until berthctl reload"));
}

TEST(RenderStatus, AFailedReloadIsShown) {
  Document document = status();
  document["config"]["error"] = "/etc/berth/berth.toml:3:1: unknown key";
  EXPECT_THAT(shown(document), HasSubstr("rejected: /etc/berth/berth.toml:3:1: unknown key"));
}

TEST(RenderStatus, AnotherVersionsDocumentIsShownAsFarAsItGoes) {
  EXPECT_THAT(shown(Document::parse(R"({"mode":7,"tick":[],"capabilities":{"a":1},"score_node":"x"})")),
              HasSubstr("score         -"));
}

TEST(RenderList, DashesStandForWhatIsNotKnown) {
  const auto document = Document::parse(R"({"workloads":[
    {"id":"system.slice/web.service","service":"web","class":"latency-sensitive","vcpus":4,"pinned_cpus":"0-3",
     "cpu_cores":1.234,"memory_bytes":1048576,"pressure":0.31,"score":0.08,"cpu_quota":null,"progress":0.5,
     "managed":true,"left_alone_reason":null},
    {"id":"machine.slice/x.scope","service":"x","class":"best-effort","vcpus":null,"pinned_cpus":"","cpu_cores":null,
     "memory_bytes":null,"pressure":null,"score":null,"cpu_quota":2,"progress":null,"managed":false,
     "left_alone_reason":"read-only"}]})");
  const std::string text = text_of_render([&](std::ostream& out) { render_list(out, document, {}); });
  EXPECT_EQ(text,
            "WORKLOAD                  CLASS              SERVICE  VCPUS  PINNED   CPU   MEMORY  PRESSURE  "
            "SCORE  QUOTA  "
            "PROGRESS\n"
            "system.slice/web.service  latency-sensitive  web          4  0-3     1.23  1.0 MiB      0.31  "
            "0.080      -  "
            "    50 %\n"
            "machine.slice/x.scope *   best-effort        x            -  -          -        -         -    "
            "  -   2.00  "
            "       -\n"
            "\n* left alone:\n  machine.slice/x.scope: read-only\n");
}

TEST(RenderList, ALowPriorityIsAColumnWhereAnyWorkHasOne) {
  auto document = Document::parse(R"({"workloads":[{"id":"a","cpu_priority":"idle"},{"id":"b"}]})");
  const auto text = [&document] {
    return text_of_render([&](std::ostream& out) { render_list(out, document, {}); });
  };
  EXPECT_THAT(text(), HasSubstr("  PRIORITY\n"));
  EXPECT_THAT(text(), HasSubstr("  idle"));
  document["workloads"][0]["cpu_priority"] = nullptr;
  EXPECT_THAT(text(), Not(HasSubstr("PRIORITY")));
}

TEST(RenderList, LevelAndHomeAreColumnsWhereAnyServiceHasNoUsualLevel) {
  auto document = Document::parse(
      R"({"workloads":[{"id":"a","isolation":"shared","home":"0-1"},{"id":"b","isolation":"vcpus","home":null}]})");
  const auto text = [&document] {
    return text_of_render([&](std::ostream& out) { render_list(out, document, {}); });
  };
  EXPECT_THAT(text(), HasSubstr("  ISOLATION  HOME\n"));
  EXPECT_THAT(text(), HasSubstr("  shared     0-1\n"));
  document["workloads"][0]["isolation"] = "vcpus";
  EXPECT_THAT(text(), Not(HasSubstr("ISOLATION")));
}

TEST(RenderList, NoWorkloadsIsSaid) {
  const std::string text =
      text_of_render([](std::ostream& out) { render_list(out, Document::object(), {}); });
  EXPECT_THAT(text, HasSubstr("No workloads"));
}

TEST(RenderOutlook, SaysWhatItSeesWouldDoAndWhatIsNext) {
  const auto outlook = [](const char* status, const char* plan, std::size_t cpus) {
    return text_of_render([&](std::ostream& out) {
      render_outlook(out, Document::parse(status), Document::parse(plan), cpus, {});
    });
  };
  EXPECT_EQ(
      outlook(R"({"mode":"observe","workloads":{"latency-sensitive":0,"best-effort":0}})", "null", 4),
      "  sees          4 vCPUs, and no workload: no rule, mark or QoS class says which services matter\n"
      "  would do      it would change nothing: there is nothing to decide\n"
      "  next          berthctl suggest    a first /etc/berth/berth.toml, from what runs here\n\n");
  EXPECT_THAT(outlook(R"({"mode":"observe","workloads":{},"config":{"unused_rules":[{},{}]}})", "null", 4),
              AllOf(HasSubstr("no workload: 2 rules of the configuration apply to nothing here\n"),
                    HasSubstr("next          systemd-cgls ")));
  const char* busy =
      R"({"mode":"observe","enforce_problem":null,"workloads":{"latency-sensitive":1,"best-effort":2}})";
  const char* plan =
      R"({"actions":[{"kind":"pin"},{"kind":"pin"},{"kind":"set-cpu-quota"},{"kind":"advertise"}]})";
  EXPECT_THAT(outlook(busy, plan, 1),
              HasSubstr("1 vCPU, 1 service to keep fast, 2 batch workloads to fit in between\n"));
  EXPECT_THAT(outlook(busy, plan, 1), HasSubstr("it would make 2 pins, 1 CPU quota\n"));
  EXPECT_THAT(outlook(busy, plan, 1), HasSubstr("then berthctl mode enforce\n"));
  EXPECT_THAT(outlook(busy, R"({"actions":[]})", 1), HasSubstr("everything is as it should be\n"));
  EXPECT_THAT(
      outlook(R"({"mode":"observe","enforce_problem":"no cpuset","workloads":{"best-effort":2}})", plan, 0),
      HasSubstr("it cannot enforce on this host: no cpuset\n"));
  EXPECT_THAT(outlook(R"({"mode":"enforce","undo_records":1,"workloads":{"best-effort":2}})", "null", 2),
              HasSubstr("does          it holds 1 changed attribute, and puts it back when it stops\n"));
  EXPECT_THAT(outlook("null", "null", 0), HasSubstr("this host, and no workload"));
}

TEST(RenderLog, AnEntryHasItsReasonAndError) {
  const auto log = Document::parse(R"({"entries":[{"time":0,"decision":"d-1","mode":"enforce","kind":"pin",
    "workload":"web","attribute":"cpuset.cpus","old":"","new":"0-3","policy":"interference","reason":"placed on 0-3",
    "result":"failed","error":"Device busy"}]})");
  const std::string text =
      text_of_render([&](std::ostream& out) { render_log(out, list_of(log, "entries"), {}); });
  EXPECT_THAT(text, HasSubstr("failed    berth could not pin web to vCPUs 0-3\n"));
  EXPECT_THAT(text, HasSubstr("interference d-1: placed on 0-3\n"));
  EXPECT_THAT(text, HasSubstr("Device busy\n"));
}

TEST(RenderLog, AReasonWithoutAPolicyStandsAlone) {
  const auto log = Document::parse(R"({"entries":[{"time":0,"decision":"","mode":"observe","kind":"restore",
    "workload":"web","attribute":"cpuset.cpus","old":"0-3","new":"","policy":"","reason":"berthd stops",
    "result":"restored","error":null},
    {"time":0,"kind":"pin","policy":"interference","decision":"","reason":"moved"},
    {"time":0,"kind":"pin","policy":"interference","decision":"d-2","reason":""},
    {"time":0,"kind":"pin","policy":"","decision":"","reason":""}]})");
  const std::string text =
      text_of_render([&](std::ostream& out) { render_log(out, list_of(log, "entries"), {}); });
  EXPECT_THAT(text, HasSubstr("\n    berthd stops\n"));
  EXPECT_THAT(text, HasSubstr("\n    interference: moved\n"));
  EXPECT_THAT(text, HasSubstr("\n    interference d-2\n"));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 7);
}

TEST(RenderRestore, CountsWhatBecameOfEverything) {
  const auto report =
      Document::parse(R"({"restored":[{"workload":"web","attribute":"cpuset.cpus","before":"0-3",
    "after":""}],"left":[{"workload":"db","attribute":"cpuset.cpus","reason":"somebody set 1"}],"gone":["a","b"]})");
  const std::string text = text_of_render([&](std::ostream& out) { render_restore(out, report, {}); });
  EXPECT_EQ(text,
            "restored  web  cpuset.cpus: 0-3 -> (none)\n"
            "left      db  cpuset.cpus: somebody set 1\n"
            "1 put back, 1 left as they are, 2 gone with their workloads\n");
}

TEST(RenderPlan, ShowsOwnersScoresAndReasons) {
  model::Snapshot snapshot;
  snapshot.host = "node-a";
  snapshot.topology = topology::from_synthetic("package:1 l3:1 core:2 pu:2").value();
  snapshot.pending.emplace_back().id = "new-1";
  model::Plan plan;
  plan.host = "node-a";
  plan.actions.push_back(
      {model::Set{"system.slice/web@1.service", model::CpuSet{0, 1}}, "interference", "d-1", "quiet there"});
  auto& findings = plan.findings.interference.emplace();
  findings.weighting = "overlap";
  findings.search = "window";
  findings.score_node = 0.125;
  findings.instances["system.slice/web@1.service"].cpus = {0, 1};
  findings.instances["new-1"].cpus = {2};
  findings.unplaceable.push_back({"system.slice/huge.service", "asks 64 of 4 vCPUs"});
  findings.warnings.push_back({.workload = "system.slice/huge.service",
                               .cause = model::WarningCause::place,
                               .vcpus = 2,
                               .reason = "vcpus = 2 would find one"});
  findings.best_effort = {.cpus = {3}, .utilisation = 0.5};
  const std::string text = text_of_render([&](std::ostream& out) { render_plan(out, plan, snapshot, {}); });
  EXPECT_THAT(text, HasSubstr("Plan for node-a"));
  EXPECT_THAT(text, HasSubstr(" web@1 "));
  EXPECT_THAT(text, HasSubstr("new-1 (not running yet)"));
  EXPECT_THAT(text, HasSubstr("system.slice/huge.service: asks 64 of 4 vCPUs"));
  EXPECT_THAT(text, HasSubstr("Warnings\n  system.slice/huge.service: vcpus = 2 would find one"));
  EXPECT_THAT(text, HasSubstr("vCPUs 3, 50 % busy"));
  EXPECT_THAT(text, HasSubstr("  score 0.1250; 0: no workload disturbs another\n"
                              "  weighting overlap, search window\n"));
  EXPECT_THAT(
      text, HasSubstr("pin system.slice/web@1.service -> vCPUs 0-1\n      interference d-1: quiet there\n"));
}

namespace {

std::string shown_score(double pinned, std::optional<double> unpinned) {
  model::Snapshot snapshot;
  snapshot.topology = topology::from_synthetic("package:1 core:2 pu:1").value();
  model::Plan plan;
  auto& findings = plan.findings.interference.emplace();
  findings.score_node = pinned;
  findings.score_unpinned = unpinned;
  return text_of_render([&](std::ostream& out) { render_plan(out, plan, snapshot, {}); });
}

}  // namespace

TEST(RenderPlan, ShowsHomesAndTheCoresBesideThem) {
  model::Snapshot snapshot;
  snapshot.topology = topology::from_synthetic("package:1 l3:2 core:2 pu:1").value();
  model::Plan plan;
  auto& findings = plan.findings.interference.emplace();
  findings.shared["web"] = {
      .home = {1}, .cpus = {2, 3}, .cores = 1.5, .score = 0.25, .reason = "at home in LLC 1, as before"};
  findings.best_effort = {.cpus = {0, 1, 3}, .domains = {{1, {.cpus = {3}, .cores = 1}}}};
  const std::string text = text_of_render([&](std::ostream& out) { render_plan(out, plan, snapshot, {}); });
  EXPECT_THAT(text, HasSubstr("web       1     2-3      1.50  0.2500  at home in LLC 1, as before\n"));
  EXPECT_THAT(text, HasSubstr("  beside services in domain 1: 1 core, vCPUs 3\n"));
  EXPECT_THAT(text, HasSubstr("  homes            | web\n"));
}

TEST(RenderPlan, SaysWhichVcpusAreReserved) {
  model::Snapshot snapshot;
  snapshot.topology = topology::from_synthetic("package:1 core:4 pu:1").value();
  model::Plan plan;
  auto& findings = plan.findings.interference.emplace();
  findings.best_effort = {.cpus = {2, 3}, .reserved = {0, 1}, .utilisation = 0.5};
  const auto shown = [&] {
    return text_of_render([&](std::ostream& out) { render_plan(out, plan, snapshot, {}); });
  };
  EXPECT_THAT(shown(), HasSubstr("vCPUs 2-3, 50 % busy\n  not vCPUs 0-1, which are reserved\n"));
  findings.best_effort = {.cpus = {0, 1, 2, 3}, .utilisation = 0.5};
  findings.shared_reserved = {0, 1, 2, 3};
  EXPECT_THAT(shown(), HasSubstr("vCPUs 0-3, 50 % busy\n  reserved ones too, as berth may use no others\n"));
}

TEST(RenderPlan, SetsTheScoreAgainstThatOfTheSameLoadUnpinned) {
  const std::string text = shown_score(0.041, 0.118);
  EXPECT_THAT(text, HasSubstr("score 0.0410 pinned, 0.1180 if left unpinned (x0.35);"));
  EXPECT_THAT(text, Not(HasSubstr("worse")));
}

TEST(RenderPlan, SaysWherePinningIsTheWorse) {
  const std::string text = shown_score(0.125, 0.1);
  EXPECT_THAT(text, HasSubstr("score 0.1250 pinned, 0.1000 if left unpinned (x1.25);"));
  EXPECT_THAT(text, HasSubstr("Pinned is worse here"));
}

TEST(RenderPlan, SaysHowGoodThePlacementIsAndWhichInstancesMove) {
  model::Snapshot snapshot;
  snapshot.topology = topology::from_synthetic("package:1 core:2 pu:1").value();
  model::Plan plan;
  auto& findings = plan.findings.interference.emplace();
  findings.weighting = "overlap";
  findings.search = "optimal";
  findings.score_node = 0.1;
  findings.lower_bound = 0.096;
  findings.gap = 0.04;
  findings.search_reason = "at most 4 % of it can be saved\x1b";
  findings.moved = {"web-1"};
  const std::string text = text_of_render([&](std::ostream& out) { render_plan(out, plan, snapshot, {}); });
  EXPECT_THAT(text, HasSubstr("weighting overlap, search optimal, lower bound 0.0960, gap 4 %\n"));
  EXPECT_THAT(text, HasSubstr("  at most 4 % of it can be saved"));
  EXPECT_THAT(text, Not(HasSubstr("saved\x1b")));
  EXPECT_THAT(text, HasSubstr("  web-1 moves to a better place\n"));
}

TEST(RenderPlan, GivesNoRatioToNothing) {
  EXPECT_THAT(shown_score(0, 0.0), HasSubstr("score 0.0000 pinned, 0.0000 if left unpinned;"));
  EXPECT_THAT(shown_score(0, std::nullopt), HasSubstr("score 0.0000; 0: no workload disturbs another"));
}

namespace {

std::string shown_stragglers(const model::StragglerFindings& findings) {
  model::Snapshot snapshot;
  model::Plan plan;
  plan.time = 1000;
  plan.findings.straggler = findings;
  return text_of_render([&](std::ostream& out) { render_plan(out, plan, snapshot, {}); });
}

}  // namespace

TEST(RenderPlan, ShowsWhoIsLateAndWhoPays) {
  model::StragglerFindings findings;
  model::StragglerTask& web = findings.tasks["web"];
  web.straggler = true;
  web.reason = "finishes 100.0 s after its deadline";
  web.v1 = 0.002;
  web.v2 = 0.001;
  web.finish = 1400;
  web.deadline = 1300;
  web.extension = {.cpu_cores = 2, .memory_bytes = 1 << 30};
  web.granted = {.cpu_cores = 1.5, .memory_bytes = 0};
  findings.tasks["done"].reason = "not judged: no deadline";
  findings.needed = web.extension;
  findings.idle = {.cpu_cores = 0.5, .memory_bytes = 0};
  using Kind = model::LimitMove::Kind;
  findings.moves = {{Kind::reclaim, "batch", {.cpu_cores = 1, .memory_bytes = 0}, "r"},
                    {Kind::preempt, "other", {.cpu_cores = 0, .memory_bytes = 1 << 20}, "r"},
                    {Kind::recall, "third", {.cpu_cores = 2, .memory_bytes = 0}, "r"}};
  findings.relocate = {{"web", {.cpu_cores = 0.5, .memory_bytes = 0}}};
  EXPECT_THAT(
      shown_stragglers(findings),
      HasSubstr(
          "Tasks with deadlines\n"
          "  TASK  BEFORE %/MIN  NOW %/MIN       FINISHES      DEADLINE                LACKS        GETS\n"
          "  done             -          -              -             -                    -           -\n"
          "  web          12.00       6.00  in 6 min 40 s  in 5 min 0 s  2.00 cores, 1.0 GiB  1.50 cores\n"
          "  done: not judged: no deadline\n"
          "  web: finishes 100.0 s after its deadline\n"
          "  2.00 cores are needed, 0.50 are idle\n"
          "  1.0 GiB of memory are needed, 0 B are idle\n"
          "  batch lends 1.00 cores\n"
          "  other gives up 1.0 MiB\n"
          "  third wants back 2.00 cores\n"
          "  web still lacks 0.50 cores, which this node does not have; another node may have it\n"));
}

TEST(RenderPlan, ShowsNothingOfStragglersWhereThereAreNoTasks) {
  EXPECT_THAT(shown_stragglers({}), Not(HasSubstr("deadline")));
}

TEST(RenderPlan, ATaskThatStandsStillNeverFinishes) {
  model::StragglerFindings findings;
  findings.tasks["web"].v2 = 0.0;
  EXPECT_THAT(shown_stragglers(findings), HasSubstr("never"));
}

TEST(RenderStatus, WhatTheNodeAdvertisesIsShownWithWhatIsForBestEffortWork) {
  auto document = status();
  document["advertised"] = Document::parse(R"({
    "cpu":{"state":"schedule","factor":1.2,"utilisation":0.52,"best_effort":14.25},
    "memory":{"state":"no-schedule","factor":1,"utilisation":0.9,"best_effort":2147483648}})");
  EXPECT_THAT(shown(document),
              AllOf(HasSubstr("schedule, 52 % in use, x1.20 advertised, 14.2 cores for best-effort work\n"),
                    HasSubstr("no-schedule, 90 % in use, x1.00 advertised, 2.0 GiB for best-effort work\n")));
  // An earlier berthd does not say it.
  document["advertised"]["cpu"].erase("best_effort");
  EXPECT_THAT(shown(document), HasSubstr("x1.20 advertised\n"));
  document["advertised"]["memory"]["best_effort"] = 1e300;
  EXPECT_THAT(shown(document), HasSubstr("for best-effort work\n"));
}

TEST(RenderStatus, GpusAreShownWithWhoUsesThemAndWhatIsWrong) {
  auto document = status();
  document["gpus"] = Document::parse(R"([
    {"id":"0000:3b:00.0","vendor":"nvidia","model":"NVIDIA H100","numa":1,"memory_bytes":85899345920,
     "memory_used_bytes":2147483648,"utilisation":0.4,"healthy":true,"holder":"batch/x","workloads":["batch/x"]},
    {"id":"0000:5e:00.0","vendor":"nvidia","model":"NVIDIA H100","numa":null,"memory_bytes":null,
     "healthy":false,"problem":"it is lost\u001b[2J","holder":null,"workloads":["a","b"],"other_processes":1},
    {"id":"0000:03:00.0","vendor":"intel","model":"","memory_bytes":100,"healthy":true,"other_processes":2}])");
  const auto text = text_of_render([&](std::ostream& out) { render_status(out, document, 2000, {}); });
  EXPECT_THAT(text,
              HasSubstr("\nGPUs\n"
                        "  0000:3b:00.0  NVIDIA H100, NUMA node 1, 2.0 GiB of 80.0 GiB in use, 40 % busy\n"
                        "      held by batch/x\n"
                        "  0000:5e:00.0  NVIDIA H100, memory not known\n"
                        "      unhealthy: it is lost?[2J\n"
                        "      shared by a, b and 1 process of no workload\n"
                        "  0000:03:00.0  intel, 100 B\n"
                        "      used by 2 processes of no workload\n"));
  EXPECT_THAT(text_of_render([](std::ostream& out) { render_status(out, status(), 2000, {}); }),
              Not(HasSubstr("GPU")));
}

TEST(RenderStatus, LinksOfGpusAreATable) {
  auto document = status();
  document["gpus"] = Document::parse(R"([
    {"id":"0000:3b:00.0","model":"A","healthy":true,"links":{"0000:5e:00.0":"NV","0000:86:00.0":"SYS","x":"?"}},
    {"id":"0000:5e:00.0","model":"A","healthy":true,"links":{"0000:3b:00.0":"NV"}},
    {"id":"0000:60:00.0","model":"A","healthy":true,"links":7},
    {"id":"0000:86:00.0","model":"A","healthy":true}])");
  const auto text = text_of_render([&](std::ostream& out) { render_status(out, document, 2000, {}); });
  EXPECT_THAT(text, HasSubstr("\n\n     LINKS           0   1    2\n"
                              "  0  0000:3b:00.0    X  NV  SYS\n"
                              "  1  0000:5e:00.0   NV   X    -\n"
                              "  2  0000:86:00.0  SYS   -    X\n"));
  document["gpus"][0].erase("links");
  document["gpus"][1].erase("links");
  EXPECT_THAT(text_of_render([&](std::ostream& out) { render_status(out, document, 2000, {}); }),
              Not(HasSubstr("LINKS")));
}

TEST(RenderList, GpusAreAColumnWhereAnybodyUsesOne) {
  const auto document = Document::parse(R"({"workloads":[{"id":"a","gpus":["0000:3b:00.0","0000:5e:00.0"]},
                                                         {"id":"b","gpus":[]}]})");
  const auto text = text_of_render([&](std::ostream& out) { render_list(out, document, {}); });
  EXPECT_THAT(text, HasSubstr("  GPUS\n"));
  EXPECT_THAT(text, HasSubstr("  0000:3b:00.0 0000:5e:00.0\n"));
}

}  // namespace berth::cli
