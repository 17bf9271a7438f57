// SPDX-License-Identifier: Apache-2.0
#include "os/sqlite.h"

#include "tests/unit/cgroup/fake_tree.h"

#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::os {
namespace {

using testing::HasSubstr;
using testing::Not;

class Sqlite : public testing::Test {
 protected:
  cgroup::test::FakeTree tree;
  std::filesystem::path file = tree.root() / "kept.db";
};

TEST_F(Sqlite, ValuesComeBackAsTheyWereBound) {
  auto database = Database::open(file, "the test's database");
  ASSERT_TRUE(database && database->run("CREATE TABLE t (a TEXT, b INTEGER, c REAL, d TEXT)"));
  auto insert = database->prepare("INSERT INTO t VALUES (?, ?, ?, ?)");
  ASSERT_TRUE(insert);
  insert->bind(1, std::string_view("a\0b", 3));
  insert->bind(2, std::int64_t{-7});
  insert->bind(3, 0.25);
  insert->bind_null(4);
  EXPECT_EQ(insert->step().value(), false);
  auto select = database->prepare("SELECT a, b, c, d FROM t");
  ASSERT_TRUE(select && select->step().value());
  EXPECT_EQ(select->text(0), std::string("a\0b", 3));
  EXPECT_EQ(select->number(1), -7);
  EXPECT_EQ(select->real(2), 0.25);
  EXPECT_TRUE(select->is_null(3));
}

TEST_F(Sqlite, ATransactionThatIsNotCommittedLeavesNothing) {
  auto database = Database::open(file, "the test's database");
  ASSERT_TRUE(database && database->run("CREATE TABLE t (a TEXT)"));
  {
    auto transaction = Transaction::begin(*database);
    ASSERT_TRUE(transaction && database->run("INSERT INTO t VALUES ('x')"));
  }
  {
    auto transaction = Transaction::begin(*database);
    ASSERT_TRUE(transaction && database->run("INSERT INTO t VALUES ('y')") && transaction->commit());
  }
  auto select = database->prepare("SELECT group_concat(a) FROM t");
  ASSERT_TRUE(select && select->step().value());
  EXPECT_EQ(select->text(0), "y");
}

TEST_F(Sqlite, ATransactionThatStayedOpenRefusesNoLaterOne) {
  auto database = Database::open(file, "the test's database");
  ASSERT_TRUE(database && database->run("CREATE TABLE t (a TEXT); BEGIN"));
  EXPECT_TRUE(Transaction::begin(*database));
}

TEST_F(Sqlite, DamageIsToldInOneLine) {
  std::ofstream(file) << "this is no database, and longer than the header of one: " << std::string(200, 'x');
  auto database = Database::open(file, "the test's database");
  const auto made = database ? database->run("CREATE TABLE t (\n a TEXT)", "creating the tables")
                             : model::Result<void>(model::fail(database.error()));
  ASSERT_FALSE(made);
  EXPECT_TRUE(is_damage(made.error())) << made.error().message();
  EXPECT_THAT(made.error().message(), HasSubstr("the test's database " + file.string()));
  EXPECT_THAT(made.error().message(), Not(HasSubstr("\n")));
  EXPECT_TRUE(is_damage(damaged("it", "why")));
  EXPECT_FALSE(is_damage({model::ErrorKind::io, "it: no space"}));
}

}  // namespace
}  // namespace berth::os
