// SPDX-License-Identifier: Apache-2.0
#include "daemon/serve/bus_service_manager.h"

#include "model/json.h"

#include <cstddef>
#include <exception>
#include <map>
#include <memory>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/core.h>

namespace berth::daemon {

namespace {

constexpr const char* kInterface = "org.berth.Node1.Manager";

ManagerObject& manager(void* userdata) { return *static_cast<ManagerObject*>(userdata); }

// Answers that cannot be sent are dropped: the caller left, or the bus will soon be found lost.
void refuse(sd_bus_message* call, const char* name, const std::string& message) {
  (void)sd_bus_reply_method_errorf(call, name, "%s", bus_text(message).c_str());
}

// A caller's arguments are kept until polkit has answered; the bus permits 128 MiB. So their size is checked
// before that. No id is longer (docs/contract/snapshot.md), and no workload has as many settings.
constexpr std::size_t kLongestText = model::kMaxNameBytes;
constexpr std::size_t kMostSettings = 64;
// The limit for a request for admission: its three names may be that long, with all characters escaped.
constexpr std::size_t kLongestRequest = std::size_t{128} * 1024;

// Returns true where it is too long, after refusing the call.
bool is_too_long(sd_bus_message* call, const char* what, std::string_view text,
                 std::size_t most = kLongestText) {
  if (text.size() <= most) return false;
  refuse(call, bus::kInvalidInput,
         fmt::format("the {} is {} bytes long, more than {}", what, text.size(), most));
  return true;
}

// --- reads ---

int reply(sd_bus_message* call, const std::string& document) {
  return sd_bus_reply_method_return(call, "s", document.c_str());
}

template <std::string (Control::*Document)()>
int read(sd_bus_message* call, void* userdata, sd_bus_error* error) {
  return answering(error, [&] { return reply(call, (manager(userdata).control().*Document)()); });
}

int read_log(sd_bus_message* call, void* userdata, sd_bus_error* error) {
  return answering(error, [&] {
    std::uint32_t limit = 0;
    if (const int r = sd_bus_message_read(call, "u", &limit); r < 0) return r;
    return reply(call, manager(userdata).control().log_json(limit));
  });
}

int explain(sd_bus_message* call, void* userdata, sd_bus_error* error) {
  return answering(error, [&] {
    const char* subject = nullptr;
    if (const int r = sd_bus_message_read(call, "s", &subject); r < 0) return r;
    if (is_too_long(call, "subject", subject)) return 1;
    const auto document = manager(userdata).control().explain_json(subject);
    if (document) return reply(call, *document);
    refuse(call, error_name(document.error()), document.error().message());
    return 1;
  });
}

template <auto Get>
int show(sd_bus*, const char*, const char*, const char*, sd_bus_message* reply, void* userdata,
         sd_bus_error* error) {
  return answering(error, [&] { return append(reply, (manager(userdata).control().*Get)()); });
}

template <auto Count>
int show_count(sd_bus*, const char*, const char*, const char*, sd_bus_message* reply, void* userdata,
               sd_bus_error* error) {
  return answering(error, [&] { return append(reply, manager(userdata).control().counts().*Count); });
}

model::AdvertisedResource said(const Control& control, model::Resource resource) {
  const model::Advertised advertised = control.advertised();
  const auto& it = resource == model::Resource::cpu ? advertised.cpu : advertised.memory;
  return it.value_or(model::AdvertisedResource());
}

template <model::Resource Which>
int show_state(sd_bus*, const char*, const char*, const char*, sd_bus_message* reply, void* userdata,
               sd_bus_error* error) {
  return answering(error, [&] {
    return append(reply, std::string(model::to_string(said(manager(userdata).control(), Which).state)));
  });
}

template <model::Resource Which>
int show_factor(sd_bus*, const char*, const char*, const char*, sd_bus_message* reply, void* userdata,
                sd_bus_error* error) {
  return answering(error, [&] {
    return append(reply, std::optional<double>(said(manager(userdata).control(), Which).factor));
  });
}

// --- changes ---

int set_mode(sd_bus_message* call, void* userdata, sd_bus_error* error) {
  return answering(error, [&] {
    const char* mode = nullptr;
    if (const int r = sd_bus_message_read(call, "s", &mode); r < 0) return r;
    if (is_too_long(call, "mode", mode)) return 1;
    auto& self = manager(userdata);
    return self.authorised(
        call, [&control = self.control(), wanted = std::string(mode)] { return control.set_mode(wanted); });
  });
}

int set_workload(sd_bus_message* call, void* userdata, sd_bus_error* error) {
  return answering(error, [&] {
    const char* id = nullptr;
    if (int r = sd_bus_message_read(call, "s", &id); r < 0) return r;
    if (is_too_long(call, "workload's name", id)) return 1;
    if (int r = sd_bus_message_enter_container(call, 'a', "{ss}"); r < 0) return r;
    std::map<std::string, std::string> settings;
    const char* key = nullptr;
    const char* value = nullptr;
    int r = 0;
    while ((r = sd_bus_message_read(call, "{ss}", &key, &value)) > 0) {
      if (is_too_long(call, "name of a setting", key) || is_too_long(call, "value of a setting", value))
        return 1;
      if (settings.insert_or_assign(key, value); settings.size() > kMostSettings) {
        refuse(call, bus::kInvalidInput, fmt::format("more than {} settings at once", kMostSettings));
        return 1;
      }
    }
    if (r < 0) return r;
    auto& self = manager(userdata);
    return self.authorised(
        call, [&control = self.control(), workload = std::string(id), wanted = std::move(settings)] {
          return control.set_workload(workload, wanted);
        });
  });
}

// A process in a workload may report for it; an empty name means that workload.
int report_progress(sd_bus_message* call, void* userdata, sd_bus_error* error) {
  return answering(error, [&] {
    const char* id = nullptr;
    double fraction = 0;
    if (const int r = sd_bus_message_read(call, "sd", &id, &fraction); r < 0) return r;
    if (is_too_long(call, "workload's name", id)) return 1;
    auto& self = manager(userdata);
    auto& control = self.control();
    const auto workload = std::make_shared<std::string>(id);
    const auto speaks_for_itself = [&control, workload](pid_t pid, uid_t uid) {
      const auto own = control.workload_of(pid, uid);
      if (!workload->empty()) return own == *workload;
      *workload = own.value_or("");
      return true;
    };
    const auto report = [&control, workload, fraction]() -> model::Result<void> {
      if (!workload->empty()) return control.report_progress(*workload, fraction);
      return model::fail(model::ErrorKind::gone,
                         "your process runs in no workload; `berthctl list` shows them");
    };
    return self.authorised(call, report, bus::kReportProgressAction, speaks_for_itself);
  });
}

int evict(sd_bus_message* call, void* userdata, sd_bus_error* error) {
  return answering(error, [&] {
    const char* id = nullptr;
    if (const int r = sd_bus_message_read(call, "s", &id); r < 0) return r;
    if (is_too_long(call, "workload's name", id)) return 1;
    auto& self = manager(userdata);
    return self.authorised(
        call, [&control = self.control(), workload = std::string(id)] { return control.evict(workload); },
        bus::kEvictAction);
  });
}

int admit(sd_bus_message* call, void* userdata, sd_bus_error* error) {
  return answering(error, [&] {
    const char* request = nullptr;
    double hold_s = 0;
    if (const int r = sd_bus_message_read(call, "sd", &request, &hold_s); r < 0) return r;
    if (is_too_long(call, "request", request, kLongestRequest)) return 1;
    auto& self = manager(userdata);
    return self.authorised(
        call,
        [&control = self.control(), wanted = std::string(request), hold_s] {
          return control.admit(wanted, hold_s);
        },
        bus::kAdmitAction);
  });
}

int cancel_reservation(sd_bus_message* call, void* userdata, sd_bus_error* error) {
  return answering(error, [&] {
    const char* id = nullptr;
    if (const int r = sd_bus_message_read(call, "s", &id); r < 0) return r;
    if (is_too_long(call, "request's id", id)) return 1;
    auto& self = manager(userdata);
    return self.authorised(
        call,
        [&control = self.control(), wanted = std::string(id)] { return control.cancel_reservation(wanted); },
        bus::kAdmitAction);
  });
}

template <auto Change>
int change(sd_bus_message* call, void* userdata, sd_bus_error* error) {
  return answering(error, [&] {
    auto& self = manager(userdata);
    return self.authorised(call, [&control = self.control()] { return (control.*Change)(); });
  });
}

// polkit decides about permission, so sd-bus must let all users call.
constexpr auto kOpen = SD_BUS_VTABLE_UNPRIVILEGED;
constexpr auto kAnnounced = SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE;
#define BERTH_JSON SD_BUS_PARAM(json)

// As in bus/org.berth.Node1.xml; a test compares the two.
const sd_bus_vtable kTable[] = {
    SD_BUS_VTABLE_START(0),
    SD_BUS_METHOD_WITH_NAMES("GetStatus", "", "", "s", BERTH_JSON, read<&Control::status_json>, kOpen),
    SD_BUS_METHOD_WITH_NAMES("GetWorkloads", "", "", "s", BERTH_JSON, read<&Control::workloads_json>, kOpen),
    SD_BUS_METHOD_WITH_NAMES("GetTopology", "", "", "s", BERTH_JSON, read<&Control::topology_json>, kOpen),
    SD_BUS_METHOD_WITH_NAMES("GetSnapshot", "", "", "s", BERTH_JSON, read<&Control::snapshot_json>, kOpen),
    SD_BUS_METHOD_WITH_NAMES("GetPlan", "", "", "s", BERTH_JSON, read<&Control::plan_json>, kOpen),
    SD_BUS_METHOD_WITH_NAMES("GetLog", "u", SD_BUS_PARAM(limit), "s", BERTH_JSON, read_log, kOpen),
    SD_BUS_METHOD_WITH_NAMES("GetMetrics", "", "", "s", SD_BUS_PARAM(text), read<&Control::metrics_text>,
                             kOpen),
    SD_BUS_METHOD_WITH_NAMES("SetMode", "s", SD_BUS_PARAM(mode), "", "", set_mode, kOpen),
    SD_BUS_METHOD_WITH_NAMES("SetWorkload", "sa{ss}", SD_BUS_PARAM(workload) SD_BUS_PARAM(settings), "", "",
                             set_workload, kOpen),
    SD_BUS_METHOD_WITH_NAMES("ReportProgress", "sd", SD_BUS_PARAM(workload) SD_BUS_PARAM(fraction), "", "",
                             report_progress, kOpen),
    SD_BUS_METHOD_WITH_NAMES("Evict", "s", SD_BUS_PARAM(workload), "s", SD_BUS_PARAM(decision), evict, kOpen),
    SD_BUS_METHOD_WITH_NAMES("Explain", "s", SD_BUS_PARAM(subject), "s", BERTH_JSON, explain, kOpen),
    SD_BUS_METHOD_WITH_NAMES("Admit", "sd", SD_BUS_PARAM(request) SD_BUS_PARAM(hold_seconds), "s", BERTH_JSON,
                             admit, kOpen),
    SD_BUS_METHOD_WITH_NAMES("GetReservations", "", "", "s", BERTH_JSON, read<&Control::reservations_json>,
                             kOpen),
    SD_BUS_METHOD_WITH_NAMES("CancelReservation", "s", SD_BUS_PARAM(request_id), "s", SD_BUS_PARAM(decision),
                             cancel_reservation, kOpen),
    SD_BUS_METHOD_WITH_NAMES("Restore", "", "", "s", BERTH_JSON, change<&Control::restore>, kOpen),
    SD_BUS_METHOD_WITH_NAMES("Reload", "", "", "", "", change<&Control::reload>, kOpen),
    SD_BUS_PROPERTY("Version", "s", show<&Control::version>, 0, SD_BUS_VTABLE_PROPERTY_CONST),
    SD_BUS_PROPERTY("Mode", "s", show<&Control::mode>, 0, kAnnounced),
    SD_BUS_PROPERTY("ScoreNode", "d", show<&Control::score_node>, 0, 0),
    SD_BUS_PROPERTY("LatencySensitiveWorkloads", "u", show_count<&WorkloadCounts::latency_sensitive>, 0,
                    kAnnounced),
    SD_BUS_PROPERTY("BestEffortWorkloads", "u", show_count<&WorkloadCounts::best_effort>, 0, kAnnounced),
    SD_BUS_PROPERTY("BestEffortCPUs", "s", show<&Control::best_effort_cpus>, 0, kAnnounced),
    SD_BUS_PROPERTY("CPUState", "s", show_state<model::Resource::cpu>, 0, kAnnounced),
    SD_BUS_PROPERTY("MemoryState", "s", show_state<model::Resource::memory>, 0, kAnnounced),
    SD_BUS_PROPERTY("CPUFactor", "d", show_factor<model::Resource::cpu>, 0, kAnnounced),
    SD_BUS_PROPERTY("MemoryFactor", "d", show_factor<model::Resource::memory>, 0, kAnnounced),
    SD_BUS_SIGNAL_WITH_NAMES("Pinned", "sss",
                             SD_BUS_PARAM(workload) SD_BUS_PARAM(cpus) SD_BUS_PARAM(decision), 0),
    SD_BUS_SIGNAL_WITH_NAMES("Unpinned", "ss", SD_BUS_PARAM(workload) SD_BUS_PARAM(decision), 0),
    SD_BUS_SIGNAL_WITH_NAMES("QuotaChanged", "sssss",
                             SD_BUS_PARAM(workload) SD_BUS_PARAM(attribute) SD_BUS_PARAM(before)
                                 SD_BUS_PARAM(after) SD_BUS_PARAM(decision),
                             0),
    SD_BUS_SIGNAL_WITH_NAMES(
        "Evicted", "ssts",
        SD_BUS_PARAM(workload) SD_BUS_PARAM(step) SD_BUS_PARAM(memory_bytes) SD_BUS_PARAM(decision), 0),
    SD_BUS_SIGNAL_WITH_NAMES("StragglerFound", "sss",
                             SD_BUS_PARAM(workload) SD_BUS_PARAM(reason) SD_BUS_PARAM(decision), 0),
    SD_BUS_SIGNAL_WITH_NAMES(
        "RelocationNeeded", "sdts",
        SD_BUS_PARAM(workload) SD_BUS_PARAM(cpu_cores) SD_BUS_PARAM(memory_bytes) SD_BUS_PARAM(decision), 0),
    SD_BUS_SIGNAL_WITH_NAMES("SchedulingStateChanged", "sssss",
                             SD_BUS_PARAM(resource) SD_BUS_PARAM(before) SD_BUS_PARAM(after)
                                 SD_BUS_PARAM(reason) SD_BUS_PARAM(decision),
                             0),
    SD_BUS_VTABLE_END,
};
#undef BERTH_JSON

}  // namespace

ManagerObject::ManagerObject(sd_bus* bus, Control& control, Polkit& polkit)
    : bus_(bus), control_(control), polkit_(polkit), announced_(current()) {
  sd_bus_slot* slot = nullptr;
  check(sd_bus_add_object_vtable(bus, &slot, bus::kManagerPath, kInterface, kTable, this),
        "cannot serve the manager");
  interface_.reset(slot);
  check(sd_bus_add_object_manager(bus, &slot, bus::kManagerPath), "cannot serve the object manager");
  object_manager_.reset(slot);
}

template <typename Act>
int ManagerObject::authorised(sd_bus_message* call, Act act, const char* action,
                              const Polkit::Exempt& exempt) {
  // std::function needs a callable that can be copied.
  const std::shared_ptr<sd_bus_message> held(sd_bus_message_ref(call), sd_bus_message_unref);
  const auto answer = [held, act = std::move(act)](const Verdict& verdict) {
    if (!verdict.allowed) return refuse(held.get(), verdict.error_name, verdict.message);
    try {
      const auto result = act();
      if (!result) {
        refuse(held.get(), error_name(result.error()), result.error().message());
      } else if constexpr (std::is_void_v<typename decltype(act())::value_type>) {
        (void)sd_bus_reply_method_return(held.get(), "");
      } else {
        (void)sd_bus_reply_method_return(held.get(), "s", result->c_str());
      }
    } catch (const std::exception& error) {
      refuse(held.get(), bus::kFailed, error.what());
    }
  };
  polkit_.check(call, action, answer, exempt);
  return 1;  // answered, or going to be
}

void ManagerObject::pinned(const std::string& workload, const std::string& cpus,
                           const std::string& decision) {
  check(sd_bus_emit_signal(bus_, bus::kManagerPath, kInterface, "Pinned", "sss", workload.c_str(),
                           cpus.c_str(), decision.c_str()),
        "Pinned");
}

void ManagerObject::unpinned(const std::string& workload, const std::string& decision) {
  check(sd_bus_emit_signal(bus_, bus::kManagerPath, kInterface, "Unpinned", "ss", workload.c_str(),
                           decision.c_str()),
        "Unpinned");
}

void ManagerObject::quota_changed(const std::string& workload, const std::string& attribute,
                                  const std::string& old_value, const std::string& new_value,
                                  const std::string& decision) {
  check(sd_bus_emit_signal(bus_, bus::kManagerPath, kInterface, "QuotaChanged", "sssss", workload.c_str(),
                           attribute.c_str(), old_value.c_str(), new_value.c_str(), decision.c_str()),
        "QuotaChanged");
}

void ManagerObject::evicted(const std::string& workload, const std::string& step, std::uint64_t memory_bytes,
                            const std::string& decision) {
  check(sd_bus_emit_signal(bus_, bus::kManagerPath, kInterface, "Evicted", "ssts", workload.c_str(),
                           step.c_str(), memory_bytes, decision.c_str()),
        "Evicted");
}

void ManagerObject::straggler_found(const StragglerNews& news) {
  check(sd_bus_emit_signal(bus_, bus::kManagerPath, kInterface, "StragglerFound", "sss",
                           news.workload.c_str(), bus_text(news.reason).c_str(), news.decision.c_str()),
        "StragglerFound");
}

void ManagerObject::relocation_needed(const StragglerNews& news) {
  check(sd_bus_emit_signal(bus_, bus::kManagerPath, kInterface, "RelocationNeeded", "sdts",
                           news.workload.c_str(), news.lacks.cpu_cores, news.lacks.memory_bytes,
                           news.decision.c_str()),
        "RelocationNeeded");
}

void ManagerObject::scheduling_state_changed(const std::string& resource, const std::string& before,
                                             const std::string& after, const std::string& reason,
                                             const std::string& decision) {
  check(sd_bus_emit_signal(bus_, bus::kManagerPath, kInterface, "SchedulingStateChanged", "sssss",
                           resource.c_str(), before.c_str(), after.c_str(), bus_text(reason).c_str(),
                           decision.c_str()),
        "SchedulingStateChanged");
}

ManagerObject::Announced ManagerObject::current() const {
  return {control_.mode(), control_.counts(), control_.best_effort_cpus(), control_.advertised()};
}

void ManagerObject::announce_changes() {
  Announced now = current();
  std::vector<std::string> changed;
  if (now.mode != announced_.mode) changed.emplace_back("Mode");
  if (now.counts.latency_sensitive != announced_.counts.latency_sensitive) {
    changed.emplace_back("LatencySensitiveWorkloads");
  }
  if (now.counts.best_effort != announced_.counts.best_effort) changed.emplace_back("BestEffortWorkloads");
  if (now.best_effort_cpus != announced_.best_effort_cpus) changed.emplace_back("BestEffortCPUs");
  const auto announce = [&](const char* state, const char* factor, const auto& before, const auto& after) {
    const auto old = before.value_or(model::AdvertisedResource());
    const auto present = after.value_or(model::AdvertisedResource());
    if (present.state != old.state) changed.emplace_back(state);
    if (present.factor != old.factor) changed.emplace_back(factor);
  };
  announce("CPUState", "CPUFactor", announced_.advertised.cpu, now.advertised.cpu);
  announce("MemoryState", "MemoryFactor", announced_.advertised.memory, now.advertised.memory);
  announced_ = std::move(now);
  emit_changes(bus_, bus::kManagerPath, kInterface, std::move(changed));
}

}  // namespace berth::daemon
