// SPDX-License-Identifier: Apache-2.0
#include "daemon/ledger/decision_log.h"

#include "os/sqlite.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

#include <fmt/core.h>

namespace berth::daemon {

namespace {

constexpr double kPruneInterval_s = 600;
constexpr os::Worker::Patience kLastPatience{2000};

// No write-ahead log: its shared memory is a mapped file. On a disk that does not answer, a page fault there
// would keep the memory lock of the whole process, and the next new thread would wait for it.
constexpr const char* kSchema = R"(
  PRAGMA journal_mode = TRUNCATE;
  PRAGMA synchronous = NORMAL;
  PRAGMA cache_size = -256;
  CREATE TABLE IF NOT EXISTS decisions (
    id INTEGER PRIMARY KEY, time REAL NOT NULL, decision TEXT NOT NULL, mode TEXT NOT NULL, kind TEXT NOT NULL,
    workload TEXT NOT NULL, attribute TEXT NOT NULL, old TEXT NOT NULL, new TEXT NOT NULL, policy TEXT NOT NULL,
    reason TEXT NOT NULL, result TEXT NOT NULL, error TEXT,
    boot INTEGER NOT NULL DEFAULT 0, since_boot_s REAL NOT NULL DEFAULT 0,
    user INTEGER);
  CREATE INDEX IF NOT EXISTS decisions_by_time ON decisions (time);
  CREATE INDEX IF NOT EXISTS decisions_by_id ON decisions (decision);
  CREATE TABLE IF NOT EXISTS boots (number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE);
)";
constexpr const char* kUserColumn = "ALTER TABLE decisions ADD COLUMN user INTEGER";
constexpr const char* kUserIndex =
    "CREATE INDEX IF NOT EXISTS decisions_by_user ON decisions (user, id) WHERE user IS NOT NULL";
// Files of earlier versions lack three columns.
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

// Conditions for the parameters ?2 to ?6: a decision, and those of a filter (log_filter.cpp).
std::string conditions(const std::string& decision, const LogFilter& filter) {
  std::string text;
  const auto add = [&](bool wanted, const char* condition) {
    if (wanted) text += fmt::format("{} {}", text.empty() ? "WHERE" : " AND", condition);
  };
  add(!decision.empty(), "decision = ?2");
  add(filter.since.has_value(), "time >= ?3");
  add(!filter.workload.empty(),
      "(workload IN (?4, ?4 || '.service', ?4 || '.scope')"
      " OR substr(workload, -1 - length(?4)) = '/' || ?4"
      " OR substr(workload, -9 - length(?4)) = '/' || ?4 || '.service'"
      " OR substr(workload, -7 - length(?4)) = '/' || ?4 || '.scope')");
  add(!filter.policy.empty(), "policy = ?5");
  add(!filter.kind.empty(), "kind = ?6");
  return text;
}

// The times that a job needs, as the caller's clock shows them.
struct Moment {
  double now = 0;
  double since_boot_s = 0;
  double wall_ahead_s = 0;
  double retention_s = 0;
};

}  // namespace

// The file. Its calls wait for the disk.
class DecisionLog::Store {
 public:
  static model::Result<std::shared_ptr<Store>> open(const std::filesystem::path& file,
                                                    const std::string& boot_id, double now);

  model::Result<void> write(const std::vector<LogEntry>& entries, const Moment& moment);
  // Newest first: of one decision, or of all where it is empty.
  std::vector<LogEntry> read(const std::string& decision, const LogFilter& filter, std::size_t limit);

  // Of the last write.
  model::Result<void> outcome;

 private:
  Store(os::Database database, double now) : database_(std::move(database)), pruned_at_(now) {}
  model::Result<void> prepare(const std::string& boot_id);
  model::Result<void> insert(const std::vector<LogEntry>& entries, const Moment& moment);
  model::Result<void> prune(const Moment& moment);
  model::Result<void> keep_newest(const char* condition, std::size_t most, std::optional<std::int64_t> user);

  os::Database database_;
  double pruned_at_;
  std::int64_t boot_ = 0;  // its number in the table of boots; 0: not known
};

model::Result<std::shared_ptr<DecisionLog::Store>> DecisionLog::Store::open(const std::filesystem::path& file,
                                                                            const std::string& boot_id,
                                                                            double now) {
  auto opened = os::Database::open(file, "decision log");
  if (!opened) return model::fail(opened.error());
  std::shared_ptr<Store> store(new Store(*std::move(opened), now));
  if (const auto made = store->prepare(boot_id); !made) return model::fail(made.error());
  return store;
}

// Makes the tables as far as they are missing, and gives the boot a number.
model::Result<void> DecisionLog::Store::prepare(const std::string& boot_id) {
  if (auto made = database_.run(kSchema, "creating the tables"); !made) return made;
  if (!database_.prepare("SELECT boot, since_boot_s FROM decisions")) {
    if (auto added = database_.run(kBootColumns, "adding columns"); !added) return added;
  }
  if (!database_.prepare("SELECT user FROM decisions")) {
    if (auto added = database_.run(kUserColumn, "adding a column"); !added) return added;
  }
  for (const char* index : {kBootIndex, kUserIndex})
    if (auto made = database_.run(index, "creating an index"); !made) return made;
  if (boot_id.empty()) return {};
  auto insert = database_.prepare("INSERT OR IGNORE INTO boots (id) VALUES (?)");
  if (!insert) return model::fail(insert.error());
  insert->bind(1, boot_id);
  if (const auto inserted = insert->step(); !inserted) return model::fail(inserted.error());
  auto select = database_.prepare("SELECT number FROM boots WHERE id = ?");
  if (!select) return model::fail(select.error());
  select->bind(1, boot_id);
  const auto found = select->step();
  if (!found) return model::fail(found.error());
  if (*found) boot_ = select->number(0);
  return {};
}

model::Result<void> DecisionLog::Store::insert(const std::vector<LogEntry>& entries, const Moment& moment) {
  auto transaction = os::Transaction::begin(database_);
  if (!transaction) return model::fail(transaction.error());
  auto insert = database_.prepare(
      "INSERT INTO decisions (time, decision, mode, kind, workload, attribute, old, new, policy, reason, "
      "result, error, boot, since_boot_s, user) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
  if (!insert) return model::fail(insert.error());
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
    insert->bind(column++, moment.since_boot_s);
    if (entry.user) {
      insert->bind(column, static_cast<std::int64_t>(*entry.user));
    } else {
      insert->bind_null(column);
    }
    if (const auto inserted = insert->step(); !inserted) return model::fail(inserted.error());
  }
  return transaction->commit();
}

// Of the entries that the condition names, the newest `most` stay.
model::Result<void> DecisionLog::Store::keep_newest(const char* condition, std::size_t most,
                                                    std::optional<std::int64_t> user) {
  auto prune =
      database_.prepare(fmt::format("DELETE FROM decisions WHERE {0} AND id <= "
                                    "(SELECT id FROM decisions WHERE {0} ORDER BY id DESC LIMIT 1 OFFSET ?1)",
                                    condition)
                            .c_str());
  if (!prune) return model::fail(prune.error());
  prune->bind(1, static_cast<std::int64_t>(most));
  if (user) prune->bind(2, *user);
  if (const auto pruned = prune->step(); !pruned) return model::fail(pruned.error());
  return {};
}

model::Result<void> DecisionLog::Store::prune(const Moment& moment) {
  // Without the boot's id, all entries count as those of earlier boots.
  const std::int64_t boot = boot_ > 0 ? boot_ : -1;
  auto of_this_boot = database_.prepare("DELETE FROM decisions WHERE boot = ? AND since_boot_s < ?");
  if (!of_this_boot) return model::fail(of_this_boot.error());
  of_this_boot->bind(1, boot);
  of_this_boot->bind(2, moment.since_boot_s - moment.retention_s);
  if (const auto pruned = of_this_boot->step(); !pruned) return model::fail(pruned.error());
  auto of_others = database_.prepare("DELETE FROM decisions WHERE time < ? AND boot != ?");
  if (!of_others) return model::fail(of_others.error());
  of_others->bind(1, moment.now + moment.wall_ahead_s - moment.retention_s);
  of_others->bind(2, boot);
  if (const auto pruned = of_others->step(); !pruned) return model::fail(pruned.error());
  // Those of each user first, then of all users, then all: each keeps its newest.
  std::vector<std::int64_t> users;
  auto select = database_.prepare("SELECT DISTINCT user FROM decisions WHERE user IS NOT NULL");
  if (!select) return model::fail(select.error());
  for (;;) {
    const auto found = select->step();
    if (!found) return model::fail(found.error());
    if (!*found) break;
    users.push_back(select->number(0));
  }
  for (const std::int64_t user : users) {
    if (auto pruned = keep_newest("user = ?2", kMaxOfUser, user); !pruned) return pruned;
  }
  if (auto pruned = keep_newest("user IS NOT NULL", kMaxOfUsers, std::nullopt); !pruned) return pruned;
  if (auto pruned = keep_newest("TRUE", kMaxEntries, std::nullopt); !pruned) return pruned;
  pruned_at_ = moment.now;
  return {};
}

model::Result<void> DecisionLog::Store::write(const std::vector<LogEntry>& entries, const Moment& moment) {
  outcome = insert(entries, moment);
  if (outcome && moment.now - pruned_at_ >= kPruneInterval_s) outcome = prune(moment);
  return outcome;
}

std::vector<LogEntry> DecisionLog::Store::read(const std::string& decision, const LogFilter& filter,
                                               std::size_t limit) {
  std::vector<LogEntry> entries;
  const std::string sql = fmt::format(
      "SELECT time, decision, mode, kind, workload, attribute, old, new, policy, reason, result, error "
      "FROM decisions {} ORDER BY id DESC LIMIT ?1",
      conditions(decision, filter));
  auto select = database_.prepare(sql.c_str());
  if (!select) return entries;
  select->bind(1, static_cast<std::int64_t>(limit));
  if (!decision.empty()) select->bind(2, decision);
  if (filter.since) select->bind(3, *filter.since);
  if (!filter.workload.empty()) select->bind(4, filter.workload);
  if (!filter.policy.empty()) select->bind(5, filter.policy);
  if (!filter.kind.empty()) select->bind(6, filter.kind);
  while (select->step().value_or(false)) entries.push_back(entry_of(*select));
  return entries;
}

DecisionLog::DecisionLog(const std::filesystem::path& state_dir, double retention_s, os::Clock clock,
                         const std::string& boot_id)
    : file_(state_dir / "decisions.db"), retention_s_(retention_s), clock_(std::move(clock)) {
  auto opened = Store::open(file_, boot_id, clock_.now());
  if (opened) {
    store_ = *std::move(opened);
  } else {
    problem_ = opened.error().message();
  }
}

DecisionLog::~DecisionLog() {
  if (!store_) return;
  worker_.wait_again();
  if (is_waiting()) (void)worker_.run([] { return true; }, kLastPatience);
  write(kLastPatience);
  // The file is closed by the thread, too: that may write.
  const auto close = [store = std::exchange(store_, nullptr)]() mutable {
    store.reset();
    return true;
  };
  (void)worker_.run(close, kLastPatience);
}

void DecisionLog::append(const std::vector<LogEntry>& entries) {
  if (entries.empty()) return;
  const auto kept = static_cast<std::ptrdiff_t>(std::min(entries.size(), kMaxInMemory));
  for (auto entry = entries.end() - kept; entry != entries.end(); ++entry) recent_.push_front(*entry);
  if (recent_.size() > kMaxInMemory) recent_.resize(kMaxInMemory);
  if (!store_) return;
  waiting_.insert(waiting_.end(), entries.begin(), entries.end());
  write(kPatience);
  if (waiting_.size() > kMaxWaiting) {
    waiting_.erase(waiting_.begin(), waiting_.end() - static_cast<std::ptrdiff_t>(kMaxWaiting));
  }
}

void DecisionLog::write(os::Worker::Patience patience) {
  if (!store_ || is_waiting()) return;
  if (std::exchange(late_, false)) {
    const auto& outcome = store_->outcome;
    problem_ = outcome ? std::nullopt : std::optional(outcome.error().message());
  }
  if (waiting_.empty()) return;
  if (!worker_.can_run()) {
    problem_ = fmt::format("decision log {}: the host has no thread to write it; entries wait in memory",
                           file_.string());
    return;
  }
  const double now = clock_.now();
  const auto done =
      worker_.run([store = store_, entries = std::exchange(waiting_, {}),
                   moment = Moment{.now = now,
                                   .since_boot_s = clock_.since_boot(now),
                                   .wall_ahead_s = clock_.wall_ahead_s(),
                                   .retention_s = retention_s_}] { return store->write(entries, moment); },
                  patience);
  if (!done) return took_too_long();
  problem_ = *done ? std::nullopt : std::optional(done->error().message());
}

void DecisionLog::took_too_long() {
  late_ = true;
  problem_ = fmt::format("decision log {}: the disk does not answer; entries wait in memory", file_.string());
}

std::optional<std::vector<LogEntry>> DecisionLog::ask(const std::string& decision, const LogFilter& filter,
                                                      std::size_t limit) const {
  if (!store_ || problem_) return std::nullopt;
  return worker_.run(
      [store = store_, decision, filter, limit] { return store->read(decision, filter, limit); }, kPatience);
}

std::vector<LogEntry> DecisionLog::find(const LogFilter& filter, std::size_t limit) const {
  if (limit == 0 || limit > kMaxAnswer) limit = kMaxAnswer;
  if (!filter.is_empty() || limit > recent_.size()) {
    if (auto entries = ask("", filter, limit)) return *std::move(entries);
  }
  std::vector<LogEntry> entries;
  for (const LogEntry& entry : recent_) {
    if (entries.size() < limit && accepts(filter, entry)) entries.push_back(entry);
  }
  return entries;
}

std::vector<LogEntry> DecisionLog::of_decision(const std::string& decision) const {
  if (decision.empty()) return {};
  if (auto entries = ask(decision, {}, kMaxInMemory)) return *std::move(entries);
  std::vector<LogEntry> entries;
  std::copy_if(recent_.begin(), recent_.end(), std::back_inserter(entries),
               [&decision](const LogEntry& entry) { return entry.decision == decision; });
  return entries;
}

}  // namespace berth::daemon
