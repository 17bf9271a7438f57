// SPDX-License-Identifier: Apache-2.0
// Files of state keep their bytes, so that the next version reads them: each is written, read, and written
// again.
#include "cgroup/undo_journal.h"
#include "daemon/admit/reservations.h"
#include "daemon/ledger/decision_log.h"
#include "daemon/ledger/overrides.h"
#include "daemon/observe/past_demand.h"
#include "daemon/observe/past_usage.h"
#include "daemon/observe/used_shares.h"
#include "model/json.h"
#include "model/snapshot.h"
#include "os/sqlite.h"
#include "tests/temporary_directory.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

namespace berth::daemon {
namespace {

constexpr const char* kBoot = "b007";

class StateFiles : public testing::Test {
 protected:
  // 500 s after a boot at 1,000.
  os::Clock clock() const {
    return os::Clock(
        {.boot = [] { return 500.0; }, .wall = [] { return 1500.0; }, .monotonic = [] { return 500.0; }});
  }
  std::string text(const char* file) const {
    std::ifstream stream(directory.path() / file);
    return {std::istreambuf_iterator<char>(stream), {}};
  }
  berth::test::TemporaryDirectory directory;
  std::optional<std::string> warning;
};

TEST_F(StateFiles, Overrides) {
  const std::string bytes =
      R"({"batch/x":{"cgroup":7,"settings":{"evictable":"true","priority":"-3"}},)"
      R"("web/a":{"cgroup":18446744073709551615,"settings":{"class":"latency-sensitive","deadline":"5min","vcpus":"2"}}})"
      "\n";
  Overrides first(directory.path(), warning);
  ASSERT_TRUE(first.set("web/a", ~std::uint64_t{0},
                        {{"class", "latency-sensitive"}, {"vcpus", "2"}, {"deadline", "5min"}}));
  ASSERT_TRUE(first.set("batch/x", 7, {{"priority", "-3"}, {"evictable", "true"}}));
  EXPECT_EQ(text("overrides.json"), bytes);
  Overrides again(directory.path(), warning);
  EXPECT_EQ(warning, std::nullopt);
  ASSERT_TRUE(again.set("web/b", 1, {}));
  EXPECT_EQ(text("overrides.json"), bytes);
}

TEST_F(StateFiles, Reservations) {
  const std::string bytes =
      R"([{"cpus":"2-3","decision":"d-0123456789ab","gpus":["0000:10:00.0"],"hold_s":120.0,)"
      R"("request":{"class":"best-effort","gpu_exclusive":false,"gpu_memory_bytes":2048,"gpu_model":"*A10","gpus":1,)"
      R"("id":"new-1","memory_request_bytes":4096,"schema":"berth.request/1","service":"train","vcpus":2},)"
      R"("since_boot_s":400.5},)"
      R"({"cpus":"","decision":"","gpus":[],"hold_s":1.0,)"
      R"("request":{"class":"latency-sensitive","id":"new-2","memory_request_bytes":0,"schema":"berth.request/1",)"
      R"("service":"web","vcpus":1},"since_boot_s":499.0}])"
      "\n";
  Reservations first(directory.path(), clock(), warning);
  ASSERT_TRUE(first.hold({.request = {.id = "new-1",
                                      .service = "train",
                                      .workload_class = model::WorkloadClass::best_effort,
                                      .vcpus = 2,
                                      .memory_request_bytes = 4096,
                                      .gpus = 1,
                                      .gpu_memory_bytes = 2048,
                                      .gpu_model = "*A10",
                                      .gpu_exclusive = false},
                          .since = 1400.5,
                          .hold_s = 120,
                          .gpus = {"0000:10:00.0"},
                          .cpus = {2, 3},
                          .decision = "d-0123456789ab"}));
  const Reservation second{
      .request = {.id = "new-2", .service = "web", .vcpus = 1}, .since = 1499, .hold_s = 1};
  ASSERT_TRUE(first.hold(second));
  EXPECT_EQ(text("reservations.json"), bytes);
  Reservations again(directory.path(), clock(), warning);
  EXPECT_EQ(warning, std::nullopt);
  ASSERT_TRUE(again.hold(second));
  EXPECT_EQ(text("reservations.json"), bytes);
}

TEST_F(StateFiles, Demand) {
  const std::string bytes =
      R"({"schema":"berth.demand/1","boot":"b007","readings":[[498.5,1024],[499,9007199254740992]],)"
      R"("eviction_durations":[0.25,30]})"
      "\n";
  model::Snapshot snapshot;
  snapshot.memory_readings = {{1498.5, 1024}, {1499, model::kMaxBytes}};
  snapshot.eviction_durations_s = {0.25, 30};
  ASSERT_TRUE(save_demand(directory.path(), kBoot, clock(), snapshot));
  EXPECT_EQ(text("demand.json"), bytes);
  PastDemand past = take_demand(directory.path(), kBoot, clock(), warning);
  EXPECT_EQ(warning, std::nullopt);
  snapshot.memory_readings = std::move(past.readings);
  snapshot.eviction_durations_s = std::move(past.durations_s);
  ASSERT_TRUE(save_demand(directory.path(), kBoot, clock(), snapshot));
  EXPECT_EQ(text("demand.json"), bytes);
}

TEST_F(StateFiles, Usage) {
  const std::string bytes =
      R"({"schema":"berth.usage/2","boot":"b007","workloads":{"web/a":{"cgroup":7,"usage":[)"
      R"([498,0.5,4096,0.25,120.5,60,1.5],[499,2,null,null,null,null,null]]}}})"
      "\n";
  model::Snapshot snapshot;
  snapshot.workloads.resize(2);
  snapshot.workloads[1].id = "without/samples";
  model::Workload& web = snapshot.workloads[0];
  web.id = "web/a";
  web.usage.push_back({.time = 1498,
                       .cpu_cores = 0.5,
                       .memory_bytes = 4096,
                       .progress = 0.25,
                       .runq_latency_us = 120.5F,
                       .runq_latency_p50_us = 60.0F,
                       .llc_mpki = 1.5F});
  model::UsageSample newest;
  newest.time = 1499;
  newest.cpu_cores = 2;
  web.usage.push_back(newest);
  const auto run = [](const std::string&) { return std::uint64_t{7}; };
  ASSERT_TRUE(save_usage(directory.path(), kBoot, clock(), snapshot, run));
  EXPECT_EQ(text("usage.json"), bytes);
  auto past = take_usage(directory.path(), kBoot, clock(), warning);
  EXPECT_EQ(warning, std::nullopt);
  web.usage = past.at("web/a").usage;
  ASSERT_TRUE(save_usage(directory.path(), kBoot, clock(), snapshot, run));
  EXPECT_EQ(text("usage.json"), bytes);
}

TEST_F(StateFiles, UsedShares) {
  const std::string bytes =
      R"({"before":[[100.0,0.5,0.25]],"boot":"b007","booted":1000.0,"schema":"berth.used-shares/1",)"
      R"("shares":[[1200.0,0.75,1.0]]})"
      "\n";
  std::ofstream(directory.path() / "used_shares.json") << bytes;
  UsedShares read(directory.path(), clock(), kBoot, warning);
  EXPECT_EQ(warning, std::nullopt);
  std::filesystem::remove(directory.path() / "used_shares.json");
  ASSERT_TRUE(read.save());
  EXPECT_EQ(text("used_shares.json"), bytes);
}

// Each table with its columns, and its rows.
std::vector<std::string> dump(const std::filesystem::path& file) {
  auto database = os::Database::open(file, "state");
  EXPECT_TRUE(database);
  const auto texts = [&](const std::string& sql) {
    auto rows = database->prepare(sql.c_str());
    EXPECT_TRUE(rows) << sql;
    std::vector<std::string> lines;
    while (rows->step().value_or(false)) lines.push_back(rows->text(0));
    return lines;
  };
  std::vector<std::string> lines;
  for (const std::string& table :
       texts("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")) {
    const auto columns = texts("SELECT name FROM pragma_table_info('" + table + "')");
    lines.push_back(fmt::format("{}({})", table, fmt::join(columns, " ")));
    for (std::string& row :
         texts(fmt::format("SELECT quote({}) FROM {}", fmt::join(columns, ") || ' ' || quote("), table)))
      lines.push_back(std::move(row));
  }
  return lines;
}

TEST_F(StateFiles, Decisions) {
  const LogEntry entry{.time = 1499,
                       .decision = "d-0123456789ab",
                       .mode = "enforce",
                       .kind = "pin",
                       .workload = "web/a",
                       .attribute = "cpuset.cpus",
                       .old_value = "",
                       .new_value = "0-1",
                       .policy = "interference",
                       .reason = "score 0.1",
                       .result = "failed",
                       .error = "EBUSY"};
  DecisionLog(directory.path(), 1e9, clock(), kBoot).append({entry});
  EXPECT_EQ(
      dump(directory.path() / "decisions.db"),
      (std::vector<std::string>{
          "boots(number id)", "1 'b007'",
          "decisions(id time decision mode kind workload attribute old new policy reason result error boot "
          "since_boot_s user)",
          "1 1499.0 'd-0123456789ab' 'enforce' 'pin' 'web/a' 'cpuset.cpus' '' '0-1' 'interference' "
          "'score 0.1' 'failed' 'EBUSY' 1 500.0 NULL"}));
  EXPECT_EQ(DecisionLog(directory.path(), 1e9, clock(), kBoot).newest(0), std::vector<LogEntry>{entry});
}

TEST_F(StateFiles, UndoJournal) {
  const std::vector<cgroup::UndoRecord> records{
      {"web/a", ~std::uint64_t{0}, "systemd", "web.service", model::CpuSet(), "setting \n",
       model::CpuSet({2, 3}), std::nullopt},
      {"batch/x", 7, "direct", "", cgroup::CpuMax(), "", cgroup::CpuMax{50'000, 100'000},
       cgroup::CpuMax{60'000, 100'000}},
      {"batch/x", 7, "direct", "", model::MemoryHigh(), "", model::MemoryHigh{4096}, std::nullopt},
      {"batch/x", 7, "direct", "", cgroup::CpuIdle{.weight = 50}, "", cgroup::CpuIdle{.idle = true},
       std::nullopt},
      {"web/a", ~std::uint64_t{0}, "direct", "", model::MemoryNodes(), "", model::MemoryNodes{{1}},
       std::nullopt}};
  {
    auto journal = cgroup::UndoJournal::open(directory.path(), kBoot);
    ASSERT_TRUE(journal);
    ASSERT_TRUE((*journal)->record(records));
  }
  EXPECT_EQ(dump(directory.path() / "undo.db"),
            (std::vector<std::string>{
                "boot(id)", "'b007'", "host(name original written previous)", "sqlite_sequence(name seq)",
                "'undo' 5", "undo(seq path cgroup_id attribute owner unit original note written previous)",
                "1 'web/a' -1 'cpuset.cpus' 'systemd' 'web.service' '' 'setting \n' '2-3' NULL",
                "2 'batch/x' 7 'cpu.max' 'direct' '' 'max 100000' '' '50000 100000' '60000 100000'",
                "3 'batch/x' 7 'memory.high' 'direct' '' 'max' '' '4096' NULL",
                "4 'batch/x' 7 'cpu.idle' 'direct' '' '0 50' '' '1' NULL",
                "5 'web/a' -1 'cpuset.mems' 'direct' '' '' '' '1' NULL"}));
  EXPECT_EQ((*cgroup::UndoJournal::open(directory.path(), kBoot))->records(), records);
}

}  // namespace
}  // namespace berth::daemon
