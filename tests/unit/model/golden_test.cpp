// SPDX-License-Identifier: Apache-2.0
// Documents keep their bytes: each line of tests/data/golden is read, and written again as it is. Together
// the lines have every member, and every value of the members that have few. The tables of docs/contract have
// the members of the lists of fields.
#include "model/eviction_json.h"
#include "model/interference_json.h"
#include "model/json.h"
#include "model/placement_json.h"
#include "model/snapshot_json.h"
#include "model/straggler_json.h"
#include "model/topology_json.h"
#include "model/trace.h"
#include "model/usage_json.h"
#include "tests/paths.h"

#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::model {
namespace {

std::vector<std::string> lines_of(const std::string& file) {
  std::ifstream stream(BERTH_GOLDEN "/" + file);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::string text_of(const std::string& file) {
  std::ifstream stream(file);
  return {std::istreambuf_iterator<char>(stream), {}};
}

// Members that a table of the page names and no golden document has.
std::set<std::string> missing(const std::string& page, const std::string& golden) {
  const std::string text = text_of(BERTH_DOCS "/contract/" + page);
  const std::string documents = text_of(BERTH_GOLDEN "/" + golden);
  const std::regex row("\n\\| (`[a-z_0-9]+`(?:, `[a-z_0-9]+`)*) \\|");
  const std::regex name("`([a-z_0-9]+)`");
  std::set<std::string> found;
  const auto rows = std::distance(std::sregex_iterator(text.begin(), text.end(), row), {});
  EXPECT_GT(rows, 10) << page << " has other tables now";
  for (std::sregex_iterator at(text.begin(), text.end(), row), end; at != end; ++at) {
    const std::string names = (*at)[1];
    for (std::sregex_iterator it(names.begin(), names.end(), name); it != std::sregex_iterator(); ++it) {
      if (documents.find('"' + (*it)[1].str() + "\":") == std::string::npos) found.insert((*it)[1]);
    }
  }
  return found;
}

using Names = std::set<std::string>;

// Of the list of fields of a struct.
struct NameTaker {
  static constexpr bool kReads = false;
  Names names;

  void ignore_unknown() {}
  void required(std::string_view name, const auto&...) { names.emplace(name); }
  void optional(std::string_view name, const auto&...) { names.emplace(name); }
  void nullable(std::string_view name, const auto&...) { names.emplace(name); }
  void if_set(std::string_view name, const auto&...) { names.emplace(name); }
  void nullable_if_set(std::string_view name, const auto&...) { names.emplace(name); }
};

// Of several structs together.
template <typename... Struct>
Names names_of(const Struct&... structs) {
  NameTaker taker;
  (fields(taker, structs), ...);
  return taker.names;
}

Names with(Names names, const std::string& more) {
  names.insert(more);
  return names;
}

// The members in the first table of `page` after `place`.
Names table(const std::string& page, const std::string& place) {
  const std::string text = text_of(BERTH_DOCS "/contract/" + page);
  const std::size_t begin = text.find(place);
  EXPECT_NE(begin, std::string::npos) << page << " has no " << place;
  if (begin == std::string::npos) return {};
  const std::regex name("`([a-z_0-9]+)(?:\\[\\])?`");
  std::istringstream lines(text.substr(text.find("\n|---", begin) + 1));
  Names found;
  std::string line;
  for (std::getline(lines, line); std::getline(lines, line) && line.starts_with('|');) {
    const std::string cell = line.substr(0, line.find('|', 1));
    for (std::sregex_iterator it(cell.begin(), cell.end(), name); it != std::sregex_iterator(); ++it)
      found.insert((*it)[1]);
  }
  EXPECT_FALSE(found.empty()) << page << ", " << place;
  return found;
}

TEST(Golden, SnapshotsKeepTheirBytes) {
  const auto lines = lines_of("snapshots.jsonl");
  ASSERT_FALSE(lines.empty());
  for (const std::string& line : lines) {
    const auto parsed = parse_snapshot(line);
    ASSERT_TRUE(parsed) << parsed.error().message();
    EXPECT_THAT(parsed->warnings, testing::IsEmpty());
    EXPECT_EQ(to_json(parsed->snapshot), line);
  }
}

TEST(Golden, PlansKeepTheirBytes) {
  const auto lines = lines_of("plans.jsonl");
  ASSERT_FALSE(lines.empty());
  for (const std::string& line : lines) {
    const auto plan = parse_plan(line);
    ASSERT_TRUE(plan) << plan.error().message();
    EXPECT_EQ(to_json(*plan), line);
  }
}

// A tick later each workload of the one before has another identity, or is gone.
TEST(Golden, ChangesOfTracesKeepTheirBytes) {
  const auto snapshots = lines_of("snapshots.jsonl");
  const auto changes = lines_of("changes.jsonl");
  ASSERT_EQ(changes.size() + 1, snapshots.size());
  for (std::size_t at = 0; at < changes.size(); ++at) {
    const Snapshot before = parse_snapshot(snapshots[at]).value().snapshot;
    Snapshot now = parse_snapshot(snapshots[at + 1]).value().snapshot;
    now.host = before.host;
    now.topology = before.topology;
    now.time = before.time + 1;
    EXPECT_EQ(change_json(before, now).value_or("none"), changes[at]);
  }
}

TEST(Golden, DocumentsHaveEveryMemberOfTheirPage) {
  EXPECT_THAT(missing("snapshot.md", "snapshots.jsonl"), testing::IsEmpty());
  // These are kinds of actions.
  EXPECT_THAT(missing("plan.md", "plans.jsonl"), testing::IsSubsetOf({"advertise", "evict", "pin", "unpin"}));
}

TEST(Golden, TablesNameTheMembersThatAreRead) {
  EXPECT_EQ(table("snapshot.md", "| member of a vCPU |"), names_of(Cpu()));
  EXPECT_EQ(table("snapshot.md", "| member of a GPU |"), with(names_of(Gpu()), "links"));
  EXPECT_EQ(table("snapshot.md", "## `owned_cpus[]`"), names_of(OwnedCpus()));
  EXPECT_EQ(table("snapshot.md", "## `memory`"), names_of(MemoryState()));
  Workload held;
  held.held_cpu.emplace();
  EXPECT_EQ(table("snapshot.md", "## `workloads[]`"), with(names_of(held), "usage"));
  EXPECT_EQ(table("snapshot.md", "| member of a sample |"), names_of(UsageSample()));
  PendingWorkload pending;
  pending.gpus = 1;
  pending.room_cpu_cores = 1;
  EXPECT_EQ(table("snapshot.md", "## `pending[]`"), names_of(pending));
  EXPECT_EQ(table("snapshot.md", "| member of a stage |"), names_of(SparkStage()));
  EXPECT_EQ(table("snapshot.md", "## `best_effort_groups[]`"), names_of(BestEffortGroup()));
  EXPECT_EQ(table("snapshot.md", "## `others[]`"), names_of(OtherGroup()));
}

// They leave out what explains itself.
TEST(Golden, OtherTablesNameMembersThatExist) {
  using testing::IsSubsetOf;
  NameTaker host;
  past_fields(host, Snapshot());
  EXPECT_THAT(table("snapshot.md", "## Other members"), IsSubsetOf(host.names));
  EXPECT_THAT(table("plan.md", "## `findings.interference`"),
              IsSubsetOf(names_of(InterferenceFindings(), PlacedInstance(), OtherWork())));
  EXPECT_THAT(table("plan.md", "## `findings.straggler`"),
              IsSubsetOf(names_of(StragglerFindings(), StragglerTask())));
  EXPECT_THAT(
      table("plan.md", "## `findings.eviction`"),
      IsSubsetOf(names_of(EvictionFindings(), MemoryForecast(), SparkAppFigures(), EvictionCandidate())));
  EXPECT_THAT(table("plan.md", "## `findings.oversell`"),
              IsSubsetOf(with(names_of(OversellFindings(), OversoldResource()), "oversell")));
  EXPECT_THAT(table("requests.md", "`rejected` may have one more entry"),
              IsSubsetOf(names_of(FittingBin(), RejectedBin())));
}

}  // namespace
}  // namespace berth::model
