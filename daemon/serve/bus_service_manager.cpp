// SPDX-License-Identifier: Apache-2.0
#include "daemon/serve/bus_service_manager.h"

#include "model/attribute.h"
#include "model/json.h"
#include "model/number.h"
#include "os/clock.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
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

// An argument of a signal, as sd-bus takes it.
const char* as_argument(const std::string& text) { return text.c_str(); }
template <typename Number>
Number as_argument(Number number) {
  return number;
}

// A caller's arguments are kept until polkit has answered; the bus permits 128 MiB. So their size is checked
// before that. No id is longer (docs/contract/snapshot.md), and no workload has as many settings.
constexpr std::size_t kLongestText = model::kMaxNameBytes;
constexpr std::size_t kMostSettings = 64;
constexpr std::size_t kMostSettingsBytes = std::size_t{16} * 1024;  // names and values of one call
// The limit for a request for admission: its three names may be that long, with all characters escaped.
constexpr std::size_t kLongestRequest = std::size_t{128} * 1024;
// The limit for profiles; berthctl sends many of them in several calls.
constexpr std::size_t kLongestProfiles = std::size_t{128} * 1024;

// Returns true where it is too long, after refusing the call.
bool is_too_long(sd_bus_message* call, const char* what, std::string_view text,
                 std::size_t most = kLongestText) {
  if (text.size() <= most) return false;
  refuse(call, bus::kInvalidInput,
         fmt::format("the {} is {} bytes long, more than {}", what, text.size(), most));
  return true;
}

// Returns a copy of a call without its arguments; an answer to the copy is an answer to the call. Throws
// std::system_error.
Message envelope_of(sd_bus* bus, sd_bus_message* call) {
  sd_bus_message* raw = nullptr;
  check(sd_bus_message_new_method_call(bus, &raw, sd_bus_message_get_destination(call),
                                       sd_bus_message_get_path(call), sd_bus_message_get_interface(call),
                                       sd_bus_message_get_member(call)),
        "cannot keep the call");
  Message copy(raw);
  std::uint64_t number = 0;
  check(sd_bus_message_get_cookie(call, &number), "the call has no number");
  if (const char* sender = sd_bus_message_get_sender(call); sender != nullptr)
    check(sd_bus_message_set_sender(raw, sender), "cannot keep the sender");
  check(sd_bus_message_set_expect_reply(raw, sd_bus_message_get_expect_reply(call)), "cannot keep the call");
  check(sd_bus_message_seal(raw, number, 0), "cannot keep the call");
  return copy;
}

// --- reads ---

// A document that is made already: the bytes of one step of ReadBudget, to copy and to send them, and the
// steps of a call without any.
constexpr double kBytesOfStep = 32 * 1024;
constexpr double kStepsOfRead = 0.05;

// A call is charged for the bytes of the last answer: this one is not there yet.
template <std::string (Control::*Document)()>
int read(sd_bus_message* call, void* userdata, sd_bus_error* error) {
  return answering(error, [&] {
    static std::size_t last_bytes = 0;
    auto& self = manager(userdata);
    const auto document = [&control = self.control()] {
      std::string text = (control.*Document)();
      last_bytes = text.size();
      return model::Result<std::string>(std::move(text));
    };
    const double steps = kStepsOfRead + static_cast<double>(last_bytes) / kBytesOfStep;
    if (!self.reads_unasked(steps)) return self.computed(call, document, steps, 0);
    self.reply(call, document());
    return 1;
  });
}

// Estimates, in steps of ReadBudget. A whole log is more than a user's share of a second.
constexpr double kStepsOfExplain = 20;
// All 100,000 entries are looked at.
constexpr double kStepsOfFind = 1000;
constexpr double kEntriesOfStep = 20;
// A snapshot with one new sample of each of a thousand workloads.
constexpr double kStepsOfSnapshot = 30;
constexpr std::uint32_t kMostEntries = 10'000;

int read_log(sd_bus_message* call, void* userdata, sd_bus_error* error) {
  return answering(error, [&] {
    std::uint32_t limit = 0;
    if (const int r = sd_bus_message_read(call, "u", &limit); r < 0) return r;
    const std::uint32_t entries = limit == 0 ? kMostEntries : std::min(limit, kMostEntries);
    auto& self = manager(userdata);
    return self.computed(
        call,
        [&control = self.control(), limit] { return model::Result<std::string>(control.log_json(limit)); },
        1 + entries / kEntriesOfStep, 0);
  });
}

int read_snapshot_since(sd_bus_message* call, void* userdata, sd_bus_error* error) {
  return answering(error, [&] {
    double since = 0;
    if (const int r = sd_bus_message_read(call, "d", &since); r < 0) return r;
    if (!std::isfinite(since) || since < 0) {
      refuse(call, bus::kInvalidInput, "the time is no number of seconds since 1970");
      return 1;
    }
    auto& self = manager(userdata);
    return self.computed(
        call,
        [&control = self.control(), since] {
          return model::Result<std::string>(control.snapshot_since_json(since));
        },
        kStepsOfSnapshot, 0);
  });
}

using Pairs = std::map<std::string, std::string>;

// Reads an a{ss} of settings or filters into `pairs`, and counts its bytes. Every entry counts, the repeated
// ones too. Returns a negative errno, 0 for a call that was refused, and 1 otherwise. `what` names one pair.
int read_pairs(sd_bus_message* call, const std::string& what, Pairs& pairs, std::size_t& bytes) {
  if (const int r = sd_bus_message_enter_container(call, 'a', "{ss}"); r < 0) return r;
  const char* key = nullptr;
  const char* value = nullptr;
  int r = 0;
  while ((r = sd_bus_message_read(call, "{ss}", &key, &value)) > 0) {
    if (is_too_long(call, ("name of a " + what).c_str(), key) ||
        is_too_long(call, ("value of a " + what).c_str(), value)) {
      return 0;
    }
    bytes += std::strlen(key) + std::strlen(value);
    std::string why;
    if (pairs.size() >= kMostSettings) {
      why = fmt::format("more than {} {}s at once", kMostSettings, what);
    } else if (bytes > kMostSettingsBytes) {
      why = fmt::format("more than {} bytes of {}s at once", kMostSettingsBytes, what);
    } else if (!pairs.try_emplace(key, value).second) {
      why = fmt::format("the {} \"{}\" comes twice", what, key);
    }
    if (why.empty()) continue;
    refuse(call, bus::kInvalidInput, why);
    return 0;
  }
  if (r >= 0) r = sd_bus_message_exit_container(call);
  return r < 0 ? r : 1;
}

int find_log(sd_bus_message* call, void* userdata, sd_bus_error* error) {
  return answering(error, [&] {
    Pairs filter;
    std::size_t bytes = 0;
    if (const int r = read_pairs(call, "filter", filter, bytes); r <= 0) return r < 0 ? r : 1;
    std::uint32_t limit = 0;
    if (const int r = sd_bus_message_read(call, "u", &limit); r < 0) return r;
    auto& self = manager(userdata);
    return self.computed(
        call,
        [&control = self.control(), wanted = std::move(filter), limit] {
          return control.find_log_json(wanted, limit);
        },
        kStepsOfFind, bytes);
  });
}

int explain(sd_bus_message* call, void* userdata, sd_bus_error* error) {
  return answering(error, [&] {
    const char* subject = nullptr;
    if (const int r = sd_bus_message_read(call, "s", &subject); r < 0) return r;
    if (is_too_long(call, "subject", subject)) return 1;
    auto& self = manager(userdata);
    return self.computed(
        call,
        [&control = self.control(), wanted = std::string(subject)] { return control.explain_json(wanted); },
        kStepsOfExplain, std::strlen(subject));
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

// A change with one text as its argument.
template <typename Change>
struct TextCall {
  Change change;
  const char* what;  // the text is
  const char* action;
  std::size_t most = kLongestText;  // bytes
};
template <typename Change>
TextCall(Change, const char*, const char*, std::size_t = 0) -> TextCall<Change>;
constexpr TextCall kSetMode{&Control::set_mode, "mode", bus::kManageAction};
constexpr TextCall kEvict{&Control::evict, "workload's name", bus::kEvictAction};
constexpr TextCall kCancelReservation{&Control::cancel_reservation, "request's id", bus::kAdmitAction};
constexpr TextCall kImportProfiles{&Control::import_profiles, "document", bus::kManageAction,
                                   kLongestProfiles};
constexpr TextCall kBlame{&Control::blame, "service's name", bus::kManageAction};
constexpr TextCall kForgetProfile{&Control::forget_profile, "service's name", bus::kManageAction};

template <const auto& Of>
int change_by(sd_bus_message* call, void* userdata, sd_bus_error* error) {
  return answering(error, [&] {
    const char* text = nullptr;
    if (const int r = sd_bus_message_read(call, "s", &text); r < 0) return r;
    if (is_too_long(call, Of.what, text, Of.most)) return 1;
    auto& self = manager(userdata);
    return self.authorised(
        call,
        [&control = self.control(), wanted = std::string(text)] { return (control.*Of.change)(wanted); },
        {.action = Of.action, .exempt = {}, .by_user = {}, .bytes = std::strlen(text)});
  });
}

int set_workload(sd_bus_message* call, void* userdata, sd_bus_error* error) {
  return answering(error, [&] {
    const char* id = nullptr;
    if (const int r = sd_bus_message_read(call, "s", &id); r < 0) return r;
    if (is_too_long(call, "workload's name", id)) return 1;
    Pairs settings;
    std::size_t bytes = std::strlen(id);
    if (const int r = read_pairs(call, "setting", settings, bytes); r <= 0) return r < 0 ? r : 1;
    auto& self = manager(userdata);
    return self.authorised(call,
                           [&control = self.control(), workload = std::string(id),
                            wanted = std::move(settings)] { return control.set_workload(workload, wanted); },
                           {.action = bus::kManageAction, .exempt = {}, .by_user = {}, .bytes = bytes});
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
    return self.authorised(call, report,
                           {.action = bus::kReportProgressAction,
                            .exempt = speaks_for_itself,
                            .by_user = {},
                            .bytes = workload->size()});
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
        {.action = bus::kAdmitAction, .exempt = {}, .by_user = {}, .bytes = std::strlen(request)});
  });
}

template <auto Change>
int change(sd_bus_message* call, void* userdata, sd_bus_error* error) {
  return answering(error, [&] {
    auto& self = manager(userdata);
    return self.authorised(call, [&control = self.control()] { return (control.*Change)(); },
                           {.action = bus::kManageAction, .exempt = {}, .by_user = {}, .bytes = 0});
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
    SD_BUS_METHOD_WITH_NAMES("GetSnapshotSince", "d", SD_BUS_PARAM(since), "s", BERTH_JSON,
                             read_snapshot_since, kOpen),
    SD_BUS_METHOD_WITH_NAMES("GetPlan", "", "", "s", BERTH_JSON, read<&Control::plan_json>, kOpen),
    SD_BUS_METHOD_WITH_NAMES("GetLog", "u", SD_BUS_PARAM(limit), "s", BERTH_JSON, read_log, kOpen),
    SD_BUS_METHOD_WITH_NAMES("FindLog", "a{ss}u", SD_BUS_PARAM(filter) SD_BUS_PARAM(limit), "s", BERTH_JSON,
                             find_log, kOpen),
    SD_BUS_METHOD_WITH_NAMES("GetMetrics", "", "", "s", SD_BUS_PARAM(text), read<&Control::metrics_text>,
                             kOpen),
    SD_BUS_METHOD_WITH_NAMES("SetMode", "s", SD_BUS_PARAM(mode), "", "", change_by<kSetMode>, kOpen),
    SD_BUS_METHOD_WITH_NAMES("SetWorkload", "sa{ss}", SD_BUS_PARAM(workload) SD_BUS_PARAM(settings), "", "",
                             set_workload, kOpen),
    SD_BUS_METHOD_WITH_NAMES("ReportProgress", "sd", SD_BUS_PARAM(workload) SD_BUS_PARAM(fraction), "", "",
                             report_progress, kOpen),
    SD_BUS_METHOD_WITH_NAMES("Evict", "s", SD_BUS_PARAM(workload), "s", SD_BUS_PARAM(decision),
                             change_by<kEvict>, kOpen),
    SD_BUS_METHOD_WITH_NAMES("Explain", "s", SD_BUS_PARAM(subject), "s", BERTH_JSON, explain, kOpen),
    SD_BUS_METHOD_WITH_NAMES("Admit", "sd", SD_BUS_PARAM(request) SD_BUS_PARAM(hold_seconds), "s", BERTH_JSON,
                             admit, kOpen),
    SD_BUS_METHOD_WITH_NAMES("GetReservations", "", "", "s", BERTH_JSON, read<&Control::reservations_json>,
                             kOpen),
    SD_BUS_METHOD_WITH_NAMES("CancelReservation", "s", SD_BUS_PARAM(request_id), "s", SD_BUS_PARAM(decision),
                             change_by<kCancelReservation>, kOpen),
    SD_BUS_METHOD_WITH_NAMES("GetProfiles", "", "", "s", BERTH_JSON, read<&Control::profiles_json>, kOpen),
    SD_BUS_METHOD_WITH_NAMES("GetModels", "", "", "s", BERTH_JSON, read<&Control::models_json>, kOpen),
    SD_BUS_METHOD_WITH_NAMES("ImportProfiles", "s", SD_BUS_PARAM(profiles), "", "",
                             change_by<kImportProfiles>, kOpen),
    SD_BUS_METHOD_WITH_NAMES("ForgetProfile", "s", SD_BUS_PARAM(service), "", "", change_by<kForgetProfile>,
                             kOpen),
    SD_BUS_METHOD_WITH_NAMES("BeginTrial", "ss", SD_BUS_PARAM(a) SD_BUS_PARAM(b), "s", BERTH_JSON,
                             begin_trial, kOpen),
    SD_BUS_METHOD_WITH_NAMES("UseTrialSide", "st", SD_BUS_PARAM(side) SD_BUS_PARAM(lease_usec), "", "",
                             use_trial_side, kOpen),
    SD_BUS_METHOD_WITH_NAMES("EndTrial", "b", SD_BUS_PARAM(keep), "", "", end_trial, kOpen),
    SD_BUS_METHOD_WITH_NAMES("Blame", "s", SD_BUS_PARAM(service), "s", BERTH_JSON, change_by<kBlame>, kOpen),
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
    SD_BUS_SIGNAL_WITH_NAMES("Decided", "da{ss}", SD_BUS_PARAM(time) SD_BUS_PARAM(entry), 0),
    SD_BUS_VTABLE_END,
};
#undef BERTH_JSON

}  // namespace

ManagerObject::ManagerObject(sd_bus* bus, Control& control, Polkit& polkit)
    : bus_(bus), control_(control), polkit_(polkit), announced_(current()), trial_callers_(bus, control) {
  sd_bus_slot* slot = nullptr;
  check(sd_bus_add_object_vtable(bus, &slot, bus::kManagerPath, kInterface, kTable, this),
        "cannot serve the manager");
  interface_.reset(slot);
  check(sd_bus_add_object_manager(bus, &slot, bus::kManagerPath), "cannot serve the object manager");
  object_manager_.reset(slot);
}

template <typename Act>
int ManagerObject::authorised(sd_bus_message* call, Act act, Polkit::Asked&& asked) {
  // std::function needs a callable that can be copied.
  const std::shared_ptr<sd_bus_message> held(envelope_of(bus_, call).release(), sd_bus_message_unref);
  const auto answer = [this, held, act = std::move(act)](const Verdict& verdict) {
    if (!verdict.allowed) return refuse(held.get(), verdict.error_name, verdict.message);
    try {
      const auto result = act();
      if (!result) return refuse(held.get(), error_name(result.error()), result.error().message());
      reply(held.get(), result);
    } catch (const std::exception& error) {
      refuse(held.get(), bus::kFailed, error.what());
    }
  };
  polkit_.check(call, std::move(asked), answer);
  return 1;  // answered, or going to be
}

int ManagerObject::asked(sd_bus_message* call, std::function<model::Result<std::string>()> act,
                         Polkit::Asked&& asked) {
  return authorised(call, std::move(act), std::move(asked));
}

template <typename Act>
int ManagerObject::computed(sd_bus_message* call, Act act, double steps, std::size_t bytes) {
  const auto has_share = [this, steps](uid_t user) -> Verdict {
    const auto wait_s = budget_.take(user, steps, os::monotonic_s());
    if (!wait_s) return {true, "", {}};
    return {false, bus::kLimitsExceeded,
            fmt::format("user {} asks for more than berth computes for one user; ask again in {:.1f} s", user,
                        *wait_s)};
  };
  return authorised(call, std::move(act), {.action = {}, .exempt = {}, .by_user = has_share, .bytes = bytes});
}

bool ManagerObject::reads_unasked(double steps) { return budget_.take_unasked(steps, os::monotonic_s()); }

void ManagerObject::reply(sd_bus_message* call, const model::Result<void>& /*done*/) {
  (void)sd_bus_reply_method_return(call, "");
}

void ManagerObject::reply(sd_bus_message* call, const model::Result<std::string>& document) {
  reply(call, *document);
}

void ManagerObject::reply(sd_bus_message* call, const std::string& document) {
  std::uint64_t queued = 0;
  if (sd_bus_get_n_queued_write(bus_, &queued) < 0 || queued == 0) unsent_bytes_ = 0;
  if (unsent_bytes_ > 0 && unsent_bytes_ + document.size() > kMostUnsentBytes) {
    return refuse(
        call, bus::kLimitsExceeded,
        "the bus does not take berth's answers, as some client does not read its own; ask again later");
  }
  unsent_bytes_ += document.size();
  (void)sd_bus_reply_method_return(call, "s", document.c_str());
}

template <typename... Arguments>
void ManagerObject::emit(const char* signal, const char* types, const Arguments&... arguments) {
  check(sd_bus_emit_signal(bus_, bus::kManagerPath, kInterface, signal, types, as_argument(arguments)...),
        signal);
}

void ManagerObject::changed(const LogEntry& entry) {
  if (entry.kind == "advertise") {
    emit("SchedulingStateChanged", "sssss", entry.attribute, entry.old_value, entry.new_value,
         bus_text(entry.reason), entry.decision);
  } else if (entry.kind == "evict") {
    emit("Evicted", "ssts", entry.workload, entry.attribute,
         model::to_number<std::uint64_t>(entry.old_value).value_or(0), entry.decision);
  } else if (model::attribute_of(entry.attribute) != model::Attribute::cpus) {
    emit("QuotaChanged", "sssss", entry.workload, entry.attribute, entry.old_value, entry.new_value,
         entry.decision);
  } else if (entry.kind == "pin") {
    emit("Pinned", "sss", entry.workload, entry.new_value, entry.decision);
  } else {
    emit("Unpinned", "ss", entry.workload, entry.decision);
  }
}

void ManagerObject::straggler_found(const StragglerNews& news) {
  emit("StragglerFound", "sss", news.workload, bus_text(news.reason), news.decision);
}

void ManagerObject::relocation_needed(const StragglerNews& news) {
  emit("RelocationNeeded", "sdts", news.workload, news.lacks.cpu_cores, news.lacks.memory_bytes,
       news.decision);
}

void ManagerObject::decided(const LogEntry& entry) {
  sd_bus_message* raw = nullptr;
  check(sd_bus_message_new_signal(bus_, &raw, bus::kManagerPath, kInterface, "Decided"), "Decided");
  const std::unique_ptr<sd_bus_message, decltype(&sd_bus_message_unref)> signal(raw, sd_bus_message_unref);
  check(sd_bus_message_append(raw, "d", entry.time), "Decided");
  check(sd_bus_message_open_container(raw, 'a', "{ss}"), "Decided");
  const std::string error = entry.error.value_or("");
  for (const auto& [name, value] :
       {std::pair("decision", &entry.decision), std::pair("mode", &entry.mode),
        std::pair("kind", &entry.kind), std::pair("workload", &entry.workload),
        std::pair("attribute", &entry.attribute), std::pair("old", &entry.old_value),
        std::pair("new", &entry.new_value), std::pair("policy", &entry.policy),
        std::pair("reason", &entry.reason), std::pair("result", &entry.result), std::pair("error", &error)}) {
    if (value->empty()) continue;
    check(sd_bus_message_append(raw, "{ss}", name, bus_text(*value).c_str()), "Decided");
  }
  check(sd_bus_message_close_container(raw), "Decided");
  check(sd_bus_send(bus_, raw, nullptr), "Decided");
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
