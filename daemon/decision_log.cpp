// SPDX-License-Identifier: Apache-2.0
#include "daemon/decision_log.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/core.h>
#include <sqlite3.h>

namespace berth::daemon {

namespace {

constexpr double kPruneInterval_s = 600;

constexpr const char* kSchema = R"(
  PRAGMA journal_mode = WAL;
  PRAGMA synchronous = NORMAL;
  PRAGMA cache_size = -256;
  CREATE TABLE IF NOT EXISTS decisions (
    id INTEGER PRIMARY KEY, time REAL NOT NULL, decision TEXT NOT NULL, mode TEXT NOT NULL, kind TEXT NOT NULL,
    workload TEXT NOT NULL, attribute TEXT NOT NULL, old TEXT NOT NULL, new TEXT NOT NULL, policy TEXT NOT NULL,
    reason TEXT NOT NULL, result TEXT NOT NULL, error TEXT);
  CREATE INDEX IF NOT EXISTS decisions_by_time ON decisions (time);
  CREATE INDEX IF NOT EXISTS decisions_by_id ON decisions (decision);
)";

class Statement {
 public:
  Statement(sqlite3* database, const char* sql) {
    if (sqlite3_prepare_v2(database, sql, -1, &statement_, nullptr) != SQLITE_OK) statement_ = nullptr;
  }
  ~Statement() { sqlite3_finalize(statement_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  explicit operator bool() const { return statement_ != nullptr; }
  sqlite3_stmt* get() const { return statement_; }
  void bind(int index, double value) { sqlite3_bind_double(statement_, index, value); }
  void bind(int index, sqlite3_int64 value) { sqlite3_bind_int64(statement_, index, value); }
  void bind(int index, const std::string& value) {
    sqlite3_bind_text64(statement_, index, value.data(), value.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
  }
  void bind_null(int index) { sqlite3_bind_null(statement_, index); }
  bool run() {
    const int status = sqlite3_step(statement_);
    sqlite3_reset(statement_);
    return status == SQLITE_DONE;
  }
  std::string text(int column) const {
    const auto* bytes = static_cast<const char*>(sqlite3_column_blob(statement_, column));
    const int length = sqlite3_column_bytes(statement_, column);
    return bytes == nullptr ? std::string() : std::string(bytes, static_cast<std::size_t>(length));
  }

 private:
  sqlite3_stmt* statement_ = nullptr;
};

// Of a row with all columns in the table's order, but the first.
LogEntry entry_of(const Statement& row) {
  LogEntry entry;
  entry.time = sqlite3_column_double(row.get(), 0);
  int column = 1;
  for (auto* text : {&entry.decision, &entry.mode, &entry.kind, &entry.workload, &entry.attribute,
                     &entry.old_value, &entry.new_value, &entry.policy, &entry.reason, &entry.result}) {
    *text = row.text(column++);
  }
  if (sqlite3_column_type(row.get(), column) != SQLITE_NULL) entry.error = row.text(column);
  return entry;
}

}  // namespace

struct DecisionLog::Database {
  sqlite3* handle = nullptr;
  ~Database() { sqlite3_close(handle); }
};

DecisionLog::DecisionLog(const std::filesystem::path& state_dir, double retention_s)
    : file_(state_dir / "decisions.db"), retention_s_(retention_s), database_(std::make_unique<Database>()) {
  constexpr int kFlags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
  if (sqlite3_open_v2(file_.c_str(), &database_->handle, kFlags, nullptr) != SQLITE_OK ||
      sqlite3_exec(database_->handle, kSchema, nullptr, nullptr, nullptr) != SQLITE_OK) {
    problem_ = fmt::format("{}: {}", file_.string(), sqlite3_errmsg(database_->handle));
    database_.reset();
  }
}

DecisionLog::~DecisionLog() = default;

void DecisionLog::append(const std::vector<LogEntry>& entries) {
  if (entries.empty()) return;
  const auto kept = static_cast<std::ptrdiff_t>(std::min(entries.size(), kMaxInMemory));
  for (auto entry = entries.end() - kept; entry != entries.end(); ++entry) recent_.push_front(*entry);
  if (recent_.size() > kMaxInMemory) recent_.resize(kMaxInMemory);
  if (!database_) return;

  auto stored = store(entries);
  if (stored && entries.back().time - pruned_at_ >= kPruneInterval_s) stored = prune(entries.back().time);
  problem_ = stored ? std::nullopt : std::optional(stored.error().message());
}

model::Result<void> DecisionLog::store(const std::vector<LogEntry>& entries) {
  sqlite3* handle = database_->handle;
  const auto failed = [&] {
    auto message = fmt::format("{}: {}", file_.string(), sqlite3_errmsg(handle));
    sqlite3_exec(handle, "ROLLBACK", nullptr, nullptr, nullptr);
    return model::fail(model::ErrorKind::io, std::move(message));
  };
  if (sqlite3_exec(handle, "BEGIN", nullptr, nullptr, nullptr) != SQLITE_OK) return failed();
  Statement insert(
      handle,
      "INSERT INTO decisions (time, decision, mode, kind, workload, attribute, old, new, policy, reason, "
      "result, error) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
  if (!insert) return failed();
  for (const auto& entry : entries) {
    insert.bind(1, entry.time);
    int column = 2;
    for (const auto* text :
         {&entry.decision, &entry.mode, &entry.kind, &entry.workload, &entry.attribute, &entry.old_value,
          &entry.new_value, &entry.policy, &entry.reason, &entry.result}) {
      insert.bind(column++, *text);
    }
    if (entry.error) {
      insert.bind(column, *entry.error);
    } else {
      insert.bind_null(column);
    }
    if (!insert.run()) return failed();
  }
  if (sqlite3_exec(handle, "COMMIT", nullptr, nullptr, nullptr) != SQLITE_OK) return failed();
  return {};
}

model::Result<void> DecisionLog::prune(double now) {
  sqlite3* handle = database_->handle;
  Statement by_age(handle, "DELETE FROM decisions WHERE time < ?");
  Statement by_number(handle, "DELETE FROM decisions WHERE id <= (SELECT max(id) FROM decisions) - ?");
  bool done = by_age && by_number;
  if (done) {
    by_age.bind(1, now - retention_s_);
    by_number.bind(1, static_cast<sqlite3_int64>(kMaxEntries));
    done = by_age.run() && by_number.run();
  }
  if (!done) {
    return model::fail(model::ErrorKind::io, fmt::format("{}: {}", file_.string(), sqlite3_errmsg(handle)));
  }
  pruned_at_ = now;
  return {};
}

std::vector<LogEntry> DecisionLog::newest(std::size_t limit) const {
  if (limit == 0 || limit > kMaxAnswer) limit = kMaxAnswer;
  std::vector<LogEntry> entries;
  if (!database_ || problem_ || limit <= recent_.size()) {
    const auto count = static_cast<std::ptrdiff_t>(std::min(limit, recent_.size()));
    entries.assign(recent_.begin(), recent_.begin() + count);
    return entries;
  }
  Statement select(
      database_->handle,
      "SELECT time, decision, mode, kind, workload, attribute, old, new, policy, reason, result, error "
      "FROM decisions ORDER BY id DESC LIMIT ?");
  if (!select) return entries;
  select.bind(1, static_cast<sqlite3_int64>(limit));
  while (sqlite3_step(select.get()) == SQLITE_ROW) entries.push_back(entry_of(select));
  return entries;
}

std::vector<LogEntry> DecisionLog::of_decision(const std::string& decision) const {
  std::vector<LogEntry> entries;
  if (decision.empty()) return entries;
  if (!database_ || problem_) {
    std::copy_if(recent_.begin(), recent_.end(), std::back_inserter(entries),
                 [&decision](const LogEntry& entry) { return entry.decision == decision; });
    return entries;
  }
  Statement select(
      database_->handle,
      "SELECT time, decision, mode, kind, workload, attribute, old, new, policy, reason, result, error "
      "FROM decisions WHERE decision = ? ORDER BY id DESC LIMIT ?");
  if (!select) return entries;
  select.bind(1, decision);
  select.bind(2, static_cast<sqlite3_int64>(kMaxInMemory));
  while (sqlite3_step(select.get()) == SQLITE_ROW) entries.push_back(entry_of(select));
  return entries;
}

}  // namespace berth::daemon
