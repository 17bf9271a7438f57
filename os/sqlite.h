// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/error.h"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <sqlite3.h>

namespace berth::os {

// A database of SQLite, with its errors as model::Error. `name` stands in front of the file in messages, as
// in "undo journal".
class Database {
 public:
  static model::Result<Database> open(const std::filesystem::path& file, std::string name);

  // Runs statements without parameters or rows. An error names `what`, or the statements.
  model::Result<void> run(const char* sql, const char* what = nullptr);

  // One statement, prepared once; parameters count from 1, columns from 0.
  class Statement {
   public:
    Statement() = default;
    Statement(sqlite3* db, sqlite3_stmt* statement, std::string subject)
        : db_(db), statement_(statement), subject_(std::move(subject)) {}
    void bind(int index, std::string_view text);
    void bind(int index, std::int64_t number);
    void bind(int index, double number);
    void bind_null(int index);
    // True where there is a row, false at the end; resets at the end and on error.
    model::Result<bool> step();
    std::string text(int column) const;
    std::int64_t number(int column) const;
    double real(int column) const;
    bool is_null(int column) const;

   private:
    struct Finalize {
      void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
    };
    sqlite3* db_ = nullptr;
    std::unique_ptr<sqlite3_stmt, Finalize> statement_;
    std::string subject_;
  };
  model::Result<Statement> prepare(const char* sql);

 private:
  struct Close {
    void operator()(sqlite3* db) const { sqlite3_close(db); }
  };
  Database(sqlite3* db, std::string subject) : db_(db), subject_(std::move(subject)) {}
  model::Error error(const char* what) const;

  std::unique_ptr<sqlite3, Close> db_;
  std::string subject_;  // "undo journal FILE"
};

// A transaction that is rolled back unless committed.
class Transaction {
 public:
  static model::Result<Transaction> begin(Database& database);
  Transaction(Transaction&& other) noexcept : database_(std::exchange(other.database_, nullptr)) {}
  Transaction& operator=(Transaction&&) = delete;
  ~Transaction();
  model::Result<void> commit();

 private:
  explicit Transaction(Database& database) : database_(&database) {}
  Database* database_;
};

// True for the errors after which only another file helps.
bool is_damage(const model::Error& error);
// Such an error, for content that SQLite itself takes. `subject` names the file.
model::Error damaged(std::string_view subject, std::string_view why);

}  // namespace berth::os
