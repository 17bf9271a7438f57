// SPDX-License-Identifier: Apache-2.0
#include "daemon/report/metrics.h"

#include "daemon/daemon.h"
#include "model/openmetrics.h"
#include "tests/paths.h"
#include "tests/unit/daemon/fake_node.h"
#include "tests/unit/daemon/report/exposition.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/wait.h>

namespace berth::daemon {
namespace {

using test::Family;
using test::parse_exposition;
using Families = std::map<std::string, Family>;

StatusReport busy_daemon() {
  StatusReport status;
  status.version = "1.2.3";
  status.mode = "enforce";
  status.ticks = {.count = 3600, .last_wall_ms = 2.5, .total_cpu_ms = 4500};
  status.woken_by_pressure = 7;
  status.placements = {.count = 3, .last_wall_ms = 9, .total_cpu_ms = 250};
  status.capabilities = {{"cgroup-v2", true, "/sys/fs/cgroup"}, {"llc", false, "not said"}};
  status.workloads = {3, 5, 1};
  model::Gpu gpu;
  gpu.id = "0000:3b:00.0";
  gpu.memory_bytes = 100;
  gpu.memory_used_bytes = 80;
  gpu.utilisation = 0.4;
  gpu.other_processes = 2;
  status.gpus = {{gpu, {"web"}}};
  status.score_node = 0.0825;
  status.best_effort_domains = {{0, {.cpus = {0, 1, 4, 5}, .cores = 2}}, {3, {.cpus = {}, .cores = 0}}};
  status.undo_records = 4;
  status.held = {2, 3, 1};
  status.interrupts = InterruptsReport{
      .off = {2, 3}, .moved = 12, .refused = 3, .others = 1, .irqbalance = "told", .problem = {}};
  status.stragglers = 3;
  status.relocations = 1;
  status.oversell.emplace();
  status.memory_rss_bytes = 15'728'640;
  status.process_cpu_s = 5.5;
  status.started = 1'795'252'270;
  status.decisions = {{{"pin", "applied"}, 7}, {{"pin", "failed"}, 1}};
  status.sampling.cpu = 0.003;
  status.sampling.bpf_cpu = 0.001;
  return status;
}

WorkloadFigures known_workload() {
  WorkloadFigures workload;
  workload.id = "system.slice/web@1.service";
  workload.service = "web";
  workload.workload_class = model::WorkloadClass::latency_sensitive;
  workload.isolation = model::Isolation::vcpus;
  workload.cpu_cores = 1.5;
  workload.cpu_time_s = 90.5;
  workload.memory_bytes = 1'073'741'824;
  workload.vcpus = 4;
  workload.pinned_vcpus = 4;
  workload.score = 0.17;
  workload.cpu_pressure_some_avg10 = 12.5;
  workload.service_pressure = 0.4;
  workload.cpu_quota_cores = 4;
  workload.original_cpu_quota_cores = 2;
  workload.cpu_throttled = 0.5;
  workload.memory_high_bytes = 8192;
  workload.original_memory_high_bytes = 4096;
  workload.progress = 0.25;
  workload.runq_latency_us = 120;
  workload.runq_latency_p50_us = 20;
  workload.llc_mpki = 3.5;
  return workload;
}

double only(const Families& families, const std::string& name) {
  const auto& samples = families.at(name).samples;
  EXPECT_EQ(samples.size(), 1U) << name;
  return samples.at(0).value;
}

TEST(Metrics, SayWhatTheDaemonIsAndDoes) {
  auto status = busy_daemon();
  const auto families = parse_exposition(metrics_text(status, {}));
  EXPECT_EQ(only(families, "berth_build_info"), 1);
  EXPECT_EQ(families.at("berth_build_info").samples.at(0).labels.at("version"), "1.2.3");
  EXPECT_EQ(only(families, "berth_enforcing"), 1);
  EXPECT_EQ(only(families, "berth_ticks_total"), 3600);
  EXPECT_EQ(only(families, "berth_ticks_woken_by_pressure_total"), 7);
  EXPECT_EQ(only(families, "berth_placements_total"), 3);
  EXPECT_EQ(only(families, "berth_placement_cpu_seconds_total"), 0.25);
  EXPECT_EQ(only(families, "berth_tick_cpu_seconds_total"), 4.5);
  EXPECT_EQ(only(families, "berth_last_tick_duration_seconds"), 0.0025);
  EXPECT_EQ(only(families, "process_resident_memory_bytes"), 15'728'640);
  EXPECT_EQ(only(families, "process_cpu_seconds_total"), 5.5);
  EXPECT_EQ(only(families, "process_start_time_seconds"), 1'795'252'270);
  EXPECT_EQ(only(families, "berth_node_score"), 0.0825);
  EXPECT_EQ(only(families, "berth_undo_records"), 4);
  EXPECT_EQ(only(families, "berth_stragglers"), 3);
  EXPECT_EQ(only(families, "berth_relocations"), 1);
  EXPECT_EQ(only(families, "berth_left_alone_workloads"), 1);
  EXPECT_EQ(only(families, "berth_config_error"), 0);
  EXPECT_EQ(only(families, "berth_sampling_cpu_cores"), 0.003);
  EXPECT_EQ(only(families, "berth_sampling_bpf_cpu_cores"), 0.001);
  status.mode = "observe";
  status.config_error = "b.toml:1:1: no";
  const auto others = parse_exposition(metrics_text(status, {}));
  EXPECT_EQ(only(others, "berth_enforcing"), 0);
  EXPECT_EQ(only(others, "berth_config_error"), 1);
}

TEST(Metrics, CountWorkloadsByClassAndNameCapabilities) {
  const auto families = parse_exposition(metrics_text(busy_daemon(), {}));
  std::map<std::string, double> classes;
  for (const auto& sample : families.at("berth_workloads").samples)
    classes[sample.labels.at("class")] = sample.value;
  EXPECT_EQ(classes, (std::map<std::string, double>{{"latency-sensitive", 3}, {"best-effort", 5}}));
  std::map<std::string, double> held;
  for (const auto& sample : families.at("berth_held_limits").samples)
    held[sample.labels.at("cause")] = sample.value;
  std::map<std::string, double> interrupts;
  for (const auto& sample : families.at("berth_interrupts").samples)
    interrupts[sample.labels.at("place")] = sample.value;
  EXPECT_EQ(interrupts, (std::map<std::string, double>{{"moved", 12}, {"refused", 3}, {"others", 1}}));
  EXPECT_EQ(held,
            (std::map<std::string, double>{{"extended", 2}, {"lent", 3}, {"preempted", 1}, {"lifted", 0}}));
  std::map<std::string, double> decisions;
  for (const auto& sample : families.at("berth_decisions_total").samples)
    decisions[sample.labels.at("kind") + " " + sample.labels.at("result")] = sample.value;
  EXPECT_EQ(decisions, (std::map<std::string, double>{{"pin applied", 7}, {"pin failed", 1}}));
  std::map<std::string, double> capabilities;
  for (const auto& sample : families.at("berth_capability").samples) {
    capabilities[sample.labels.at("name")] = sample.value;
  }
  EXPECT_EQ(capabilities, (std::map<std::string, double>{{"cgroup-v2", 1}, {"llc", 0}}));
}

TEST(Metrics, CountWhatBestEffortWorkMayUseInEachDomain) {
  const auto families = parse_exposition(metrics_text(busy_daemon(), {}));
  std::map<std::string, double> vcpus;
  for (const auto& sample : families.at("berth_best_effort_vcpus").samples)
    vcpus[sample.labels.at("domain")] = sample.value;
  EXPECT_EQ(vcpus, (std::map<std::string, double>{{"0", 4}, {"3", 0}}));
}

TEST(Metrics, NameTheIsolationOfServicesAlone) {
  const auto service = known_workload();
  auto batch = service;
  batch.id = "batch.slice";
  batch.isolation = std::nullopt;
  const auto families = parse_exposition(metrics_text(busy_daemon(), {batch, service}));
  EXPECT_EQ(only(families, "berth_workload_isolation_info"), 1);
  const auto& labels = families.at("berth_workload_isolation_info").samples.at(0).labels;
  EXPECT_EQ(labels.at("isolation"), "vcpus");
  EXPECT_EQ(labels.at("workload"), service.id);
}

TEST(Metrics, AreInBaseUnits) {
  const auto families = parse_exposition(metrics_text(busy_daemon(), {known_workload()}));
  const std::map<std::string, double> expected{{"cpu_cores", 1.5},
                                               {"cpu_usage_seconds_total", 90.5},
                                               {"memory_bytes", 1'073'741'824},
                                               {"vcpus", 4},
                                               {"pinned_vcpus", 4},
                                               {"score", 0.17},
                                               {"cpu_pressure_ratio", 0.125},
                                               {"service_pressure_ratio", 0.4},
                                               {"cpu_quota_cores", 4},
                                               {"cpu_quota_original_cores", 2},
                                               {"cpu_throttled_ratio", 0.5},
                                               {"memory_high_bytes", 8192},
                                               {"memory_high_original_bytes", 4096},
                                               {"progress_ratio", 0.25},
                                               {"runq_latency_seconds", 0.00012},
                                               {"runq_latency_p50_seconds", 0.00002},
                                               {"llc_mpki", 3.5}};
  const std::map<std::string, std::string> labels{
      {"workload", "system.slice/web@1.service"}, {"service", "web"}, {"class", "latency-sensitive"}};
  std::size_t found = 0;
  for (const auto& [name, family] : families) {
    if (!name.starts_with("berth_workload_") || name.ends_with("_info")) continue;
    ++found;
    EXPECT_DOUBLE_EQ(only(families, name), expected.at(name.substr(15))) << name;
    EXPECT_EQ(family.samples.at(0).labels, labels) << name;
  }
  EXPECT_EQ(found, expected.size());
}

TEST(Metrics, AnUnknownFigureIsAbsent) {
  WorkloadFigures unknown;
  unknown.id = "batch/x";
  unknown.service = "x";
  auto status = busy_daemon();
  status.score_node = std::nullopt;
  const auto families = parse_exposition(metrics_text(status, {unknown}));
  EXPECT_FALSE(families.contains("berth_node_score"));
  std::set<std::string> known;
  for (const auto& [name, family] : families) {
    if (name.starts_with("berth_workload_")) known.insert(name);
  }
  EXPECT_EQ(known, std::set<std::string>{"berth_workload_pinned_vcpus"}) << "it is known that there are none";
  const auto both = parse_exposition(metrics_text(status, {unknown, known_workload()}));
  EXPECT_EQ(both.at("berth_workload_cpu_cores").samples.size(), 1U);
  EXPECT_EQ(both.at("berth_workload_pinned_vcpus").samples.size(), 2U);
}

TEST(Metrics, LabelsAreEscaped) {
  auto workload = known_workload();
  workload.id = "a\\b\"c\nd{e}=,f\xc3\xa9 g";
  const auto families = parse_exposition(metrics_text(busy_daemon(), {workload}));
  EXPECT_EQ(families.at("berth_workload_score").samples.at(0).labels.at("workload"), workload.id);
}

TEST(Metrics, AreNamedInTheContractAllOfThem) {
  std::ifstream file(BERTH_DOCS "/contract/metrics.md");
  std::stringstream text;
  text << file.rdbuf();
  const std::string contract = text.str();
  std::set<std::string> promised;
  const std::regex name("`((?:berth|process)_[a-z0-9_]+)");
  for (std::sregex_iterator it(contract.begin(), contract.end(), name), end; it != end; ++it)
    promised.insert((*it)[1]);
  std::set<std::string> made;
  for (const auto& [family, unused] : parse_exposition(metrics_text(busy_daemon(), {known_workload()}))) {
    made.insert(family);
  }
  EXPECT_EQ(promised, made);
}

TEST(Metrics, PassPromtool) {
  if (std::system("command -v promtool >/dev/null") != 0) GTEST_SKIP() << "there is no promtool here";
  auto odd = known_workload();
  odd.id = "a\\b\"c\nd";
  FILE* promtool = popen("promtool check metrics 2>&1", "w");
  ASSERT_NE(promtool, nullptr);
  const std::string text = metrics_text(busy_daemon(), {known_workload(), odd});
  EXPECT_EQ(std::fwrite(text.data(), 1, text.size(), promtool), text.size());
  EXPECT_EQ(WEXITSTATUS(pclose(promtool)), 0) << text;
}

// By the reader of Prometheus' own client library.
TEST(Metrics, AreValidOpenMetrics) {
  if (std::system("/usr/bin/python3 -c 'import prometheus_client' 2>/dev/null") != 0)
    GTEST_SKIP() << "there is no python3-prometheus-client here";
  auto odd = known_workload();
  odd.id = "a\\b\"c\nd";
  const std::string text = model::openmetrics_text(metrics_text(busy_daemon(), {known_workload(), odd}));
  FILE* reader = popen(
      "/usr/bin/python3 -c 'import sys\n"
      "from prometheus_client.openmetrics.parser import text_string_to_metric_families as read\n"
      "families = {f.name: f for f in read(sys.stdin.read())}\n"
      "ticks = families[\"berth_ticks\"]\n"
      "assert (ticks.type, ticks.samples[0].name) == (\"counter\", \"berth_ticks_total\"), ticks\n"
      "assert families[\"berth_tick_cpu_seconds\"].unit == \"seconds\"\n"
      "scores = {s.labels[\"workload\"] for s in families[\"berth_workload_score\"].samples}\n"
      "assert \"a\\\\b\\\"c\\nd\" in scores, scores\n"
      "' 2>&1",
      "w");
  ASSERT_NE(reader, nullptr);
  EXPECT_EQ(std::fwrite(text.data(), 1, text.size(), reader), text.size());
  EXPECT_EQ(WEXITSTATUS(pclose(reader)), 0) << text;
}

TEST(OpenMetrics, CountersLoseTheirSuffixInMetadataAlone) {
  EXPECT_EQ(model::openmetrics_text("# HELP a_seconds_total Say \"a\" \\\\.\n"
                                    "# TYPE a_seconds_total counter\na_seconds_total 1\n"
                                    "# HELP b_total B\n# TYPE b_total gauge\nb_total{x=\"y\"} 2\n"),
            "# TYPE a_seconds counter\n# UNIT a_seconds seconds\n# HELP a_seconds Say \\\"a\\\" \\\\.\n"
            "a_seconds_total 1\n"
            "# TYPE b_total gauge\n# HELP b_total B\nb_total{x=\"y\"} 2\n# EOF\n");
  EXPECT_EQ(model::openmetrics_text(""), "# EOF\n");
}

TEST(Metrics, OfADaemonAreThoseOfItsLastTick) {
  test::FakeNode node;
  node.configure(std::string("mode = \"enforce\"\n") + test::kMixedLoad);
  node.add_group("web/a");
  node.add_group("batch/x", "0-7");
  double now = 1000;
  auto started = Daemon::start(node.options(), node.settings(), test::fake_clock([&now] { return now; }));
  ASSERT_TRUE(started) << started.error().message();
  auto& daemon = **started;
  for (int i = 1; i <= 3; ++i) {
    node.use_cpu("web/a", 1e-3 * i);
    now += 1;
    daemon.tick();
  }
  const auto families = parse_exposition(daemon.control().metrics_text());
  EXPECT_EQ(only(families, "berth_ticks_total"), 3);
  EXPECT_GT(only(families, "berth_tick_cpu_seconds_total"), 0);
  EXPECT_EQ(only(families, "berth_enforcing"), 1);
  std::map<std::string, double> pinned;
  for (const auto& sample : families.at("berth_workload_pinned_vcpus").samples) {
    pinned[sample.labels.at("workload")] = sample.value;
  }
  EXPECT_EQ(pinned.at("web/a"), 2);
  std::map<std::string, double> cores;
  for (const auto& sample : families.at("berth_workload_cpu_cores").samples) {
    cores[sample.labels.at("workload")] = sample.value;
  }
  const auto listed = nlohmann::json::parse(daemon.control().workloads_json()).at("workloads");
  ASSERT_EQ(listed.size(), cores.size());
  for (const auto& workload : listed) {
    const double wanted = workload.at("cpu_cores");
    EXPECT_NEAR(cores.at(workload.at("id")), wanted, 1e-9 * wanted);
  }
  EXPECT_GT(cores.at("web/a"), 0);
  EXPECT_FALSE(families.contains("berth_workload_runq_latency_seconds")) << "nobody measures it here";
}

}  // namespace
}  // namespace berth::daemon
