// SPDX-License-Identifier: Apache-2.0
#include "os/sqlite.h"

#include <fmt/core.h>

namespace berth::os {

namespace {

constexpr const char* kDamaged = "the file is damaged";

model::Error make_error(sqlite3* db, std::string_view what) {
  const int code = sqlite3_extended_errcode(db);
  const std::string message = sqlite3_errmsg(db);
  switch (code & 0xff) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return {model::ErrorKind::io, fmt::format("{}: {}: {}", what, kDamaged, message)};
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
      return {model::ErrorKind::permission, fmt::format("{}: {}", what, message)};
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return {model::ErrorKind::transient, fmt::format("{}: {}", what, message)};
    case SQLITE_FULL:
      return {model::ErrorKind::io, fmt::format("{}: no space left on the file system", what)};
    default:
      break;
  }
  const int system = sqlite3_system_errno(db);
  if ((code & 0xff) == SQLITE_IOERR || (code & 0xff) == SQLITE_CANTOPEN) {
    if (system != 0) return model::Error::from_errno(system, fmt::format("{}: {}", what, message));
  }
  return {model::ErrorKind::io, fmt::format("{}: {}", what, message)};
}

}  // namespace

bool is_damage(const model::Error& error) { return error.message().find(kDamaged) != std::string::npos; }

model::Error damaged(std::string_view subject, std::string_view why) {
  return {model::ErrorKind::io, fmt::format("{}: {}: {}", subject, kDamaged, why)};
}

model::Result<Database> Database::open(const std::filesystem::path& file, std::string name) {
  sqlite3* raw = nullptr;
  const int code = sqlite3_open_v2(file.c_str(), &raw,
                                   SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, nullptr);
  Database database(raw, fmt::format("{} {}", name, file.string()));
  if (code != SQLITE_OK) return model::fail(database.error("opening"));
  sqlite3_extended_result_codes(raw, 1);
  return database;
}

model::Error Database::error(const char* what) const {
  return make_error(db_.get(), fmt::format("{}: {}", subject_, what));
}

model::Result<void> Database::run(const char* sql, const char* what) {
  if (sqlite3_exec(db_.get(), sql, nullptr, nullptr, nullptr) == SQLITE_OK) return {};
  return model::fail(error(what == nullptr ? sql : what));
}

model::Result<Database::Statement> Database::prepare(const char* sql) {
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v2(db_.get(), sql, -1, &statement, nullptr) != SQLITE_OK)
    return model::fail(error(sql));
  return Statement(db_.get(), statement, subject_);
}

model::Result<Transaction> Transaction::begin(Database& database) {
  auto begun = database.run("BEGIN IMMEDIATE");
  // A transaction that stayed open would refuse every later one.
  if (!begun && database.run("ROLLBACK")) begun = database.run("BEGIN IMMEDIATE");
  if (!begun) return model::fail(begun.error());
  return Transaction(database);
}

Transaction::~Transaction() {
  if (database_ != nullptr) (void)database_->run("ROLLBACK");
}

model::Result<void> Transaction::commit() {
  auto committed = database_->run("COMMIT");
  if (committed) database_ = nullptr;
  return committed;
}

void Database::Statement::bind(int index, std::string_view text) {
  // With a copy made by SQLite (SQLITE_TRANSIENT is an old-style cast, so the destructor is spelled out).
  char* copy = static_cast<char*>(sqlite3_malloc64(text.size() + 1));
  if (copy == nullptr) {
    sqlite3_bind_null(statement_.get(), index);  // the table's constraints refuse it
    return;
  }
  text.copy(copy, text.size());
  sqlite3_bind_text64(statement_.get(), index, copy, text.size(), sqlite3_free, SQLITE_UTF8);
}

void Database::Statement::bind(int index, std::int64_t number) {
  sqlite3_bind_int64(statement_.get(), index, number);
}

void Database::Statement::bind(int index, double number) {
  sqlite3_bind_double(statement_.get(), index, number);
}

void Database::Statement::bind_null(int index) { sqlite3_bind_null(statement_.get(), index); }

model::Result<bool> Database::Statement::step() {
  const int code = sqlite3_step(statement_.get());
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) {
    sqlite3_reset(statement_.get());
    return false;
  }
  const model::Error failure =
      make_error(db_, fmt::format("{}: {}", subject_, sqlite3_sql(statement_.get())));
  sqlite3_reset(statement_.get());
  return model::fail(failure);
}

std::string Database::Statement::text(int column) const {
  const auto* bytes = static_cast<const char*>(sqlite3_column_blob(statement_.get(), column));
  const int size = sqlite3_column_bytes(statement_.get(), column);
  return bytes == nullptr ? std::string() : std::string(bytes, static_cast<std::size_t>(size));
}

std::int64_t Database::Statement::number(int column) const {
  return sqlite3_column_int64(statement_.get(), column);
}

double Database::Statement::real(int column) const { return sqlite3_column_double(statement_.get(), column); }

bool Database::Statement::is_null(int column) const {
  return sqlite3_column_type(statement_.get(), column) == SQLITE_NULL;
}

}  // namespace berth::os
