// SPDX-License-Identifier: Apache-2.0
#include "cgroup/undo_journal_file.h"

#include "os/lock_file.h"

#include <bit>
#include <cerrno>
#include <utility>

#include <fmt/core.h>
#include <sys/stat.h>

namespace berth::cgroup {

namespace {

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
  if (*version != "0" && *version != fmt::format("{}", kVersion)) {
    return model::fail(
        model::ErrorKind::unavailable,
        fmt::format("undo journal {}: written by a later berthd (format {}, this one knows {}); restore "
                    "the host with that version first",
                    file.string(), *version, kVersion));
  }
  auto transaction = os::Transaction::begin(database);
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

}  // namespace

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
  auto rows = database ? load_rows(*database) : model::fail(database.error());
  if (!rows && os::is_damage(rows.error())) {
    const std::string last_boot = os::text_of_holder(lock->before);
    if (last_boot.empty() || last_boot == boot_id) {
      return model::fail(
          model::Error(rows.error().kind(),
                       fmt::format("{}. It may record changes since the host booted, so "
                                   "berth changes nothing more. "
                                   "Look at AllowedCPUs=, CPUQuota=, MemoryHigh=, AllowedMemoryNodes=, "
                                   "CPUWeight= in /run/systemd/system.control, then move the file "
                                   "away, or reboot",
                                   rows.error().message())));
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
    rows = database ? load_rows(*database) : model::fail(database.error());
  }
  if (!rows) return model::fail(rows.error());
  opened.database = std::move(*database);
  opened.rows = std::move(*rows);
  return opened;
}

}  // namespace berth::cgroup
