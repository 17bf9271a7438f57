// SPDX-License-Identifier: Apache-2.0
#include "model/borrowing_json.h"

#include "model/learning.h"

namespace berth::model {

namespace {

// Far above any wait and any pause.
constexpr double kMostSeconds = 1e9;
constexpr double kMostCores = 1e9;

std::optional<double> read_seconds(JsonObject& object, const char* name) {
  const auto value = object.nullable(name);
  return value ? std::optional(value->number(0, kMostSeconds)) : std::nullopt;
}

std::optional<double> read_time(JsonObject& object, const char* name) {
  const auto value = object.nullable(name);
  return value ? std::optional(value->epoch()) : std::nullopt;
}

std::optional<double> read_cpi(JsonObject& object, const char* name) {
  const auto value = object.nullable(name);
  return value ? std::optional(value->number(0, kMostResponse)) : std::nullopt;
}

Lender read_lender(const JsonValue& value) {
  JsonObject object(value);
  object.ignore_unknown();
  Lender lender;
  lender.withdrawn = object.required("withdrawn").cpulist();
  lender.use_cores = object.required("use").number(0, kMostCores);
  lender.delay_s = read_seconds(object, "runq_latency_s");
  lender.target_s = read_seconds(object, "target_s");
  lender.missed = object.required("missed").boolean();
  lender.reason = object.required("reason").text();
  lender.state = read_lending_state(object.required("state"));
  return lender;
}

Borrower read_borrower(const JsonValue& value) {
  JsonObject object(value);
  object.ignore_unknown();
  Borrower borrower;
  borrower.cpus = object.required("cpus").cpulist();
  borrower.reason = object.required("reason").text();
  return borrower;
}

}  // namespace

LendingState read_lending_state(const JsonValue& value) {
  JsonObject object(value);
  object.ignore_unknown();
  LendingState state;
  state.cpus = object.required("cpus").cpulist();
  state.changed_at = read_time(object, "changed_at");
  state.quiet_since = read_time(object, "quiet_since");
  state.usual_delay_s = read_seconds(object, "usual_delay_s");
  state.usual_cpi = read_cpi(object, "usual_cpi");
  state.measured_at = read_time(object, "measured_at");
  state.cpi = read_cpi(object, "cpi");
  if (const auto pause = object.optional("pause_s")) state.pause_s = pause->number(0, kMostSeconds);
  state.paused_until = read_time(object, "paused_until");
  return state;
}

void write_lending_state(JsonWriter& out, const LendingState& state) {
  out.begin_object().member("cpus", state.cpus);
  out.time_if("changed_at", state.changed_at).time_if("quiet_since", state.quiet_since);
  out.member_if("usual_delay_s", state.usual_delay_s).member_if("usual_cpi", state.usual_cpi);
  out.time_if("measured_at", state.measured_at).member_if("cpi", state.cpi);
  out.member("pause_s", state.pause_s).time_if("paused_until", state.paused_until).end_object();
}

void write_lender(JsonWriter& out, const Lender& lender) {
  out.begin_object().member("withdrawn", lender.withdrawn).member("use", lender.use_cores);
  out.member("runq_latency_s", lender.delay_s).member("target_s", lender.target_s);
  out.member("missed", lender.missed).member("reason", lender.reason);
  write_lending_state(out.key("state"), lender.state);
  out.end_object();
}

void write_borrower(JsonWriter& out, const Borrower& borrower) {
  out.begin_object().member("cpus", borrower.cpus).member("reason", borrower.reason).end_object();
}

BorrowingFindings read_borrowing(const JsonValue& value) {
  JsonObject object(value);
  object.ignore_unknown();
  BorrowingFindings findings;
  object.required("lenders").each_member([&findings](const std::string& id, const JsonValue& lender) {
    findings.lenders.emplace(id, read_lender(lender));
  });
  object.required("borrowers").each_member([&findings](const std::string& id, const JsonValue& borrower) {
    findings.borrowers.emplace(id, read_borrower(borrower));
  });
  return findings;
}

void write_borrowing(JsonWriter& out, const BorrowingFindings& findings) {
  out.begin_object().key("lenders").begin_object();
  for (const auto& [id, lender] : findings.lenders) write_lender(out.key(id), lender);
  out.end_object().key("borrowers").begin_object();
  for (const auto& [id, borrower] : findings.borrowers) write_borrower(out.key(id), borrower);
  out.end_object().end_object();
}

}  // namespace berth::model
