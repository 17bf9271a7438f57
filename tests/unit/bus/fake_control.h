// SPDX-License-Identifier: Apache-2.0
// A daemon that records the requests it gets.
#pragma once

#include "daemon/ledger/log_filter.h"
#include "daemon/serve/control.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace berth::test {

class FakeControl final : public daemon::Control {
 public:
  std::string status_json() override {
    return R"({"schema":"berth.status/1","mode":"observe","tick":{"interval_s":0.05},"sampling":{"history":7},)"
           R"("interference":{"learn":true}})";
  }
  std::string workloads_json() override {
    ++lists;
    return listed;
  }
  std::string topology_json() override { return topology; }
  std::string snapshot_json() override { return snapshot; }
  std::string snapshot_since_json(double since) override {
    asked_since.push_back(since);
    return ticks.empty() ? snapshot_json() : ticks[std::min(asked_since.size(), ticks.size()) - 1];
  }
  std::string plan_json() override {
    if (plan_throws) throw std::runtime_error("no plan today");
    return R"({"schema":"berth.plan/1","host":"node-a","time":0,"actions":[],"findings":{}})";
  }
  std::string log_json(std::size_t limit) override {
    return R"({"schema":"berth.log/1","entries":[],"limit":)" + std::to_string(limit) + "}";
  }
  model::Result<std::string> find_log_json(const std::map<std::string, std::string>& filter,
                                           std::size_t limit) override {
    if (const auto parsed = daemon::parse_filter(filter); !parsed) return model::fail(parsed.error());
    searches.emplace_back(filter, limit);
    return log_found;
  }

  model::Result<std::string> explain_json(const std::string& subject) override {
    if (!views.contains(subject)) return model::fail(model::ErrorKind::gone, subject + ": no such thing");
    return R"({"schema":"berth.explain/1","subject":")" + subject + "\"}";
  }

  std::string metrics_text() override { return metrics; }

  // The waits grow by 10 ms with each question.
  model::Result<std::string> blame(const std::string& service) override {
    if (service != "web" && !views.contains(service))
      return model::fail(model::ErrorKind::gone, service + ": no such service");
    blamed.push_back(service);
    const auto count = static_cast<double>(blamed.size());
    const bool counts = blamed.size() > 1;
    return R"({"schema":"berth.blame/1","service":")" + service + R"(","time":)" +
           std::to_string(100 + count) + R"(,"since":)" + (counts ? "100" : "null") +
           R"(,"problem":null,"ends_in_s":600,"workloads":["a/web"],)" +
           R"("waited_ms":0,"culprits":[{"kind":"best-effort","name":"a/hog","ms":)" +
           std::to_string(10 * count) + R"(},{"kind":"own","name":null,"ms":5}]})";
  }

  model::Result<void> set_mode(std::string_view mode) override {
    if (mode != "observe" && mode != "enforce") {
      return model::fail(model::ErrorKind::invalid_input, "there is no mode \"" + std::string(mode) + "\"");
    }
    mode_now = mode;
    return {};
  }
  model::Result<void> set_workload(const std::string& id,
                                   const std::map<std::string, std::string>& values) override {
    if (!views.contains(id)) return model::fail(model::ErrorKind::gone, id + ": there is no such workload");
    const auto vcpus = values.find("vcpus");
    if (vcpus != values.end() && vcpus->second.find_first_not_of("0123456789") != std::string::npos) {
      return model::fail(model::ErrorKind::invalid_input, "vcpus: not a number");
    }
    settings[id] = values;
    return {};
  }
  model::Result<void> report_progress(const std::string& id, double fraction) override {
    if (!views.contains(id)) return model::fail(model::ErrorKind::gone, id + ": there is no such workload");
    if (!(fraction >= 0 && fraction <= 1)) {
      return model::fail(model::ErrorKind::invalid_input, "progress: not from 0 to 1");
    }
    progress[id] = fraction;
    ++reports;
    return {};
  }
  std::optional<std::string> workload_of(pid_t pid, uid_t uid) const override {
    if (home_of_all) return home_of_all;
    const auto found = homes.find({pid, uid});
    return found == homes.end() ? std::nullopt : std::optional(found->second);
  }
  model::Result<std::string> evict(const std::string& id) override {
    if (!views.contains(id)) return model::fail(model::ErrorKind::gone, id + ": there is no such workload");
    if (views.at(id).workload_class != "best-effort") {
      return model::fail(model::ErrorKind::refused, id + ": it is latency-sensitive");
    }
    evicted.push_back(id);
    return std::string("d-0123456789ab");
  }
  model::Result<std::string> admit(const std::string& request, double hold_s) override {
    if (request.find('{') == std::string::npos)
      return model::fail(model::ErrorKind::invalid_input, "the request: no JSON");
    asked.emplace_back(request, hold_s);
    return admission;
  }
  std::string reservations_json() override { return reservations; }
  model::Result<std::string> cancel_reservation(const std::string& id) override {
    if (id != "job")
      return model::fail(model::ErrorKind::gone, id + ": there is no reservation with this id");
    cancelled.push_back(id);
    return std::string("d-0123456789ab");
  }
  std::string profiles_json() override { return R"({"schema":"berth.profiles/1","profiles":[]})"; }
  std::string models_json() override { return R"({"schema":"berth.models/1","models":[]})"; }
  model::Result<void> import_profiles(const std::string& profiles) override {
    imported.push_back(profiles);
    return {};
  }
  model::Result<void> forget_profile(const std::string& service) override {
    if (service != "web") return model::fail(model::ErrorKind::gone, service + ": nothing is learned");
    forgotten.push_back(service);
    return {};
  }
  model::Result<std::string> restore() override {
    ++restores;
    return std::string(R"({"schema":"berth.restore/1"})");
  }
  model::Result<void> reload() override { return model::fail(model::ErrorKind::unavailable, refusal); }

  model::Result<std::string> begin_trial(const daemon::TrialCaller& caller, const std::string& a,
                                         const std::string& b) override {
    trials.push_back({caller, a, b});
    return std::string(R"({"schema":"berth.trial-begin/1","differs":[]})");
  }
  model::Result<void> use_trial_side(const std::string& caller, std::string_view side,
                                     double lease_s) override {
    if (trials.empty() || trials.back().caller.key != caller)
      return model::fail(model::ErrorKind::gone, "you lead no trial");
    sides.emplace_back(side, lease_s);
    if (on_side) on_side(sides.back().first);
    return {};
  }
  model::Result<void> end_trial(const std::string& caller, bool keep) override {
    if (trials.empty() || trials.back().caller.key != caller)
      return model::fail(model::ErrorKind::gone, "you lead no trial");
    kept.push_back(keep);
    return {};
  }
  void caller_left(const std::string& caller) override { callers_left.push_back(caller); }

  std::string version() const override { return "1.2.3"; }
  std::string mode() const override { return mode_now; }
  std::optional<double> score_node() const override { return score; }
  daemon::WorkloadCounts counts() const override { return counts_now; }
  std::string best_effort_cpus() const override { return pool; }
  model::Advertised advertised() const override { return said; }
  std::vector<daemon::WorkloadView> workloads() const override {
    std::vector<daemon::WorkloadView> all;
    for (const auto& [id, view] : views) all.push_back(view);
    return all;
  }
  std::optional<daemon::WorkloadView> workload(const std::string& id) const override {
    const auto found = views.find(id);
    if (found == views.end()) return std::nullopt;
    return found->second;
  }
  std::string log_level() const override { return level; }
  model::Result<void> set_log_level(std::string_view value) override {
    level = value;
    return {};
  }

  daemon::WorkloadView& add(const std::string& id) {
    daemon::WorkloadView& view = views[id];
    view.id = id;
    view.service = "web";
    view.workload_class = "latency-sensitive";
    view.kind = "systemd-service";
    view.matched_by = "berth.toml:3";
    view.vcpus = 4;
    return view;
  }

  std::string topology =
      R"({"schema":"berth.topology/1","cpus":[{"cpu":0,"core":0,"llc":0,"numa":0,"socket":0}]})";
  std::string snapshot =
      R"({"schema":"berth.snapshot/1","host":"node-a","topology":{"cpus":[{"cpu":0,"core":0,"numa":0,"socket":0}]},"workloads":[]})";
  std::string metrics =
      "# HELP berth_build_info \"quoted\"\n# TYPE berth_build_info gauge\nberth_build_info 1\n";
  std::string listed = R"({"schema":"berth.workloads/1"})";
  std::string log_found = R"({"schema":"berth.log/1","entries":[]})";  // in the log
  std::vector<std::pair<std::map<std::string, std::string>, std::size_t>> searches;
  std::vector<std::string> blamed;  // what was asked about
  std::size_t lists = 0;            // calls of workloads_json()
  std::string mode_now = "observe";
  std::optional<double> score;
  daemon::WorkloadCounts counts_now;
  std::string pool = "0-7";
  model::Advertised said;
  std::map<std::string, daemon::WorkloadView> views;
  std::string level = "info";
  std::string refusal = "the disk is on fire";  // of a reload
  bool plan_throws = false;
  std::vector<std::string> ticks;   // answers to questions for a snapshot since a time; the last one stays
  std::vector<double> asked_since;  // these questions
  int restores = 0;
  std::string admission = R"({"schema":"berth.admission/1"})";
  std::vector<std::pair<std::string, double>> asked;  // requests for admission
  std::string reservations =
      R"({"schema":"berth.reservations/1","host":"node-a","time":1,"reservations":[]})";
  std::vector<std::string> cancelled;
  std::vector<std::string> imported;
  std::vector<std::string> forgotten;
  std::map<std::string, std::map<std::string, std::string>> settings;
  std::map<std::string, double> progress;
  int reports = 0;  // of progress
  struct Trial {
    daemon::TrialCaller caller;
    std::string a;
    std::string b;
  };
  std::vector<Trial> trials;
  std::vector<std::pair<std::string, double>> sides;  // with the lease
  std::function<void(const std::string& side)> on_side;
  std::vector<bool> kept;  // ends of trials
  std::vector<std::string> callers_left;
  std::vector<std::string> evicted;
  std::optional<std::string> home_of_all;
  std::map<std::pair<pid_t, uid_t>, std::string> homes;  // workload of a process and user
};

}  // namespace berth::test
