// SPDX-License-Identifier: Apache-2.0
#include "cgroup/undo_journal.h"

#include "cgroup/file_descriptor.h"
#include "cgroup/undo_journal_db.h"

#include <array>
#include <bit>
#include <cerrno>
#include <fstream>
#include <map>
#include <sstream>
#include <tuple>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace berth::cgroup {

namespace {

constexpr const char* kFile = "undo.db";
constexpr const char* kLock = "undo.lock";
constexpr int kVersion = 1;

constexpr const char* kSchema =
    "CREATE TABLE boot(id TEXT NOT NULL);"
    "CREATE TABLE undo("
    "  seq INTEGER PRIMARY KEY AUTOINCREMENT,"
    "  path TEXT NOT NULL, cgroup_id INTEGER NOT NULL, attribute TEXT NOT NULL,"
    "  owner TEXT NOT NULL, unit TEXT NOT NULL,"
    "  original TEXT NOT NULL, note TEXT NOT NULL, written TEXT NOT NULL, previous TEXT,"
    "  UNIQUE(path, cgroup_id, attribute));"
    "PRAGMA user_version = 1;";

// Rolls back unless committed.
class Transaction {
 public:
  static model::Result<Transaction> begin(UndoDatabase& database) {
    if (auto begun = database.run("BEGIN IMMEDIATE"); !begun) return model::fail(begun.error());
    return Transaction(database);
  }
  Transaction(Transaction&& other) noexcept : database_(std::exchange(other.database_, nullptr)) {}
  Transaction& operator=(Transaction&&) = delete;
  ~Transaction() {
    if (database_ != nullptr) (void)database_->run("ROLLBACK");
  }
  model::Result<void> commit() {
    auto committed = database_->run("COMMIT");
    if (committed) database_ = nullptr;
    return committed;
  }

 private:
  explicit Transaction(UndoDatabase& database) : database_(&database) {}
  UndoDatabase* database_;
};

struct LockFile {
  FileDescriptor fd;
  std::string last_boot;  // of the last holder; empty where there was none
};

// "PID BOOT": who holds or last held the journal.
std::pair<std::string, std::string> read_holder(int fd) {
  std::array<char, 128> text{};
  const ssize_t size = pread(fd, text.data(), text.size() - 1, 0);
  std::istringstream words(std::string(text.data(), size > 0 ? static_cast<std::size_t>(size) : 0));
  std::string pid;
  std::string boot;
  words >> pid >> boot;
  return {pid, boot};
}

model::Result<LockFile> take_lock(const std::filesystem::path& state_dir, const std::string& boot_id) {
  const std::filesystem::path file = state_dir / kLock;
  const auto where = [&] {
    return fmt::format("state directory {} (StateDirectory= of berthd.service, or --state-dir)",
                       state_dir.string());
  };
  struct stat status {};
  if (stat(state_dir.c_str(), &status) != 0) return model::fail(model::Error::from_errno(errno, where()));
  if (!S_ISDIR(status.st_mode)) return model::fail(model::Error::from_errno(ENOTDIR, where()));
  FileDescriptor fd(open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd)
    return model::fail(
        model::Error::from_errno(errno, fmt::format("undo journal: opening {}", file.string())));
  if (flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    const int error = errno;
    if (error != EWOULDBLOCK) {
      return model::fail(
          model::Error::from_errno(error, fmt::format("undo journal: locking {}", file.string())));
    }
    const std::string pid = read_holder(fd.get()).first;
    return model::fail(
        model::ErrorKind::refused,
        fmt::format("undo journal {} is held by another berthd (pid {}); only one may change this host",
                    (state_dir / kFile).string(), pid.empty() ? "not known" : pid));
  }
  LockFile lock{std::move(fd), {}};
  lock.last_boot = read_holder(lock.fd.get()).second;
  // Written over the old text, then cut, so that a full file system does not cost what was known.
  const std::string holder = fmt::format("{} {}\n", getpid(), boot_id);
  errno = 0;
  if (pwrite(lock.fd.get(), holder.data(), holder.size(), 0) != static_cast<ssize_t>(holder.size()) ||
      ftruncate(lock.fd.get(), static_cast<off_t>(holder.size())) != 0) {
    return model::fail(model::Error::from_errno(errno == 0 ? ENOSPC : errno,
                                                fmt::format("undo journal: writing {}", file.string())));
  }
  return lock;
}

using Key = std::tuple<std::string, std::uint64_t, Attribute>;
Key key_of(const UndoRecord& record) { return {record.path, record.cgroup_id, record.attribute}; }

// SQLite's integers are signed.
std::int64_t stored(std::uint64_t id) { return std::bit_cast<std::int64_t>(id); }

}  // namespace

struct UndoJournal::State {
  LockFile lock;
  std::optional<UndoDatabase> database;  // closed before the lock is let go
  UndoDatabase::Statement insert;
  UndoDatabase::Statement update;
  UndoDatabase::Statement remove;
  std::map<std::int64_t, UndoRecord> rows;  // by age
  std::map<Key, std::int64_t> index;
  std::map<std::pair<std::string, Attribute>, std::int64_t> units;  // of records that systemd owns
  std::vector<std::string> warnings;

  ~State() { insert = {}, update = {}, remove = {}, database.reset(); }

  std::optional<std::int64_t> row_of(const UndoRecord& record) const {
    if (const auto found = index.find(key_of(record)); found != index.end()) return found->second;
    if (!record.unit.empty()) {
      if (const auto found = units.find({record.unit, record.attribute}); found != units.end())
        return found->second;
    }
    return std::nullopt;
  }
  void put(std::int64_t row, UndoRecord record) {
    drop(row);
    index[key_of(record)] = row;
    if (!record.unit.empty()) units[{record.unit, record.attribute}] = row;
    rows[row] = std::move(record);
  }
  void drop(std::int64_t row) {
    const auto old = rows.find(row);
    if (old == rows.end()) return;
    index.erase(key_of(old->second));
    units.erase({old->second.unit, old->second.attribute});
    rows.erase(old);
  }
};

namespace {

model::Result<std::string> single_text(UndoDatabase& database, const char* sql) {
  auto query = database.prepare(sql);
  if (!query) return model::fail(query.error());
  const auto row = query->step();
  if (!row) return model::fail(row.error());
  return *row ? query->text(0) : std::string();
}

// Opens, checks and brings to this boot.
model::Result<UndoDatabase> open_database(const std::filesystem::path& file, const std::string& boot_id) {
  auto opened = UndoDatabase::open(file);
  if (!opened) return model::fail(opened.error());
  UndoDatabase& database = *opened;
  // The lock file keeps others out; EXCLUSIVE spares SQLite the shared memory that a WAL would need
  // otherwise.
  for (const char* pragma :
       {"PRAGMA locking_mode = EXCLUSIVE", "PRAGMA journal_mode = WAL", "PRAGMA synchronous = FULL"}) {
    if (auto done = database.run(pragma); !done) return model::fail(done.error());
  }
  const auto check = single_text(database, "PRAGMA quick_check(1)");
  if (!check) return model::fail(check.error());
  if (*check != "ok") {
    return model::fail(model::ErrorKind::io,
                       fmt::format("undo journal {}: the file is damaged: {}", file.string(), *check));
  }
  const auto version = single_text(database, "PRAGMA user_version");
  if (!version) return model::fail(version.error());
  if (*version != "0" && *version != fmt::format("{}", kVersion)) {
    return model::fail(
        model::ErrorKind::unavailable,
        fmt::format("undo journal {}: written by a later berthd (format {}, this one knows {}); let that "
                    "one restore the host first",
                    file.string(), *version, kVersion));
  }
  auto transaction = Transaction::begin(database);
  if (!transaction) return model::fail(transaction.error());
  if (*version == "0") {
    if (auto made = database.run(kSchema); !made) return model::fail(made.error());
  }
  const auto boot = single_text(database, "SELECT id FROM boot");
  if (!boot) return model::fail(boot.error());
  if (*boot != boot_id) {
    if (auto cleared = database.run("DELETE FROM undo; DELETE FROM boot"); !cleared)
      return model::fail(cleared.error());
    auto insert = database.prepare("INSERT INTO boot(id) VALUES(?1)");
    if (!insert) return model::fail(insert.error());
    insert->bind(1, boot_id);
    if (auto done = insert->step(); !done) return model::fail(done.error());
  }
  if (auto committed = transaction->commit(); !committed) return model::fail(committed.error());
  return opened;
}

model::Result<std::map<std::int64_t, UndoRecord>> load_rows(UndoDatabase& database) {
  auto query = database.prepare(
      "SELECT seq, path, cgroup_id, attribute, owner, unit, original, note, written, previous FROM undo");
  if (!query) return model::fail(query.error());
  std::map<std::int64_t, UndoRecord> rows;
  while (true) {
    const auto row = query->step();
    if (!row) return model::fail(row.error());
    if (!*row) return rows;
    const auto attribute = attribute_of(query->text(3));
    if (!attribute) {
      return model::fail(
          model::ErrorKind::io,
          fmt::format("undo journal: the file is damaged: no attribute \"{}\"", query->text(3)));
    }
    UndoRecord record{query->text(1), std::bit_cast<std::uint64_t>(query->number(2)),
                      *attribute,     query->text(4),
                      query->text(5), query->text(6),
                      query->text(7), query->text(8),
                      std::nullopt};
    if (!query->is_null(9)) record.previous = query->text(9);
    rows.emplace(query->number(0), std::move(record));
  }
}

}  // namespace

UndoJournal::UndoJournal(std::unique_ptr<State> state) : state_(std::move(state)) {}
UndoJournal::~UndoJournal() = default;

bool UndoJournal::exists(const std::filesystem::path& state_dir) {
  std::error_code ignored;
  return std::filesystem::exists(state_dir / kFile, ignored);
}

model::Result<std::unique_ptr<UndoJournal>> UndoJournal::open(const std::filesystem::path& state_dir,
                                                              const std::string& boot_id) {
  auto lock = take_lock(state_dir, boot_id);
  if (!lock) return model::fail(lock.error());
  auto state = std::make_unique<State>();
  state->lock = std::move(*lock);
  const std::filesystem::path file = state_dir / kFile;

  auto database = open_database(file, boot_id);
  auto rows = database ? load_rows(*database) : model::fail(database.error());
  if (!rows && is_damage(rows.error())) {
    if (state->lock.last_boot.empty() || state->lock.last_boot == boot_id) {
      return model::fail(
          model::Error(rows.error().kind(), fmt::format("{}. What berth changed since the host booted may be "
                                                        "recorded there, so it changes nothing more. "
                                                        "Look at AllowedCPUs=, CPUQuota=, MemoryHigh= in "
                                                        "/run/systemd/system.control, then move the file "
                                                        "away, or reboot",
                                                        rows.error().message())));
    }
    database = model::fail(model::ErrorKind::io, "closed");
    const std::filesystem::path aside = state_dir / "undo.db.damaged";
    std::error_code error;
    std::filesystem::rename(file, aside, error);
    if (error) {
      return model::fail(model::Error::from_errno(
          error.value(), fmt::format("undo journal: moving the damaged {} away", file.string())));
    }
    std::filesystem::remove(file.string() + "-wal", error);
    state->warnings.push_back(
        fmt::format("undo journal {} was damaged; its records were of an earlier boot and void, so it was "
                    "moved to {} and begun anew",
                    file.string(), aside.string()));
    database = open_database(file, boot_id);
    rows = database ? load_rows(*database) : model::fail(database.error());
  }
  if (!rows) return model::fail(rows.error());

  auto insert = database->prepare(
      "INSERT INTO undo(path, cgroup_id, attribute, owner, unit, original, note, written, previous, seq)"
      " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)");
  auto update = database->prepare(
      "UPDATE undo SET path = ?1, cgroup_id = ?2, owner = ?3, unit = ?4, written = ?5, previous = ?6 WHERE "
      "seq = ?7");
  auto remove = database->prepare("DELETE FROM undo WHERE seq = ?1");
  for (const auto* statement : {&insert, &update, &remove}) {
    if (!*statement) return model::fail(statement->error());
  }
  state->insert = std::move(*insert);
  state->update = std::move(*update);
  state->remove = std::move(*remove);
  state->database = std::move(*database);
  for (auto& [row, record] : *rows) state->put(row, std::move(record));
  return std::unique_ptr<UndoJournal>(new UndoJournal(std::move(state)));
}

model::Result<void> UndoJournal::record(const UndoRecord& record) {
  return this->record(std::span(&record, 1));
}

model::Result<void> UndoJournal::record(std::span<const UndoRecord> records) {
  if (records.empty()) return {};
  auto transaction = Transaction::begin(*state_->database);
  if (!transaction) return model::fail(transaction.error());
  std::vector<std::pair<std::int64_t, UndoRecord>> done;
  std::int64_t next = state_->rows.empty() ? 1 : state_->rows.rbegin()->first + 1;
  for (const UndoRecord& record : records) {
    const auto bind_previous = [&](UndoDatabase::Statement& statement, int index) {
      record.previous ? statement.bind(index, *record.previous) : statement.bind_null(index);
    };
    const auto old = state_->row_of(record);
    UndoDatabase::Statement& statement = old ? state_->update : state_->insert;
    if (old) {
      statement.bind(1, record.path);
      statement.bind(2, stored(record.cgroup_id));
      statement.bind(3, record.owner);
      statement.bind(4, record.unit);
      statement.bind(5, record.written);
      bind_previous(statement, 6);
      statement.bind(7, *old);
      UndoRecord merged = record;
      merged.original = state_->rows.at(*old).original;
      merged.note = state_->rows.at(*old).note;
      done.emplace_back(*old, std::move(merged));
    } else {
      statement.bind(1, record.path);
      statement.bind(2, stored(record.cgroup_id));
      statement.bind(3, control_file(record.attribute));
      statement.bind(4, record.owner);
      statement.bind(5, record.unit);
      statement.bind(6, record.original);
      statement.bind(7, record.note);
      statement.bind(8, record.written);
      bind_previous(statement, 9);
      statement.bind(10, next);
      done.emplace_back(next++, record);
    }
    if (auto stepped = statement.step(); !stepped) return model::fail(stepped.error());
  }
  if (auto committed = transaction->commit(); !committed) return model::fail(committed.error());
  for (auto& [row, record] : done) state_->put(row, std::move(record));
  return {};
}

model::Result<void> UndoJournal::forget(const std::string& path, std::uint64_t cgroup_id,
                                        Attribute attribute) {
  const UndoRecord record{path, cgroup_id, attribute, {}, {}, {}, {}, {}, {}};
  return forget(std::span(&record, 1));
}

model::Result<void> UndoJournal::forget(std::span<const UndoRecord> records) {
  std::vector<std::int64_t> rows;
  for (const UndoRecord& record : records) {
    if (const auto row = state_->row_of(record)) rows.push_back(*row);
  }
  if (rows.empty()) return {};
  auto transaction = Transaction::begin(*state_->database);
  if (!transaction) return model::fail(transaction.error());
  for (const std::int64_t row : rows) {
    state_->remove.bind(1, row);
    if (auto stepped = state_->remove.step(); !stepped) return model::fail(stepped.error());
  }
  if (auto committed = transaction->commit(); !committed) return model::fail(committed.error());
  for (const std::int64_t row : rows) state_->drop(row);
  return {};
}

std::optional<UndoRecord> UndoJournal::find(const std::string& path, std::uint64_t cgroup_id,
                                            Attribute attribute) const {
  const auto found = state_->index.find({path, cgroup_id, attribute});
  if (found == state_->index.end()) return std::nullopt;
  return state_->rows.at(found->second);
}

std::optional<UndoRecord> UndoJournal::find_unit(const std::string& unit, Attribute attribute) const {
  const auto found = state_->units.find({unit, attribute});
  if (unit.empty() || found == state_->units.end()) return std::nullopt;
  return state_->rows.at(found->second);
}

std::vector<UndoRecord> UndoJournal::find_path(const std::string& path) const {
  std::map<std::int64_t, UndoRecord> found;
  for (auto at = state_->index.lower_bound({path, 0, Attribute::cpus});
       at != state_->index.end() && std::get<0>(at->first) == path; ++at) {
    found.emplace(at->second, state_->rows.at(at->second));
  }
  std::vector<UndoRecord> records;
  for (auto& [row, record] : found) records.push_back(std::move(record));
  return records;
}

std::vector<UndoRecord> UndoJournal::records() const {
  std::vector<UndoRecord> records;
  records.reserve(state_->rows.size());
  for (const auto& [row, record] : state_->rows) records.push_back(record);
  return records;
}

std::size_t UndoJournal::size() const { return state_->rows.size(); }

const std::vector<std::string>& UndoJournal::warnings() const { return state_->warnings; }

model::Result<std::string> read_boot_id(const std::filesystem::path& proc_root) {
  const std::filesystem::path path = proc_root / "sys/kernel/random/boot_id";
  std::ifstream file(path);
  std::string id;
  if (!(file >> id)) {
    return model::fail(model::ErrorKind::unavailable,
                       fmt::format("reading this boot's id from {}: not readable", path.string()));
  }
  return id;
}

}  // namespace berth::cgroup
