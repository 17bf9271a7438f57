// SPDX-License-Identifier: Apache-2.0
#include "cgroup/undo_journal.h"

#include "os/file_descriptor.h"
#include "os/lock_file.h"
#include "os/sqlite.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <sys/stat.h>

namespace berth::cgroup {

namespace {

// Name of the journal's database in the state directory.
constexpr const char* kUndoFile = "undo.db";

// The journal's file, locked by this process: sound, of a version it knows, with the records of this boot
// only.
struct OpenUndoFile {
  os::FileDescriptor lock;  // held as long as the file is in use; let go after the database
  std::optional<os::Database> database;
  std::map<std::int64_t, UndoRecord> rows;  // by age
  std::map<std::string, HostRecord> host;   // by name
  std::vector<std::string> warnings;        // damage that was mended
};

constexpr const char* kLock = "undo.lock";
// Version 2 has a record of the host that is to be put back. Any other file is of version 1, so that an
// earlier berthd can go on with it; that one knows no such records.
constexpr int kVersion = 2;

constexpr const char* kSchema =
    "CREATE TABLE boot(id TEXT NOT NULL);"
    "CREATE TABLE undo("
    "  seq INTEGER PRIMARY KEY AUTOINCREMENT,"
    "  path TEXT NOT NULL, cgroup_id INTEGER NOT NULL, attribute TEXT NOT NULL,"
    "  owner TEXT NOT NULL, unit TEXT NOT NULL,"
    "  original TEXT NOT NULL, note TEXT NOT NULL, written TEXT NOT NULL, previous TEXT,"
    "  UNIQUE(path, cgroup_id, attribute));";
constexpr const char* kHostSchema =
    "CREATE TABLE IF NOT EXISTS host("
    "  name TEXT PRIMARY KEY, original TEXT NOT NULL, written TEXT NOT NULL, previous TEXT);";

model::Result<os::LockFile> lock_journal(const std::filesystem::path& directory, const std::string& boot_id) {
  const auto where = [&] {
    return fmt::format("runtime directory {} (RuntimeDirectory= of berthd.service, or --runtime-dir)",
                       directory.string());
  };
  struct stat status {};
  if (stat(directory.c_str(), &status) != 0) return model::fail(model::Error::from_errno(errno, where()));
  if (!S_ISDIR(status.st_mode)) return model::fail(model::Error::from_errno(ENOTDIR, where()));
  return os::take_lock(directory / kLock, "undo journal", boot_id);
}

model::Result<std::string> single_text(os::Database& database, const char* sql) {
  auto query = database.prepare(sql);
  if (!query) return model::fail(query.error());
  const auto row = query->step();
  if (!row) return model::fail(row.error());
  return *row ? query->text(0) : std::string();
}

// A berthd that hangs keeps SQLite's own locks, and a write that it is in may still come. So it keeps the old
// files, and this process gets copies.
model::Result<void> leave_to_hung_holder(const std::filesystem::path& file) {
  for (const char* suffix : {"-wal", ""}) {  // while the lock of the last one stays, this is done again
    const std::filesystem::path from = file.string() + suffix;
    const std::filesystem::path copy = from.string() + ".new";
    std::error_code error;
    if (!std::filesystem::exists(from, error) && !error) continue;
    if (!error)
      std::filesystem::copy_file(from, copy, std::filesystem::copy_options::overwrite_existing, error);
    if (!error) std::filesystem::rename(copy, from, error);
    if (error)
      return model::fail(model::Error::from_errno(error.value(), "undo journal: copying " + from.string()));
  }
  return {};
}

model::Result<void> set_version(os::Database& database, bool has_host) {
  return database.run(has_host ? "PRAGMA user_version = 2" : "PRAGMA user_version = 1");
}

// Opens, checks and brings to this boot.
model::Result<os::Database> open_database(const std::filesystem::path& file, const std::string& boot_id) {
  auto opened = os::Database::open(file, "undo journal");
  if (!opened) return model::fail(opened.error());
  os::Database& database = *opened;
  // The lock file keeps others out; EXCLUSIVE spares SQLite the shared memory that a WAL would need
  // otherwise.
  for (const char* pragma :
       {"PRAGMA locking_mode = EXCLUSIVE", "PRAGMA journal_mode = WAL", "PRAGMA synchronous = OFF"}) {
    if (auto done = database.run(pragma); !done) return model::fail(done.error());
  }
  const auto check = single_text(database, "PRAGMA quick_check(1)");
  if (!check) return model::fail(check.error());
  if (*check != "ok") {
    return model::fail(os::damaged(fmt::format("undo journal {}", file.string()), *check));
  }
  const auto version = single_text(database, "PRAGMA user_version");
  if (!version) return model::fail(version.error());
  const std::string known = fmt::format("{}", kVersion);
  if (*version != "0" && *version != "1" && *version != known) {
    return model::fail(
        model::ErrorKind::unavailable,
        fmt::format("undo journal {}: written by a later berthd (format {}, this one knows {}); run "
                    "`berthd --restore` of that version, or reboot",
                    file.string(), *version, kVersion));
  }
  auto transaction = os::Transaction::begin(database);
  if (!transaction) return model::fail(transaction.error());
  if (*version == "0") {
    if (auto made = database.run(kSchema); !made) return model::fail(made.error());
  }
  if (auto made = database.run(kHostSchema); !made) return model::fail(made.error());
  const auto boot = single_text(database, "SELECT id FROM boot");
  if (!boot) return model::fail(boot.error());
  if (*boot != boot_id) {
    if (auto cleared = database.run("DELETE FROM undo; DELETE FROM host; DELETE FROM boot"); !cleared)
      return model::fail(cleared.error());
    auto insert = database.prepare("INSERT INTO boot(id) VALUES(?1)");
    if (!insert) return model::fail(insert.error());
    insert->bind(1, boot_id);
    if (auto done = insert->step(); !done) return model::fail(done.error());
  }
  const auto host = single_text(database, "SELECT count(*) FROM host WHERE written != original");
  if (!host) return model::fail(host.error());
  if (const std::string fits = *host == "0" ? "1" : known; fits != *version) {
    if (auto set = set_version(database, fits == known); !set) return model::fail(set.error());
  }
  if (auto committed = transaction->commit(); !committed) return model::fail(committed.error());
  return opened;
}

model::Result<std::map<std::int64_t, UndoRecord>> load_rows(os::Database& database) {
  auto query = database.prepare(
      "SELECT seq, path, cgroup_id, attribute, owner, unit, original, note, written, previous FROM undo");
  if (!query) return model::fail(query.error());
  std::map<std::int64_t, UndoRecord> rows;
  while (true) {
    const auto row = query->step();
    if (!row) return model::fail(row.error());
    if (!*row) return rows;
    const auto attribute = model::attribute_of(query->text(3));
    if (!attribute) {
      return model::fail(os::damaged("undo journal", fmt::format("no attribute \"{}\"", query->text(3))));
    }
    UndoRecord record;
    record.path = query->text(1);
    record.cgroup_id = std::bit_cast<std::uint64_t>(query->number(2));
    record.owner = query->text(4);
    record.unit = query->text(5);
    record.note = query->text(7);
    const auto value = [&](int column) { return parse_value(*attribute, query->text(column)); };
    const auto original = value(6);
    const auto written = value(8);
    const auto previous = query->is_null(9) ? written : value(9);
    for (const auto* parsed : {&original, &written, &previous}) {
      if (!*parsed) return model::fail(os::damaged("undo journal", parsed->error().message()));
    }
    record.original = *original;
    record.written = *written;
    if (!query->is_null(9)) record.previous = *previous;
    rows.emplace(query->number(0), std::move(record));
  }
}

model::Result<std::map<std::string, HostRecord>> load_host(os::Database& database) {
  auto query = database.prepare("SELECT name, original, written, previous FROM host");
  if (!query) return model::fail(query.error());
  std::map<std::string, HostRecord> host;
  while (true) {
    const auto row = query->step();
    if (!row) return model::fail(row.error());
    if (!*row) return host;
    HostRecord record{query->text(0), query->text(1), query->text(2), std::nullopt};
    if (!query->is_null(3)) record.previous = query->text(3);
    host.insert_or_assign(record.name, std::move(record));
  }
}

using Content = std::pair<std::map<std::int64_t, UndoRecord>, std::map<std::string, HostRecord>>;
model::Result<Content> load(os::Database& database) {
  auto rows = load_rows(database);
  if (!rows) return model::fail(rows.error());
  auto host = load_host(database);
  if (!host) return model::fail(host.error());
  return Content{std::move(*rows), std::move(*host)};
}

// Error as UndoJournal::open().
model::Result<OpenUndoFile> open_undo_file(const std::filesystem::path& directory,
                                           const std::string& boot_id) {
  auto lock = lock_journal(directory, boot_id);
  if (!lock) return model::fail(lock.error());
  OpenUndoFile opened;
  opened.lock = std::move(lock->fd);
  const std::filesystem::path file = directory / kUndoFile;
  auto database = open_database(file, boot_id);
  if (!database && database.error().kind() == model::ErrorKind::transient) {  // SQLite's lock is another's
    if (auto copied = leave_to_hung_holder(file); !copied) return model::fail(copied.error());
    database = open_database(file, boot_id);
  }
  auto content = database ? load(*database) : model::fail(database.error());
  if (!content && os::is_damage(content.error())) {
    const std::string last_boot = os::text_of_holder(lock->before);
    if (last_boot.empty() || last_boot == boot_id) {
      return model::fail(model::Error(
          content.error().kind(),
          fmt::format("{}. It may record changes since the host booted, so "
                      "berth changes nothing more. "
                      "Look at AllowedCPUs=, CPUQuota=, MemoryHigh=, AllowedMemoryNodes=, "
                      "CPUWeight= in /run/systemd/system.control, at cpu.max.burst and /proc/irq, restart "
                      "irqbalance, then move the file away, or reboot",
                      content.error().message())));
    }
    database = model::fail(model::ErrorKind::io, "closed");
    const std::filesystem::path aside = directory / "undo.db.damaged";
    std::error_code error;
    std::filesystem::rename(file, aside, error);
    if (error) {
      return model::fail(model::Error::from_errno(
          error.value(), fmt::format("undo journal: moving the damaged {} away", file.string())));
    }
    std::filesystem::remove(file.string() + "-wal", error);
    opened.warnings.push_back(
        fmt::format("undo journal {} was damaged; its records were of an earlier boot and are void, so berth "
                    "moved it to {} and began a new one",
                    file.string(), aside.string()));
    database = open_database(file, boot_id);
    content = database ? load(*database) : model::fail(database.error());
  }
  if (!content) return model::fail(content.error());
  opened.database = std::move(*database);
  opened.rows = std::move(content->first);
  opened.host = std::move(content->second);
  return opened;
}

std::size_t host_to_put_back(const std::map<std::string, HostRecord>& host) {
  return static_cast<std::size_t>(
      std::ranges::count_if(host, [](const auto& entry) { return !entry.second.is_undone(); }));
}

using Key = std::tuple<std::string, std::uint64_t, Attribute>;
Key key_of(const UndoRecord& record) { return {record.path, record.cgroup_id, record.attribute()}; }

// SQLite's integers are signed.
std::int64_t stored(std::uint64_t id) { return std::bit_cast<std::int64_t>(id); }

}  // namespace

struct UndoJournal::State {
  os::FileDescriptor lock;
  std::optional<os::Database> database;  // closed before the lock is let go
  os::Database::Statement insert;
  os::Database::Statement update;
  os::Database::Statement remove;
  os::Database::Statement put_host;
  os::Database::Statement remove_host;
  std::map<std::int64_t, UndoRecord> rows;  // by age
  std::map<std::string, HostRecord> host;   // by name
  std::map<Key, std::int64_t> index;
  std::map<std::pair<std::string, Attribute>, std::int64_t> units;  // of records that systemd owns
  std::vector<std::string> warnings;

  ~State() {
    insert = {}, update = {}, remove = {}, put_host = {}, remove_host = {};
    database.reset();
  }

  std::optional<std::int64_t> row_of(const UndoRecord& record) const {
    if (const auto found = index.find(key_of(record)); found != index.end()) return found->second;
    if (!record.unit.empty()) {
      if (const auto found = units.find({record.unit, record.attribute()}); found != units.end())
        return found->second;
    }
    return std::nullopt;
  }
  // Ends a change of the host's records.
  model::Result<void> commit(os::Transaction& transaction, std::map<std::string, HostRecord> now) {
    const bool had_any = host_to_put_back(host) > 0;
    const bool has_any = host_to_put_back(now) > 0;
    if (had_any != has_any) {
      if (auto set = set_version(*database, has_any); !set) return set;
    }
    if (auto committed = transaction.commit(); !committed) return committed;
    host = std::move(now);
    return {};
  }
  void put(std::int64_t row, UndoRecord record) {
    drop(row);
    index[key_of(record)] = row;
    if (!record.unit.empty()) units[{record.unit, record.attribute()}] = row;
    rows[row] = std::move(record);
  }
  void drop(std::int64_t row) {
    const auto old = rows.find(row);
    if (old == rows.end()) return;
    index.erase(key_of(old->second));
    units.erase({old->second.unit, old->second.attribute()});
    rows.erase(old);
  }
};

UndoJournal::UndoJournal(std::unique_ptr<State> state) : state_(std::move(state)) {}
UndoJournal::~UndoJournal() = default;

model::Result<bool> UndoJournal::exists(const std::filesystem::path& directory) {
  const std::filesystem::path file = directory / kUndoFile;
  std::error_code error;
  const bool found = std::filesystem::exists(file, error);
  if (!error) return found;
  auto failed = model::Error::from_errno(error.value(), "cannot look at " + file.string());
  if (failed.kind() != model::ErrorKind::permission) return model::fail(std::move(failed));
  return model::fail(failed.kind(), failed.message() + "; run as root");
}

model::Result<std::unique_ptr<UndoJournal>> UndoJournal::open(const std::filesystem::path& directory,
                                                              const std::string& boot_id) {
  auto opened = open_undo_file(directory, boot_id);
  if (!opened) return model::fail(opened.error());
  auto state = std::make_unique<State>();
  os::Database& database = *opened->database;
  auto insert = database.prepare(
      "INSERT INTO undo(path, cgroup_id, attribute, owner, unit, original, note, written, previous, seq)"
      " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)");
  auto update = database.prepare(
      "UPDATE undo SET path = ?1, cgroup_id = ?2, owner = ?3, unit = ?4, written = ?5, previous = ?6 WHERE "
      "seq = ?7");
  auto remove = database.prepare("DELETE FROM undo WHERE seq = ?1");
  auto put_host = database.prepare(
      "INSERT OR REPLACE INTO host(name, original, written, previous) VALUES(?1, ?2, ?3, ?4)");
  auto remove_host = database.prepare("DELETE FROM host WHERE name = ?1");
  for (const auto* statement : {&insert, &update, &remove, &put_host, &remove_host}) {
    if (!*statement) return model::fail(statement->error());
  }
  state->insert = std::move(*insert);
  state->update = std::move(*update);
  state->remove = std::move(*remove);
  state->put_host = std::move(*put_host);
  state->remove_host = std::move(*remove_host);
  state->lock = std::move(opened->lock);
  state->database = std::move(opened->database);
  state->warnings = std::move(opened->warnings);
  for (auto& [row, record] : opened->rows) state->put(row, std::move(record));
  state->host = std::move(opened->host);
  return std::unique_ptr<UndoJournal>(new UndoJournal(std::move(state)));
}

model::Result<void> UndoJournal::record(const UndoRecord& record) {
  return this->record(std::span(&record, 1));
}

model::Result<void> UndoJournal::record(std::span<const UndoRecord> records) {
  if (records.empty()) return {};
  auto transaction = os::Transaction::begin(*state_->database);
  if (!transaction) return model::fail(transaction.error());
  std::vector<std::pair<std::int64_t, UndoRecord>> done;
  std::int64_t next = state_->rows.empty() ? 1 : state_->rows.rbegin()->first + 1;
  for (const UndoRecord& record : records) {
    const auto bind_previous = [&](os::Database::Statement& statement, int index) {
      record.previous ? statement.bind(index, to_text(*record.previous)) : statement.bind_null(index);
    };
    const auto old = state_->row_of(record);
    os::Database::Statement& statement = old ? state_->update : state_->insert;
    if (old) {
      statement.bind(1, record.path);
      statement.bind(2, stored(record.cgroup_id));
      statement.bind(3, record.owner);
      statement.bind(4, record.unit);
      statement.bind(5, to_text(record.written));
      bind_previous(statement, 6);
      statement.bind(7, *old);
      UndoRecord merged = record;
      merged.original = state_->rows.at(*old).original;
      merged.note = state_->rows.at(*old).note;
      done.emplace_back(*old, std::move(merged));
    } else {
      statement.bind(1, record.path);
      statement.bind(2, stored(record.cgroup_id));
      statement.bind(3, control_file(record.attribute()));
      statement.bind(4, record.owner);
      statement.bind(5, record.unit);
      statement.bind(6, to_text(record.original));
      statement.bind(7, record.note);
      statement.bind(8, to_text(record.written));
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
  UndoRecord record;
  record.path = path;
  record.cgroup_id = cgroup_id;
  record.written = unset_value(attribute);
  return forget(std::span(&record, 1));
}

model::Result<void> UndoJournal::forget(std::span<const UndoRecord> records) {
  std::vector<std::int64_t> rows;
  for (const UndoRecord& record : records) {
    if (const auto row = state_->row_of(record)) rows.push_back(*row);
  }
  if (rows.empty()) return {};
  auto transaction = os::Transaction::begin(*state_->database);
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
  records.reserve(found.size());
  for (auto& [row, record] : found) records.push_back(std::move(record));
  return records;
}

std::vector<UndoRecord> UndoJournal::records() const {
  std::vector<UndoRecord> records;
  records.reserve(state_->rows.size());
  for (const auto& [row, record] : state_->rows) records.push_back(record);
  return records;
}

model::Result<void> UndoJournal::record(std::span<const HostRecord> records) {
  if (records.empty()) return {};
  auto transaction = os::Transaction::begin(*state_->database);
  if (!transaction) return model::fail(transaction.error());
  std::vector<HostRecord> done;
  for (const HostRecord& record : records) {
    const auto old = state_->host.find(record.name);
    done.push_back(record);
    if (old != state_->host.end()) done.back().original = old->second.original;
    os::Database::Statement& statement = state_->put_host;
    statement.bind(1, record.name);
    statement.bind(2, done.back().original);
    statement.bind(3, record.written);
    record.previous ? statement.bind(4, *record.previous) : statement.bind_null(4);
    if (auto stepped = statement.step(); !stepped) return model::fail(stepped.error());
  }
  auto host = state_->host;
  for (HostRecord& record : done) {
    std::string name = record.name;
    host.insert_or_assign(std::move(name), std::move(record));
  }
  return state_->commit(*transaction, std::move(host));
}

model::Result<void> UndoJournal::forget_host(std::span<const std::string> names) {
  if (std::ranges::none_of(names, [this](const auto& name) { return state_->host.contains(name); }))
    return {};
  auto transaction = os::Transaction::begin(*state_->database);
  if (!transaction) return model::fail(transaction.error());
  for (const std::string& name : names) {
    state_->remove_host.bind(1, name);
    if (auto stepped = state_->remove_host.step(); !stepped) return model::fail(stepped.error());
  }
  auto host = state_->host;
  for (const std::string& name : names) host.erase(name);
  return state_->commit(*transaction, std::move(host));
}

const std::map<std::string, HostRecord>& UndoJournal::host() const { return state_->host; }

std::size_t UndoJournal::size() const { return state_->rows.size() + state_->host.size(); }

std::size_t UndoJournal::to_put_back() const { return state_->rows.size() + host_to_put_back(state_->host); }

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
