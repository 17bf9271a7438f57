// SPDX-License-Identifier: Apache-2.0
#include "cgroup/systemd_owner.h"

#include "cgroup/direct_owner.h"
#include "cgroup/systemd_owner_bus.h"
#include "model/name.h"

#include <cerrno>
#include <chrono>
#include <fstream>
#include <iterator>
#include <optional>
#include <set>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/core.h>

namespace berth::cgroup {

namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

// The directories where systemd puts the drop-ins of SetUnitProperties(runtime). The second is for units that
// are transient themselves (unit_drop_in_dir in src/core/unit.c).
constexpr const char* kDropInRoots[] = {"system.control", "transient"};

// Content of Original::note: the unit's own setting, and the drop-ins that were there before berth.
struct Note {
  UnitSetting setting;
  std::set<std::string> kept;  // relative to the run directory
};

std::string note_text(Attribute attribute, const Note& note) {
  std::string text = "setting " + setting_text(attribute, note.setting) + "\n";
  for (const std::string& path : note.kept) text += "kept " + path + "\n";
  return text;
}

std::optional<Note> parse_note(Attribute attribute, std::string_view text) {
  Note note;
  bool complete = false;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    if (line.starts_with("setting ")) {
      const auto setting = parse_setting(attribute, line.substr(8));
      if (!setting) return std::nullopt;
      note.setting = *setting;
      complete = true;
    } else if (line.starts_with("kept ")) {
      note.kept.emplace(line.substr(5));
    }
  }
  return complete ? std::optional(note) : std::nullopt;
}

model::Error bad_note(const std::string& unit) {
  return {model::ErrorKind::io, fmt::format("{}: the undo record lacks the unit's own setting", unit)};
}

std::string content(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace

struct SystemdOwner::State {
  explicit State(Options with) : options(std::move(with)), bus(options.call_timeout, options.patience) {}

  Options options;
  SystemdBus bus;
  std::set<std::string> touched;  // units that may have to be read again

  std::vector<std::string> drop_ins(const std::string& unit, Attribute attribute) const {
    std::vector<std::string> paths;
    for (const char* root : kDropInRoots) {
      for (const std::string& name : drop_in_names(attribute)) {
        std::string path = fmt::format("{}/{}.d/{}", root, unit, name);
        std::error_code ignored;
        if (fs::is_regular_file(options.run_dir / path, ignored)) paths.push_back(std::move(path));
      }
    }
    return paths;
  }

  // Removes one drop-in, and its directory if that is empty then.
  model::Result<void> remove(const std::string& path) const {
    std::error_code error;
    fs::remove(options.run_dir / path, error);
    if (error) {
      return model::fail(model::Error::from_errno(
          error.value(), fmt::format("removing the drop-in {}", (options.run_dir / path).string())));
    }
    fs::remove((options.run_dir / path).parent_path(), error);  // refuses where the directory is not empty
    return {};
  }
};

SystemdOwner::SystemdOwner(Options options) : state_(std::make_unique<State>(std::move(options))) {}
SystemdOwner::~SystemdOwner() = default;

model::Result<std::unique_ptr<SystemdOwner>> SystemdOwner::connect(Options options) {
  auto owner = std::make_unique<SystemdOwner>(std::move(options));
  if (const auto answer = owner->greet(); !answer)
    return model::fail(model::ErrorKind::unavailable, answer.error().message());
  return owner;
}

model::Result<void> SystemdOwner::greet() { return state_->bus.greet(); }
void SystemdOwner::be_patient() { state_->bus.be_patient(); }
bool SystemdOwner::is_busy(const Target& /*target*/, Attribute /*attribute*/) const {
  return state_->bus.is_busy();
}

Value SystemdOwner::attainable(const Value& value) const {
  const auto* limit = std::get_if<CpuMax>(&value);
  return limit != nullptr ? whole_percents(*limit) : value;
}

model::Result<Original> SystemdOwner::original(const Target& target, Attribute attribute) {
  const auto value = current(target, attribute);
  if (!value) return model::fail(value.error());
  const auto setting = state_->bus.read(target.unit, attribute);
  if (!setting) return model::fail(setting.error());
  const auto there = state_->drop_ins(target.unit, attribute);
  return Original{*value, note_text(attribute, {*setting, {there.begin(), there.end()}})};
}

model::Result<Value> SystemdOwner::current(const Target& target, Attribute attribute) {
  if (target.cgroup != nullptr) return read_value(*target.cgroup, attribute);
  const auto loaded = state_->bus.is_loaded(target.unit);
  if (!loaded) return model::fail(loaded.error());
  if (!*loaded)
    return model::fail(model::ErrorKind::gone, fmt::format("systemd has no unit {}", target.unit));
  const auto setting = state_->bus.read(target.unit, attribute);
  if (!setting) return model::fail(setting.error());
  return value_of(attribute, *setting);
}

model::Result<void> SystemdOwner::set(const Target& target, const Value& value) {
  const Attribute attribute = attribute_of(value);
  if (auto done = state_->bus.write(target.unit, attribute, setting_of(value)); !done) return done;
  if (target.cgroup == nullptr) return {};
  auto now = read_value(*target.cgroup, attribute);
  // systemd writes the file before it answers. It may defer the write where it first has to enable
  // controllers above.
  for (int attempt = 0; attempt < 4 && now && *now != value; ++attempt) {
    std::this_thread::sleep_for(2ms);
    now = read_value(*target.cgroup, attribute);
  }
  if (!now) return model::fail(now.error());
  if (*now == value) {
    if (const auto* nodes = std::get_if<MemoryNodes>(&value)) return check_granted(*target.cgroup, *nodes);
    const auto* cpus = std::get_if<model::CpuSet>(&value);
    if (cpus == nullptr) return {};
    return check_granted(*target.cgroup, *cpus, state_->options.cgroup_root);
  }
  if (!target.cgroup->has(control_file(attribute))) {
    return model::fail(model::ErrorKind::unavailable,
                       fmt::format("systemd accepted it for {}, but did not enable the {} controller there; "
                                   "cgroup.controllers of the v2 root shows whether the host has it",
                                   target.unit, controller(attribute)));
  }
  const auto* limit = std::get_if<CpuMax>(&value);
  const auto burst = limit != nullptr ? burst_above(*target.cgroup, *limit) : std::nullopt;
  return model::fail(
      model::ErrorKind::io,
      fmt::format("systemd accepted it for {}, but {} reads \"{}\": the kernel refused it ({})", target.unit,
                  control_file(attribute), to_text(*now), burst.value_or("journalctl -u " + target.unit)));
}

model::Result<Value> SystemdOwner::reset(const Target& target, const Original& original) {
  const Attribute attribute = attribute_of(original.value);
  const auto note = parse_note(attribute, original.note);
  if (!note) return model::fail(bad_note(target.unit));
  if (target.cgroup != nullptr) {
    if (auto lowered = lower_burst_to(*target.cgroup, original.value); !lowered)
      return model::fail(lowered.error());
  }
  const auto done = state_->bus.write(target.unit, attribute, note->setting);
  if (!done && done.error().kind() != model::ErrorKind::gone) return model::fail(done.error());
  for (const std::string& path : state_->drop_ins(target.unit, attribute)) {
    if (note->kept.contains(path)) continue;
    if (auto removed = state_->remove(path); !removed) return model::fail(removed.error());
  }
  state_->touched.insert(target.unit);
  if (!done) return model::fail(done.error());
  if (target.cgroup == nullptr) return original.value;

  auto now = read_value(*target.cgroup, attribute);
  if (!now || *now == original.value) return now;
  // Either the file did not hold the unit's setting even before berth, or the kernel refused systemd
  // (clearing a cpulist).
  auto written = write_value(*target.cgroup, original.value, state_->options.sys_root);
  if (written) return written;
  // systemd may have switched the controller off meanwhile, which puts the unset value back.
  const auto after = read_value(*target.cgroup, attribute);
  return after && *after == original.value ? after : written;
}

model::Result<void> SystemdOwner::relinquish(const Target& target, const Original& original,
                                             const Value& written) {
  const Attribute attribute = attribute_of(written);
  const auto note = parse_note(attribute, original.note);
  if (!note) return model::fail(bad_note(target.unit));
  const UnitSetting ours = setting_of(written);

  const auto loaded = state_->bus.is_loaded(target.unit);
  if (!loaded && loaded.error().kind() != model::ErrorKind::gone) return model::fail(loaded.error());
  bool configured = false;  // systemd would still apply what berth wrote
  if (loaded && *loaded) {
    const auto setting = state_->bus.read(target.unit, attribute);
    if (!setting) return model::fail(setting.error());
    configured = *setting == ours && *setting != note->setting;
  }
  if (configured) {
    // Another program wrote the file past systemd. That value stays; only systemd's is put back.
    const auto theirs = target.cgroup != nullptr ? read_value(*target.cgroup, attribute)
                                                 : model::Result<Value>(unset_value(attribute));
    if (auto done = state_->bus.write(target.unit, attribute, note->setting); !done) return done;
    if (target.cgroup != nullptr && theirs) {
      const auto now = read_value(*target.cgroup, attribute);
      // Of idle priority that was ended by cpu.idle alone, systemd's weight is what berth's write had lost.
      if (now && *now != *theirs && !has_lost_weight(written, *theirs)) {
        if (auto back = write_value(*target.cgroup, *theirs, state_->options.sys_root); !back) {
          return model::fail(back.error());
        }
      }
    }
  }
  for (const std::string& path : state_->drop_ins(target.unit, attribute)) {
    if (note->kept.contains(path)) continue;
    const std::string text = content(state_->options.run_dir / path);
    if (!drop_in_holds(attribute, text, ours) && !drop_in_holds(attribute, text, note->setting)) continue;
    if (auto removed = state_->remove(path); !removed) return removed;
  }
  state_->touched.insert(target.unit);
  return {};
}

model::Result<bool> SystemdOwner::merged(const Target& target, const Original& original, const Value& written,
                                         const Value& current) {
  const Attribute attribute = attribute_of(written);
  const auto note = parse_note(attribute, original.note);
  if (attribute != Attribute::cpus || !note || note->setting.allowed_cpus.empty()) return false;
  UnitSetting both = setting_of(written);
  const UnitSetting ours = both;
  both.allowed_cpus |= note->setting.allowed_cpus;
  if (current != value_of(attribute, both)) return false;
  const auto paths = state_->drop_ins(target.unit, attribute);
  if (paths.empty()) return false;
  for (const std::string& path : paths) {
    if (!drop_in_holds(attribute, content(state_->options.run_dir / path), ours)) return false;
  }
  const auto setting = state_->bus.read(target.unit, attribute);
  if (!setting) return model::fail(setting.error());
  return *setting == both;
}

model::Result<void> SystemdOwner::stop_unit(const std::string& unit,
                                            const std::function<bool()>& is_same_run) {
  const auto bound = state_->bus.running_bound_units(unit);
  if (!bound) return model::fail(bound.error());
  if (!bound->empty()) {
    return model::fail(model::ErrorKind::refused,
                       fmt::format("{} would end with {}, because it is bound to that unit",
                                   model::joined(*bound, ", "), unit));
  }
  const auto run = state_->bus.invocation(unit);
  if (!run) return model::fail(run.error());
  if (run->empty() || !is_same_run())
    return model::fail(model::ErrorKind::gone, fmt::format("the run of {} is over", unit));
  return state_->bus.stop_run(*run);
}

model::Result<void> SystemdOwner::start_scope(const Scope& scope) { return state_->bus.start_scope(scope); }

model::Result<UnitTraits> SystemdOwner::traits(const std::string& unit, const std::set<Attribute>& held) {
  return state_->bus.traits(unit, held);
}

model::Result<void> SystemdOwner::settle() {
  while (!state_->touched.empty()) {
    const auto unit = state_->touched.extract(state_->touched.begin()).value();
    const auto needed = state_->bus.needs_reload(unit);
    if (!needed && needed.error().kind() == model::ErrorKind::transient) {
      state_->touched.insert(unit);  // the next batch asks again
      return {};
    }
    if (!needed || !*needed) continue;
    state_->touched.clear();
    const auto done = state_->bus.reload();
    // Without an answer yet, systemd still reads its units, or does so later.
    if (done || done.error().kind() == model::ErrorKind::transient) return {};
    return model::fail(done.error().context(fmt::format(
        "everything is restored, but systemctl may warn that {} changed on disk until daemon-reload", unit)));
  }
  return {};
}

}  // namespace berth::cgroup
