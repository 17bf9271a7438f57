// SPDX-License-Identifier: Apache-2.0
#include "fake_systemd.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <utility>

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <systemd/sd-bus.h>
#include <unistd.h>

namespace berth::cgroup {

namespace fs = std::filesystem;

PrivateBus::PrivateBus() {
  const fs::path config = directory_.path() / "bus.conf";
  const std::string socket = "unix:path=" + (directory_.path() / "bus").string();
  put_file(config, "<busconfig><type>session</type><listen>" + socket +
                       "</listen><auth>EXTERNAL</auth><policy context=\"default\"><allow "
                       "send_destination=\"*\" eavesdrop=\"true\"/><allow eavesdrop=\"true\"/>"
                       "<allow own=\"*\"/></policy></busconfig>");
  std::array<int, 2> ready{};
  if (pipe(ready.data()) != 0) throw std::runtime_error("pipe");
  std::string option = "--config-file=" + config.string();
  std::string print = "--print-address=" + std::to_string(ready[1]);
  std::string program = "dbus-daemon";
  std::string nofork = "--nofork";
  std::array<char*, 5> arguments{program.data(), option.data(), nofork.data(), print.data(), nullptr};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addclose(&actions, ready[0]);
  // It complains there of not being allowed to raise its limits.
  posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  const int failed = posix_spawnp(&pid_, program.c_str(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ready[1]);
  std::array<char, 512> line{};
  // The address comes when it listens; the end of the pipe where it did not start.
  if (failed == 0 && read(ready[0], line.data(), line.size() - 1) > 0) address_ = socket;
  close(ready[0]);
  if (failed != 0) pid_ = -1;
}

PrivateBus::~PrivateBus() {
  if (pid_ <= 0) return;
  kill(pid_, SIGTERM);
  waitpid(pid_, nullptr, 0);
}

namespace {

constexpr const char* kPath = "/org/freedesktop/systemd1";

std::string unit_of(sd_bus_message* message) {
  char* name = nullptr;
  if (sd_bus_path_decode(sd_bus_message_get_path(message), "/org/freedesktop/systemd1/unit", &name) <= 0)
    return {};
  const std::unique_ptr<char, decltype(&std::free)> owned(name, std::free);
  return owned.get();
}

void copy(Attribute attribute, const UnitSetting& from, UnitSetting& to) {
  switch (attribute) {
    case Attribute::cpus:
      to.allowed_cpus = from.allowed_cpus;
      break;
    case Attribute::cpu_quota:
      to.quota_us_per_second = from.quota_us_per_second;
      to.quota_period_us = from.quota_period_us;
      break;
    case Attribute::memory_high:
      to.memory_high_bytes = from.memory_high_bytes;
      break;
    case Attribute::memory_nodes:
      to.allowed_nodes = from.allowed_nodes;
      break;
    case Attribute::cpu_idle:
      to.cpu_weight = from.cpu_weight;
      break;
    case Attribute::cpu_burst:
      break;
  }
}

std::string assigned(const std::string& text, const std::string& key) {
  const std::size_t at = text.find("\n" + key + "=");
  if (at == std::string::npos) return "none";
  const std::size_t begin = at + key.size() + 2;
  return text.substr(begin, text.find('\n', begin) - begin);
}

}  // namespace

FakeSystemd::FakeSystemd(const std::string& address, const ControlTree& tree, fs::path run_dir)
    : tree_(tree), run_dir_(std::move(run_dir)) {
  const auto check = [](int result, const char* what) {
    if (result < 0) throw std::runtime_error(what);
  };
  check(sd_bus_new(&bus_), "sd_bus_new");
  check(sd_bus_set_address(bus_, address.c_str()), "sd_bus_set_address");
  check(sd_bus_set_bus_client(bus_, 1), "sd_bus_set_bus_client");
  check(sd_bus_start(bus_), "sd_bus_start");
  const auto handler = [](sd_bus_message* message, void* self, sd_bus_error*) {
    return static_cast<FakeSystemd*>(self)->handle(message);
  };
  check(sd_bus_add_fallback(bus_, nullptr, kPath, handler, this), "sd_bus_add_fallback");
  check(sd_bus_request_name(bus_, "org.freedesktop.systemd1", 0), "sd_bus_request_name");
  thread_ = std::thread([this] { run(); });
}

FakeSystemd::~FakeSystemd() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  thread_.join();
  sd_bus_flush_close_unref(bus_);
}

void FakeSystemd::run() {
  while (true) {
    {
      const std::lock_guard lock(mutex_);
      if (stop_) return;
    }
    if (const int handled = sd_bus_process(bus_, nullptr); handled < 0)
      return;
    else if (handled == 0)
      sd_bus_wait(bus_, 20'000);
  }
}

int FakeSystemd::handle(sd_bus_message* message) {
  const std::lock_guard lock(mutex_);
  if (silent_) {
    ++unanswered_;
    return 1;
  }
  if (sd_bus_message_is_method_call(message, "org.freedesktop.DBus.Properties", "Get") > 0)
    return handle_get(message);
  if (sd_bus_message_is_method_call(message, "org.freedesktop.systemd1.Manager", "SetUnitProperties") > 0) {
    return handle_set(message);
  }
  if (sd_bus_message_is_method_call(message, "org.freedesktop.systemd1.Manager", "GetUnitByInvocationID") > 0)
    return handle_run(message);
  if (sd_bus_message_is_method_call(message, "org.freedesktop.systemd1.Unit", "Stop") > 0)
    return handle_stop(message);
  if (sd_bus_message_is_method_call(message, "org.freedesktop.DBus.Properties", "GetAll") > 0)
    return handle_all(message);
  if (sd_bus_message_is_method_call(message, "org.freedesktop.systemd1.Manager", "StartTransientUnit") > 0)
    return handle_start(message);
  if (sd_bus_message_is_method_call(message, "org.freedesktop.systemd1.Manager", "GetUnitByPID") > 0) {
    char* path = nullptr;
    if (const int encoded = sd_bus_path_encode("/org/freedesktop/systemd1/unit", kUnitOfAllProcesses, &path);
        encoded < 0)
      return encoded;
    const std::unique_ptr<char, decltype(&std::free)> owned(path, std::free);
    return sd_bus_reply_method_return(message, "o", path);
  }
  if (sd_bus_message_is_method_call(message, "org.freedesktop.systemd1.Manager", "Reload") > 0) {
    for (auto& [name, unit] : units_) load(name, unit);
    ++reloads_;
    return sd_bus_reply_method_return(message, "");
  }
  return 0;
}

// The path of a unit's run: that of a unit with the name "RUN@UNIT".
int FakeSystemd::handle_run(sd_bus_message* message) {
  const void* bytes = nullptr;
  std::size_t size = 0;
  if (const int read = sd_bus_message_read_array(message, 'y', &bytes, &size); read < 0) return read;
  const int run = size > 0 ? *static_cast<const std::uint8_t*>(bytes) : 0;
  for (const auto& [name, unit] : units_) {
    if (unit.run != run) continue;
    char* path = nullptr;
    const std::string of_run = std::to_string(run) + "@" + name;
    if (const int encoded = sd_bus_path_encode("/org/freedesktop/systemd1/unit", of_run.c_str(), &path);
        encoded < 0)
      return encoded;
    const std::unique_ptr<char, decltype(&std::free)> owned(path, std::free);
    if (restarts_after_lookup_) units_.at(name).run = ++last_run_;
    return sd_bus_reply_method_return(message, "o", path);
  }
  return sd_bus_reply_method_errorf(message, "org.freedesktop.systemd1.NoUnitForInvocationID", "No unit");
}

int FakeSystemd::handle_stop(sd_bus_message* message) {
  const char* mode = nullptr;
  if (const int read = sd_bus_message_read(message, "s", &mode); read < 0) return read;
  const std::string of_run = unit_of(message);
  const std::string name = of_run.substr(of_run.find('@') + 1);
  const auto found = units_.find(name);
  if (found == units_.end() || std::to_string(found->second.run) != of_run.substr(0, of_run.find('@'))) {
    return sd_bus_reply_method_errorf(message, "org.freedesktop.DBus.Error.UnknownObject", "Unknown object");
  }
  if (found->second.refuses_stop) {
    return sd_bus_reply_method_errorf(message, "org.freedesktop.systemd1.OnlyByDependency",
                                      "Operation refused, unit %s may be requested by dependency only",
                                      name.c_str());
  }
  stops_.push_back(name + " " + mode);
  return sd_bus_reply_method_return(message, "o", "/org/freedesktop/systemd1/job/1");
}

// Some of the properties that a unit has, of each type that there is.
int FakeSystemd::handle_all(sd_bus_message* message) {
  const auto found = units_.find(unit_of(message));
  const Unit unit = found == units_.end() ? Unit() : found->second;
  const auto confined = [&unit](const char* name) { return unit.confined.contains(name); };
  sd_bus_message* reply = nullptr;
  if (const int made = sd_bus_message_new_method_return(message, &reply); made < 0) return made;
  sd_bus_message_open_container(reply, 'a', "{sv}");
  sd_bus_message_append(reply, "{sv}", "MemoryMax", "t",
                        confined("MemoryMax") ? std::uint64_t{1} << 30 : kInfinity);
  sd_bus_message_append(reply, "{sv}", "MemoryHigh", "t", unit.live.memory_high_bytes);
  sd_bus_message_append(reply, "{sv}", "CPUQuotaPerSecUSec", "t", unit.live.quota_us_per_second);
  sd_bus_message_append(reply, "{sv}", "TasksMax", "t", unit.tasks_max);
  sd_bus_message_append(reply, "{sv}", "Delegate", "b", confined("Delegate") ? 1 : 0);
  sd_bus_message_append(reply, "{sv}", "KillMode", "s", confined("KillMode") ? "process" : "control-group");
  sd_bus_message_append(reply, "{sv}", "OOMPolicy", "s", confined("OOMPolicy") ? "kill" : "stop");
  sd_bus_message_append(reply, "{sv}", "MainPID", "u", 4U);
  sd_bus_message_append(reply, "{sv}", "TimeoutStopUSec", "t", std::uint64_t{7000});
  sd_bus_message_append(reply, "{sv}", "DevicePolicy", "s", "auto");
  const auto entries = [](bool any) { return any ? 1 : 0; };
  if (confined("IPAddressDeny")) {
    sd_bus_message_append(reply, "{sv}", "IPAddressDeny", "a(iayu)", 1, 2, 4, 10, 0, 0, 0, 8U);
  } else {
    sd_bus_message_append(reply, "{sv}", "IPAddressDeny", "a(iayu)", 0);
  }
  if (confined("DeviceAllow")) {
    sd_bus_message_append(reply, "{sv}", "DeviceAllow", "a(ss)", entries(true), "/dev/null", "rw");
  } else {
    sd_bus_message_append(reply, "{sv}", "DeviceAllow", "a(ss)", entries(false));
  }
  sd_bus_message_append(reply, "{sv}", "RestrictFileSystems", "(bas)",
                        confined("RestrictFileSystems") ? 1 : 0, 0);
  sd_bus_message_append(reply, "{sv}", "SocketBindDeny", "a(iiqq)", 0);
  sd_bus_message_append(reply, "{sv}", "IPIngressFilterPath", "as", 0);
  sd_bus_message_append(reply, "{sv}", "Id", "s", "of no interest");
  sd_bus_message_close_container(reply);
  const int sent = sd_bus_send(nullptr, reply, nullptr);
  sd_bus_message_unref(reply);
  return sent < 0 ? sent : 1;
}

int FakeSystemd::handle_start(sd_bus_message* message) {
  const char* name = nullptr;
  const char* mode = nullptr;
  if (const int read = sd_bus_message_read(message, "ss", &name, &mode); read < 0) return read;
  std::string start = std::string(name) + " " + mode + "\n";
  sd_bus_message_enter_container(message, 'a', "(sv)");
  while (sd_bus_message_enter_container(message, 'r', "sv") > 0) {
    const char* property = nullptr;
    sd_bus_message_read(message, "s", &property);
    start += std::string(property) + "=";
    char type = 0;
    const char* contents = nullptr;
    sd_bus_message_peek_type(message, &type, &contents);
    const std::string signature = contents;
    sd_bus_message_enter_container(message, 'v', signature.c_str());
    if (signature == "s") {
      const char* text = nullptr;
      sd_bus_message_read(message, "s", &text);
      start += text;
    } else if (signature == "as") {
      const char* text = nullptr;
      sd_bus_message_enter_container(message, 'a', "s");
      while (sd_bus_message_read(message, "s", &text) > 0) start += std::string(text) + ",";
      sd_bus_message_exit_container(message);
    } else if (signature == "t") {
      std::uint64_t number = 0;
      sd_bus_message_read(message, "t", &number);
      start += std::to_string(number);
    } else if (signature == "au") {
      std::uint32_t number = 0;
      sd_bus_message_enter_container(message, 'a', "u");
      while (sd_bus_message_read(message, "u", &number) > 0) start += std::to_string(number) + ",";
      sd_bus_message_exit_container(message);
    }
    start += "\n";
    sd_bus_message_exit_container(message);
    sd_bus_message_exit_container(message);
  }
  if (std::ranges::any_of(
          starts_, [&](const std::string& each) { return each.starts_with(std::string(name) + " "); })) {
    return sd_bus_reply_method_errorf(message, "org.freedesktop.systemd1.UnitExists",
                                      "Unit %s already exists.", name);
  }
  starts_.push_back(std::move(start));
  return sd_bus_reply_method_return(message, "o", "/org/freedesktop/systemd1/job/2");
}

int FakeSystemd::handle_get(sd_bus_message* message) {
  const char* interface = nullptr;
  const char* property = nullptr;
  if (const int read = sd_bus_message_read(message, "ss", &interface, &property); read < 0) return read;
  const std::string name = property;
  if (name == "Version") return sd_bus_reply_method_return(message, "v", "s", "252 (stand-in)");
  const std::string unit_name = unit_of(message);
  const auto found = units_.find(unit_name);
  if (name == "ActiveState") {
    const bool runs = found != units_.end() && !found->second.cgroup.empty();
    return sd_bus_reply_method_return(message, "v", "s", runs ? "active" : "inactive");
  }
  if (name == "DefaultTasksMax") return sd_bus_reply_method_return(message, "v", "t", kTasksMax);
  if (name == "BoundBy") {
    std::vector<char*> names;
    if (found != units_.end()) {
      for (std::string& bound : found->second.bound_by) names.push_back(bound.data());
    }
    names.push_back(nullptr);
    sd_bus_message* reply = nullptr;
    if (const int made = sd_bus_message_new_method_return(message, &reply); made < 0) return made;
    sd_bus_message_open_container(reply, 'v', "as");
    sd_bus_message_append_strv(reply, names.data());
    sd_bus_message_close_container(reply);
    const int sent = sd_bus_send(nullptr, reply, nullptr);
    sd_bus_message_unref(reply);
    return sent < 0 ? sent : 1;
  }
  if (name == "LoadState") {
    return sd_bus_reply_method_return(message, "v", "s", found == units_.end() ? "not-found" : "loaded");
  }
  if (name == "NeedDaemonReload") {
    const bool needed = found != units_.end() && drop_ins(unit_name) != found->second.known_drop_ins;
    return sd_bus_reply_method_return(message, "v", "b", needed ? 1 : 0);
  }
  const UnitSetting setting = found == units_.end() ? UnitSetting() : found->second.live;
  if (name == "AllowedCPUs" || name == "AllowedMemoryNodes" || name == "InvocationID") {
    std::vector<std::uint8_t> bytes =
        cpu_bytes(name == "AllowedMemoryNodes" ? setting.allowed_nodes : setting.allowed_cpus);
    if (name == "InvocationID") bytes.assign(16, found == units_.end() ? 0 : found->second.run);
    sd_bus_message* reply = nullptr;
    if (const int made = sd_bus_message_new_method_return(message, &reply); made < 0) return made;
    sd_bus_message_open_container(reply, 'v', "ay");
    sd_bus_message_append_array(reply, 'y', bytes.data(), bytes.size());
    sd_bus_message_close_container(reply);
    const int sent = sd_bus_send(nullptr, reply, nullptr);
    sd_bus_message_unref(reply);
    return sent < 0 ? sent : 1;
  }
  std::uint64_t number = setting.memory_high_bytes;
  if (name == "CPUQuotaPerSecUSec") number = setting.quota_us_per_second;
  if (name == "CPUQuotaPeriodUSec") number = setting.quota_period_us;
  if (name == "CPUWeight") number = setting.cpu_weight;
  return sd_bus_reply_method_return(message, "v", "t", number);
}

int FakeSystemd::handle_set(sd_bus_message* message) {
  const char* name = nullptr;
  int runtime = 0;
  if (const int read = sd_bus_message_read(message, "sb", &name, &runtime); read < 0) return read;
  const auto found = units_.find(name);
  if (found == units_.end() || runtime == 0) {
    return sd_bus_reply_method_errorf(message, "org.freedesktop.systemd1.NoSuchUnit", "Unit %s not found.",
                                      name);
  }
  UnitSetting setting = found->second.live;
  Attribute attribute = Attribute::cpus;
  sd_bus_message_enter_container(message, 'a', "(sv)");
  while (sd_bus_message_enter_container(message, 'r', "sv") > 0) {
    const char* property = nullptr;
    sd_bus_message_read(message, "s", &property);
    const std::string key = property;
    if (key == "AllowedCPUs" || key == "AllowedMemoryNodes") {
      const void* bytes = nullptr;
      std::size_t size = 0;
      sd_bus_message_enter_container(message, 'v', "ay");
      sd_bus_message_read_array(message, 'y', &bytes, &size);
      const auto* first = static_cast<const std::uint8_t*>(bytes);
      auto numbers = cpus_of_bytes(std::vector<std::uint8_t>(first, first + size));
      if (key == "AllowedMemoryNodes") {
        attribute = Attribute::memory_nodes;
        setting.allowed_nodes = std::move(numbers);
      } else {
        setting.allowed_cpus = std::move(numbers);
      }
    } else {
      std::uint64_t number = 0;
      sd_bus_message_enter_container(message, 'v', "t");
      sd_bus_message_read(message, "t", &number);
      if (key == "MemoryHigh") {
        attribute = Attribute::memory_high;
        setting.memory_high_bytes = number;
      } else if (key == "CPUWeight") {
        attribute = Attribute::cpu_idle;
        setting.cpu_weight = number;
      } else {
        attribute = Attribute::cpu_quota;
        (key == "CPUQuotaPeriodUSec" ? setting.quota_period_us : setting.quota_us_per_second) = number;
      }
    }
    sd_bus_message_exit_container(message);
    sd_bus_message_exit_container(message);
  }
  change(name, attribute, setting);
  return sd_bus_reply_method_return(message, "");
}

void FakeSystemd::apply(Unit& unit, Attribute attribute) const {
  if (unit.cgroup.empty() || refuse_) return;
  if (attribute == Attribute::cpu_idle) {
    const auto priority = std::get<CpuIdle>(value_of(attribute, unit.live));
    tree_.put(unit.cgroup, "cpu.idle", priority.idle ? "1" : "0");
    // What the kernel shows of an idle group is not what systemd wrote.
    tree_.put(unit.cgroup, "cpu.weight", priority.idle ? "1" : std::to_string(priority.weight));
    return;
  }
  tree_.put(unit.cgroup, control_file(attribute), to_text(value_of(attribute, unit.live)));
}

void FakeSystemd::change(const std::string& name, Attribute attribute, const UnitSetting& setting) {
  Unit& unit = units_.at(name);
  ++changes_;
  copy(attribute, setting, unit.live);
  apply(unit, attribute);
  const fs::path directory = run_dir_ / (unit.transient ? "transient" : "system.control") / (name + ".d");
  std::vector<std::string> lines;
  switch (attribute) {
    case Attribute::cpus: {
      std::string list = setting.allowed_cpus.to_string();
      std::ranges::replace(list, ',', ' ');
      lines = {"AllowedCPUs=" + list};
      break;
    }
    case Attribute::cpu_quota:
      lines = {setting.quota_us_per_second == kInfinity
                   ? "CPUQuota="
                   : "CPUQuota=" + std::to_string(setting.quota_us_per_second / 10'000) + "%",
               setting.quota_period_us == kInfinity
                   ? "CPUQuotaPeriodSec="
                   : "CPUQuotaPeriodSec=" + std::to_string(setting.quota_period_us) + "us"};
      break;
    case Attribute::memory_high:
      lines = {setting.memory_high_bytes == kInfinity
                   ? "MemoryHigh=infinity"
                   : "MemoryHigh=" + std::to_string(setting.memory_high_bytes)};
      break;
    case Attribute::memory_nodes: {
      std::string list = setting.allowed_nodes.to_string();
      std::ranges::replace(list, ',', ' ');
      lines = {"AllowedMemoryNodes=" + list};
      break;
    }
    case Attribute::cpu_idle:
      lines = {setting.cpu_weight == kInfinity     ? "CPUWeight="
               : setting.cpu_weight == kIdleWeight ? "CPUWeight=idle"
                                                   : "CPUWeight=" + std::to_string(setting.cpu_weight)};
      break;
    case Attribute::cpu_burst:
      break;
  }
  const std::vector<std::string> names = drop_in_names(attribute);
  for (std::size_t i = 0; i < names.size(); ++i) {
    put_file(directory / names[i],
             "# This is a drop-in unit file extension, created via \"systemctl set-property\"\n"
             "# or an equivalent operation. Do not edit.\n[Service]\n" +
                 lines[i] + "\n");
  }
  unit.known_drop_ins = drop_ins(name);
}

std::set<std::string> FakeSystemd::drop_ins(const std::string& name) const {
  std::set<std::string> found;
  for (const char* root : {"system.control", "transient"}) {
    std::error_code none;
    for (const auto& entry : fs::directory_iterator(run_dir_ / root / (name + ".d"), none)) {
      found.insert(entry.path().string());
    }
  }
  return found;
}

void FakeSystemd::load(const std::string& name, Unit& unit) const {
  unit.live = unit.unit_file;
  unit.known_drop_ins = drop_ins(name);
  for (const std::string& path : unit.known_drop_ins) {
    const std::string text = text_of(path) + "\n";
    if (std::string list = assigned(text, "AllowedCPUs"); list != "none") {
      // An empty assignment clears, others add up: a drop-in does not replace what the unit file says.
      std::ranges::replace(list, ' ', ',');
      if (list.empty()) unit.live.allowed_cpus = {};
      unit.live.allowed_cpus |= model::CpuSet::parse(list).value();
    }
    if (const std::string quota = assigned(text, "CPUQuota"); quota != "none") {
      unit.live.quota_us_per_second = quota.empty() ? kInfinity : std::stoull(quota) * 10'000;
    }
    if (const std::string high = assigned(text, "MemoryHigh"); high != "none") {
      unit.live.memory_high_bytes = high == "infinity" ? kInfinity : std::stoull(high);
    }
    if (const std::string weight = assigned(text, "CPUWeight"); weight != "none") {
      unit.live.cpu_weight = weight.empty()     ? kInfinity
                             : weight == "idle" ? kIdleWeight
                                                : std::stoull(weight);
    }
  }
  for (const Attribute attribute :
       {Attribute::cpus, Attribute::cpu_quota, Attribute::memory_high, Attribute::cpu_idle}) {
    apply(unit, attribute);
  }
}

void FakeSystemd::add(const std::string& name, Unit unit) {
  const std::lock_guard lock(mutex_);
  if (!unit.cgroup.empty()) tree_.make(unit.cgroup);
  load(name, unit);
  unit.run = ++last_run_;
  units_[name] = std::move(unit);
}

void FakeSystemd::remove(const std::string& name) {
  const std::lock_guard lock(mutex_);
  tree_.remove(units_.at(name).cgroup);
  // Transient units take what was written for them along.
  if (units_.at(name).transient) fs::remove_all(run_dir_ / "transient" / (name + ".d"));
  units_.erase(name);
}

void FakeSystemd::restart(const std::string& name) {
  const std::lock_guard lock(mutex_);
  Unit& unit = units_.at(name);
  unit.run = ++last_run_;
  // Moved aside first, so that the new directory cannot get its inode.
  fs::rename(tree_.root() / unit.cgroup, tree_.root() / "old");
  tree_.make(unit.cgroup);
  tree_.remove("old");
  for (const Attribute attribute :
       {Attribute::cpus, Attribute::cpu_quota, Attribute::memory_high, Attribute::cpu_idle}) {
    apply(unit, attribute);
  }
}

void FakeSystemd::set_property(const std::string& name, Attribute attribute, const UnitSetting& setting) {
  const std::lock_guard lock(mutex_);
  change(name, attribute, setting);
}

void FakeSystemd::set_live(const std::string& name, const UnitSetting& setting) {
  const std::lock_guard lock(mutex_);
  units_.at(name).live.allowed_cpus = setting.allowed_cpus;
  units_.at(name).unit_file.allowed_cpus = setting.allowed_cpus;
  apply(units_.at(name), Attribute::cpus);
}

void FakeSystemd::daemon_reload() {
  const std::lock_guard lock(mutex_);
  for (auto& [name, unit] : units_) load(name, unit);
}

UnitSetting FakeSystemd::live(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  return units_.at(name).live;
}

bool FakeSystemd::need_reload(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  return drop_ins(name) != units_.at(name).known_drop_ins;
}

int FakeSystemd::reloads() const {
  const std::lock_guard lock(mutex_);
  return reloads_;
}

std::vector<std::string> FakeSystemd::stops() const {
  const std::lock_guard lock(mutex_);
  return stops_;
}

std::vector<std::string> FakeSystemd::starts() const {
  const std::lock_guard lock(mutex_);
  return starts_;
}

int FakeSystemd::changes() const {
  const std::lock_guard lock(mutex_);
  return changes_;
}

int FakeSystemd::unanswered() const {
  const std::lock_guard lock(mutex_);
  return unanswered_;
}

void FakeSystemd::fall_silent(bool silent) {
  const std::lock_guard lock(mutex_);
  silent_ = silent;
}

void FakeSystemd::let_kernel_refuse(bool refuse) {
  const std::lock_guard lock(mutex_);
  refuse_ = refuse;
}

}  // namespace berth::cgroup
