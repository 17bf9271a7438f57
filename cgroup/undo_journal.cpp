// SPDX-License-Identifier: Apache-2.0
#include "cgroup/undo_journal.h"

#include "cgroup/undo_journal_file.h"
#include "os/file_descriptor.h"
#include "os/sqlite.h"

#include <bit>
#include <fstream>
#include <map>
#include <tuple>
#include <utility>

#include <fmt/core.h>

namespace berth::cgroup {

namespace {

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
  std::map<std::int64_t, UndoRecord> rows;  // by age
  std::map<Key, std::int64_t> index;
  std::map<std::pair<std::string, Attribute>, std::int64_t> units;  // of records that systemd owns
  std::vector<std::string> warnings;

  ~State() { insert = {}, update = {}, remove = {}, database.reset(); }

  std::optional<std::int64_t> row_of(const UndoRecord& record) const {
    if (const auto found = index.find(key_of(record)); found != index.end()) return found->second;
    if (!record.unit.empty()) {
      if (const auto found = units.find({record.unit, record.attribute()}); found != units.end())
        return found->second;
    }
    return std::nullopt;
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
  for (const auto* statement : {&insert, &update, &remove}) {
    if (!*statement) return model::fail(statement->error());
  }
  state->insert = std::move(*insert);
  state->update = std::move(*update);
  state->remove = std::move(*remove);
  state->lock = std::move(opened->lock);
  state->database = std::move(opened->database);
  state->warnings = std::move(opened->warnings);
  for (auto& [row, record] : opened->rows) state->put(row, std::move(record));
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
