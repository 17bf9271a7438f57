// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cgroup/recognise.h"
#include "daemon/enforce/leaves.h"
#include "model/path.h"
#include "spark/process.h"
#include "tests/unit/cgroup/fake_tree.h"
#include "tests/unit/spark/fake_proc.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/xattr.h>

namespace berth::daemon {

using Told = std::vector<std::string>;

// systemd as far as scopes go: makes them when the test says so.
class FakeScopes final : public cgroup::ScopeMaker {
 public:
  model::Result<void> start_scope(const cgroup::Scope& scope) override {
    ++calls;
    if (refuses) return model::fail(*refuses, "systemd: no");
    asked.push_back(scope);
    return {};
  }
  model::Result<cgroup::UnitTraits> traits(const std::string& /*unit*/,
                                           const std::set<model::Attribute>& /*held*/) override {
    ++calls;
    if (silent) return model::fail(model::ErrorKind::transient, "systemd: no answer");
    return is;
  }
  model::Result<void> stop_unit(const std::string& unit,
                                const std::function<bool()>& /*is_same_run*/) override {
    ++calls;
    stopped.push_back(unit);
    if (refuses) return model::fail(*refuses, "systemd: no");
    return {};
  }

  std::optional<model::ErrorKind> refuses;
  bool silent = false;
  int calls = 0;
  std::vector<cgroup::Scope> asked;
  cgroup::UnitTraits is;
  std::vector<std::string> stopped;
};

class LeavesTest : public testing::Test {
 protected:
  // A Worker (4) and two executors (7 and 9) in one cgroup. Executor 7 has started process 8.
  void set_up(const std::string& id) {
    worker = id;
    tree.make(std::string(model::parent_path(id)));
    tree.make(id);
    tree.write(id, "cgroup.procs", "");
    add(4, spark::test::worker(), 40, 1);
    add(7, spark::test::standalone_executor("app-1", "0"), 70, 4);
    add(9, spark::test::standalone_executor("app-2", "0"), 90, 4);
    proc.add_plain(8, "python3", id, 7);
    enter(id, 8);
    target.cgroup = *cgroup::Cgroup::open(tree.root(), id);
    target.identity.id = id;
    target.systemd_unit = systemd ? cgroup::systemd_unit(id) : "";
    target.kind = cgroup::kind_of(id);
    found[id] = target;
    model::Workload workload;
    workload.id = id;
    workload.spared = "its cgroup is shared";
    snapshot.workloads = {workload};
    leaves.emplace(
        Leaves::Options{.cgroup_root = tree.root(),
                        .proc_root = proc.root(),
                        .scopes = [this]() -> cgroup::ScopeMaker* { return no_bus ? nullptr : &scopes; },
                        .systemd_runs = systemd,
                        .monotonic = [this] { return now; },
                        .hands = hands()});
  }
  void add(int pid, const std::vector<std::string>& arguments, std::uint64_t started, int parent) {
    proc.add(pid, arguments, worker, started, parent);
    enter(worker, pid);
    const auto process = *spark::find_process(proc.root(), pid);
    spark::Member member{.pid = pid,
                         .name = process.what.name,
                         .cgroup = worker,
                         .kind = process.what.kind,
                         .identity = {},
                         .started = started};
    if (member.kind == spark::ProcessKind::executor)
      member.identity = {process.what.app, model::SparkRole::executor, process.what.executor};
    seen.members.push_back(member);
  }
  void enter(const std::string& path, int pid) const {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(tree.root())) {
      if (!std::filesystem::exists(entry.path() / "cgroup.procs")) continue;
      const auto other = std::filesystem::relative(entry.path(), tree.root()).string();
      auto pids = tree.read(other, "cgroup.procs");
      const auto line = std::to_string(pid) + "\n";
      if (const auto at = ("\n" + pids).find("\n" + line); at != pids.npos)
        tree.write(other, "cgroup.procs", pids.erase(at, line.size()));
    }
    tree.write(path, "cgroup.procs", tree.read(path, "cgroup.procs") + std::to_string(pid) + "\n");
    proc.write(pid, "cgroup", "0::/" + path + "\n");
  }
  cgroup::LeafHands hands() {
    return {.look = cgroup::kernel_hands(proc.root()).look,
            .move = [this](const cgroup::Cgroup& to, pid_t pid) -> model::Result<void> {
              if (unmovable.contains(pid)) return model::fail(model::ErrorKind::permission, "not that one");
              moves.push_back(std::to_string(pid) + " " + to.path());
              enter(to.path(), pid);
              if (on_move) on_move(pid);
              return {};
            },
            .make = [this](const std::filesystem::path& directory) -> model::Result<void> {
              const auto path = std::filesystem::relative(directory, tree.root()).string();
              tree.make(path);
              tree.write(path, "cgroup.procs", "");
              return {};
            },
            .remove = [this](const std::filesystem::path& directory) -> model::Result<void> {
              const auto path = std::filesystem::relative(directory, tree.root()).string();
              if (!pids(path).empty()) return model::fail(model::Error::from_errno(EBUSY, "removing"));
              std::filesystem::remove_all(directory);
              return {};
            }};
  }
  Told tick() {
    Told told;
    for (const LogEntry& entry :
         leaves->tick({.seen = seen, .found = found, .snapshot = snapshot, .holdings = holdings}, 1000)) {
      told.push_back(entry.kind + " " + entry.workload + " " + entry.result +
                     (entry.error ? ": " + *entry.error : ""));
    }
    return told;
  }
  // As discovery does.
  void find_leaf(const std::string& path) {
    cgroup::FoundWorkload leaf = target;
    leaf.cgroup = *cgroup::Cgroup::open(tree.root(), path);
    leaf.identity.id = path;
    leaf.leaf_of = worker;
    found[path] = leaf;
    model::Workload workload;
    workload.id = path;
    snapshot.workloads.push_back(workload);
    std::ranges::sort(snapshot.workloads, {}, &model::Workload::id);
  }
  std::string problem() const {
    const auto told = leaves->problems().find(worker);
    return told == leaves->problems().end() ? "" : told->second;
  }
  std::string place(int pid) const {
    const auto spot = cgroup::kernel_hands(proc.root()).look(pid);
    return spot ? spot->path : "";
  }
  // systemd has made the scope.
  void make_scope() {
    tree.make(kScope);
    tree.write(kScope, "cgroup.procs", "");
    enter(kScope, 7);
  }
  model::Workload& whole() { return *model::find_workload(snapshot, worker); }
  std::string pids(const std::string& path) const { return tree.read(path, "cgroup.procs"); }
  bool exists(const std::string& path) const { return std::filesystem::exists(tree.root() / path); }

  static constexpr const char* kFirst = "spark/worker.berth-executor-7-70";
  static constexpr const char* kSecond = "spark/worker.berth-executor-9-90";
  static constexpr const char* kUnit = "system.slice/spark-worker.service";
  static constexpr const char* kScope = "system.slice/spark-worker.service.berth-executor-7-70.scope";

  bool systemd = false;
  bool no_bus = false;
  std::string worker;
  cgroup::test::FakeTree tree;
  spark::test::FakeProc proc;
  spark::Observation seen;
  cgroup::FoundWorkload target;
  std::map<std::string, cgroup::FoundWorkload> found;
  model::Snapshot snapshot;
  Holdings holdings;
  FakeScopes scopes;
  double now = 5000;
  std::set<pid_t> unmovable;
  std::vector<std::string> moves;
  std::function<void(pid_t)> on_move;
  std::optional<Leaves> leaves;
};

}  // namespace berth::daemon
