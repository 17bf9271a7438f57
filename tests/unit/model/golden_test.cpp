// SPDX-License-Identifier: Apache-2.0
// Documents keep their bytes: each line of tests/data/golden is read, and written again as it is. Together
// the lines have every member, and every value of the members that have few.
#include "model/json.h"
#include "model/trace.h"
#include "tests/paths.h"

#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>
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

}  // namespace
}  // namespace berth::model
