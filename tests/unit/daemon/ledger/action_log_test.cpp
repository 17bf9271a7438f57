// SPDX-License-Identifier: Apache-2.0
#include "daemon/ledger/action_log.h"

#include "model/plain_text.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::daemon {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

LogEntry entry_with(const std::string& text) {
  LogEntry entry;
  entry.kind = "pin";
  entry.workload = text;
  entry.attribute = "cpuset.cpus";
  entry.old_value = text;
  entry.new_value = "0-1";
  entry.reason = text;
  entry.error = text;
  entry.result = "failed";
  entry.mode = "enforce";
  entry.decision = "d-0123456789ab";
  return entry;
}

TEST(ActionLog, FieldsOfTheJournalAreAsTheyWere) {
  const auto fields = journal_fields(entry_with("system.slice/a\\x2db.service"));
  EXPECT_THAT(fields, Contains("BERTH_WORKLOAD=system.slice/a\\x2db.service"));
  EXPECT_THAT(fields, Contains("BERTH_NEW=0-1"));
  EXPECT_THAT(fields, Contains("BERTH_DECISION=d-0123456789ab"));
}

TEST(ActionLog, NoTextOfOthersReachesTheJournalAsItCame) {
  for (const auto& field : journal_fields(entry_with("a\nBERTH_RESULT=applied\x1b[2J\xff\xE2\x80\xAE"))) {
    EXPECT_EQ(field.find('\n'), std::string::npos) << field;
    EXPECT_EQ(field.find('\x1b'), std::string::npos) << field;
    EXPECT_EQ(field.find('\xff'), std::string::npos) << field;
    EXPECT_EQ(field.find('\xE2'), std::string::npos) << field;
  }
}

TEST(ActionLog, FieldsOfTheJournalAreShort) {
  const auto fields = journal_fields(entry_with(std::string(100'000, '\x1b')));
  for (const auto& field : fields) EXPECT_LE(field.size(), model::kMostFieldBytes + 32);
  EXPECT_LE(fields.front().size(), model::kMostLineBytes + 32) << "MESSAGE";
  EXPECT_THAT(fields.front(), HasSubstr("[d-0123456789ab]")) << "its end stays";
}

TEST(ActionLog, FieldsOfAnEventAreEscapedToo) {
  for (const auto& field : journal_fields("id", 4, "a\nb\x1b", "observe", "w\nx", "d-1"))
    EXPECT_EQ(field.find_first_of("\n\x1b"), std::string::npos) << field;
}

}  // namespace
}  // namespace berth::daemon
