// SPDX-License-Identifier: Apache-2.0
#include "daemon/ledger/decision_log.h"

#include <algorithm>
#include <iterator>
#include <utility>

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
    reason TEXT NOT NULL, result TEXT NOT NULL, error TEXT,
    boot INTEGER NOT NULL DEFAULT 0, since_boot_s REAL NOT NULL DEFAULT 0);
  CREATE INDEX IF NOT EXISTS decisions_by_time ON decisions (time);
  CREATE INDEX IF NOT EXISTS decisions_by_id ON decisions (decision);
  CREATE TABLE IF NOT EXISTS boots (number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE);
)";
// Files of earlier versions lack two columns.
constexpr const char* kBootColumns = R"(
  ALTER TABLE decisions ADD COLUMN boot INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE decisions ADD COLUMN since_boot_s REAL NOT NULL DEFAULT 0;
)";
constexpr const char* kBootIndex =
    "CREATE INDEX IF NOT EXISTS decisions_by_age ON decisions (boot, since_boot_s)";

// Of a row with all columns in the table's order, but the first.
LogEntry entry_of(const os::Database::Statement& row) {
  LogEntry entry;
  entry.time = row.real(0);
  int column = 1;
  for (auto* text : {&entry.decision, &entry.mode, &entry.kind, &entry.workload, &entry.attribute,
                     &entry.old_value, &entry.new_value, &entry.policy, &entry.reason, &entry.result}) {
    *text = row.text(column++);
  }
  if (!row.is_null(column)) entry.error = row.text(column);
  return entry;
}

}  // namespace

DecisionLog::DecisionLog(const std::filesystem::path& state_dir, double retention_s, os::Clock clock,
                         const std::string& boot_id)
    : file_(state_dir / "decisions.db"),
      retention_s_(retention_s),
      clock_(std::move(clock)),
      pruned_at_(clock_.now()) {
  auto opened = os::Database::open(file_, "decision log");
  if (!opened) {
    problem_ = opened.error().message();
    return;
  }
  database_ = std::make_unique<os::Database>(*std::move(opened));
  const auto made = prepare(boot_id);
  if (made) return;
  database_.reset();
  problem_ = made.error().message();
}

// Makes the tables as far as they are missing, and gives the boot a number.
model::Result<void> DecisionLog::prepare(const std::string& boot_id) {
  if (auto made = database_->run(kSchema, "creating the tables"); !made) return made;
  if (!database_->prepare("SELECT boot, since_boot_s FROM decisions")) {
    if (auto added = database_->run(kBootColumns, "adding columns"); !added) return added;
  }
  if (auto made = database_->run(kBootIndex, "creating an index"); !made) return made;
  if (boot_id.empty()) return {};
  auto insert = database_->prepare("INSERT OR IGNORE INTO boots (id) VALUES (?)");
  if (!insert) return model::fail(insert.error());
  insert->bind(1, boot_id);
  if (const auto inserted = insert->step(); !inserted) return model::fail(inserted.error());
  auto select = database_->prepare("SELECT number FROM boots WHERE id = ?");
  if (!select) return model::fail(select.error());
  select->bind(1, boot_id);
  const auto found = select->step();
  if (!found) return model::fail(found.error());
  if (*found) boot_ = select->number(0);
  return {};
}

void DecisionLog::append(const std::vector<LogEntry>& entries) {
  if (entries.empty()) return;
  const auto kept = static_cast<std::ptrdiff_t>(std::min(entries.size(), kMaxInMemory));
  for (auto entry = entries.end() - kept; entry != entries.end(); ++entry) recent_.push_front(*entry);
  if (recent_.size() > kMaxInMemory) recent_.resize(kMaxInMemory);
  if (!database_) return;

  auto stored = store(entries);
  if (stored && clock_.now() - pruned_at_ >= kPruneInterval_s) stored = prune();
  problem_ = stored ? std::nullopt : std::optional(stored.error().message());
}

model::Result<void> DecisionLog::store(const std::vector<LogEntry>& entries) {
  auto transaction = os::Transaction::begin(*database_);
  if (!transaction) return model::fail(transaction.error());
  auto insert = database_->prepare(
      "INSERT INTO decisions (time, decision, mode, kind, workload, attribute, old, new, policy, reason, "
      "result, error, boot, since_boot_s) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
  if (!insert) return model::fail(insert.error());
  const double since_boot_s = clock_.since_boot(clock_.now());
  for (const auto& entry : entries) {
    insert->bind(1, entry.time);
    int column = 2;
    for (const auto* text :
         {&entry.decision, &entry.mode, &entry.kind, &entry.workload, &entry.attribute, &entry.old_value,
          &entry.new_value, &entry.policy, &entry.reason, &entry.result}) {
      insert->bind(column++, *text);
    }
    if (entry.error) {
      insert->bind(column++, *entry.error);
    } else {
      insert->bind_null(column++);
    }
    insert->bind(column++, boot_);
    insert->bind(column, since_boot_s);
    if (const auto inserted = insert->step(); !inserted) return model::fail(inserted.error());
  }
  return transaction->commit();
}

model::Result<void> DecisionLog::prune() {
  const double now = clock_.now();
  // Without the boot's id, all entries count as those of earlier boots.
  const std::int64_t boot = boot_ > 0 ? boot_ : -1;
  auto of_this_boot = database_->prepare("DELETE FROM decisions WHERE boot = ? AND since_boot_s < ?");
  if (!of_this_boot) return model::fail(of_this_boot.error());
  of_this_boot->bind(1, boot);
  of_this_boot->bind(2, clock_.since_boot(now) - retention_s_);
  if (const auto pruned = of_this_boot->step(); !pruned) return model::fail(pruned.error());
  auto of_others = database_->prepare("DELETE FROM decisions WHERE time < ? AND boot != ?");
  if (!of_others) return model::fail(of_others.error());
  of_others->bind(1, now + clock_.wall_ahead_s() - retention_s_);
  of_others->bind(2, boot);
  if (const auto pruned = of_others->step(); !pruned) return model::fail(pruned.error());
  auto by_number =
      database_->prepare("DELETE FROM decisions WHERE id <= (SELECT max(id) FROM decisions) - ?");
  if (!by_number) return model::fail(by_number.error());
  by_number->bind(1, static_cast<std::int64_t>(kMaxEntries));
  if (const auto pruned = by_number->step(); !pruned) return model::fail(pruned.error());
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
  auto select = database_->prepare(
      "SELECT time, decision, mode, kind, workload, attribute, old, new, policy, reason, result, error "
      "FROM decisions ORDER BY id DESC LIMIT ?");
  if (!select) return entries;
  select->bind(1, static_cast<std::int64_t>(limit));
  while (select->step().value_or(false)) entries.push_back(entry_of(*select));
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
  auto select = database_->prepare(
      "SELECT time, decision, mode, kind, workload, attribute, old, new, policy, reason, result, error "
      "FROM decisions WHERE decision = ? ORDER BY id DESC LIMIT ?");
  if (!select) return entries;
  select->bind(1, decision);
  select->bind(2, static_cast<std::int64_t>(kMaxInMemory));
  while (select->step().value_or(false)) entries.push_back(entry_of(*select));
  return entries;
}

}  // namespace berth::daemon
