// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/error.h"

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <sqlite3.h>

namespace berth::cgroup {

// The few things the undo journal needs of SQLite, with its errors as ours.
class UndoDatabase {
 public:
  static model::Result<UndoDatabase> open(const std::filesystem::path& file);

  // Statements without parameters or rows.
  model::Result<void> run(const char* sql);

  // One statement, prepared once; parameters count from 1, columns from 0.
  class Statement {
   public:
    Statement() = default;
    Statement(sqlite3* db, sqlite3_stmt* statement) : db_(db), statement_(statement) {}
    void bind(int index, std::string_view text);
    void bind(int index, std::int64_t number);
    void bind_null(int index);
    // True where there is a row, false at the end; resets at the end and on error.
    model::Result<bool> step();
    std::string text(int column) const;
    std::int64_t number(int column) const;
    bool is_null(int column) const;

   private:
    struct Finalize {
      void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
    };
    sqlite3* db_ = nullptr;
    std::unique_ptr<sqlite3_stmt, Finalize> statement_;
  };
  model::Result<Statement> prepare(const char* sql);

 private:
  struct Close {
    void operator()(sqlite3* db) const { sqlite3_close(db); }
  };
  UndoDatabase(sqlite3* db, std::string file) : db_(db), file_(std::move(file)) {}
  model::Error error(const char* what) const;

  std::unique_ptr<sqlite3, Close> db_;
  std::string file_;
};

// A transaction that is rolled back unless committed.
class UndoTransaction {
 public:
  static model::Result<UndoTransaction> begin(UndoDatabase& database);
  UndoTransaction(UndoTransaction&& other) noexcept : database_(std::exchange(other.database_, nullptr)) {}
  UndoTransaction& operator=(UndoTransaction&&) = delete;
  ~UndoTransaction();
  model::Result<void> commit();

 private:
  explicit UndoTransaction(UndoDatabase& database) : database_(&database) {}
  UndoDatabase* database_;
};

// True for the errors after which only another file helps.
bool is_damage(const model::Error& error);

}  // namespace berth::cgroup
