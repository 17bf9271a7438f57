// SPDX-License-Identifier: Apache-2.0
#include "cli/render.h"
#include "cli/table.h"

#include <cmath>
#include <map>
#include <ostream>
#include <utility>
#include <vector>

#include <fmt/core.h>

namespace berth::cli {

namespace {

// "-" for an unknown figure.
std::string figure(const Document& object, const char* name) {
  const auto value = number_of(object, name);
  return value ? fmt::format("{:.4g}", *value) : "-";
}

// "0.31 [0.28, 0.35]"; without an interval the coefficient is the default.
std::string coefficient(const Document& model, const char* name) {
  const auto value = number_of(model, name);
  if (!value) return "-";
  const auto& ends = list_of(member(model, "interval"), name);
  if (ends.size() != 2 || !ends[0].is_number() || !ends[1].is_number())
    return fmt::format("{:.3g} (default)", *value);
  return fmt::format("{:.3g} [{:.3g}, {:.3g}]", *value, ends[0].get<double>(), ends[1].get<double>());
}

// Rounded down, as the reason that names it beside the number that is needed.
std::string count(const Document& model) {
  auto n = number_of(model, "n");
  if (n) n = std::floor(*n);
  return format_number(n, 0);
}

bool is_bounded(const Document& model) { return member(model, "bounded").is_object(); }

std::string verdict(const Document& model) {
  const char* used = flag_of(model, "accepted") ? "accepted" : "not accepted";
  std::string text = fmt::format("{}: {}", used, text_of(model, "why"));
  if (is_bounded(model)) {
    const Document& bounds = member(model, "bounded");
    text += fmt::format("; the observations refute the default, and permit k1 {} and k2 {} at most",
                        figure(bounds, "k1"), figure(bounds, "k2"));
  }
  return text;
}

void render_model(std::ostream& out, const Document& model) {
  const Document& error = member(model, "error");
  out << "  " << printable(verdict(model)) << "\n";
  out << fmt::format("  observations {}, older ones count less\n", count(model));
  out << fmt::format("  b0 {}, k1 {}, k2 {}, k3 {}\n", figure(model, "b0"), coefficient(model, "k1"),
                     coefficient(model, "k2"), coefficient(model, "k3"));
  out << fmt::format("  response without neighbours {}\n", figure(model, "alone"));
  out << fmt::format("  error {}, of the default model {}, of the constant {}\n", figure(error, "model"),
                     figure(error, "default"), figure(error, "constant"));
}

}  // namespace

void render_models(std::ostream& out, const Document& models, const Style& style) {
  const auto& all = list_of(models, "models");
  if (all.empty()) {
    out << "no service has been observed beside neighbours yet\n";
    return;
  }
  Table table({Column::name("SERVICE"), Column::text("RESPONSE"), Column::figure("N"), Column::text("MODEL"),
               Column::text("K1"), Column::text("K2"), Column::text("K3").spared(), Column::figure("ERROR"),
               Column::figure("DEFAULT"), Column::figure("CONSTANT")});
  for (const Document& model : all) {
    const bool accepted = flag_of(model, "accepted");
    const Document& error = member(model, "error");
    table.add({printable(text_of(model, "service")), printable(text_of(model, "response")), count(model),
               Cell(accepted            ? "accepted"
                    : is_bounded(model) ? "bounded"
                                        : "no",
                    accepted ? Colour::green : Colour::dim),
               coefficient(model, "k1"), coefficient(model, "k2"), coefficient(model, "k3"),
               figure(error, "model"), figure(error, "default"), figure(error, "constant")});
  }
  table.print(out, style);
  out << "\n";
  for (const Document& model : all) {
    out << printable(fmt::format("{} by {}: {}", text_of(model, "service"), text_of(model, "response"),
                                 verdict(model)))
        << "\n";
  }
}

bool render_service_models(std::ostream& out, const Document& models, const std::string& service,
                           const Style& style) {
  bool any = false;
  for (const Document& model : list_of(models, "models")) {
    if (text_of(model, "service") != service) continue;
    if (any) out << "\n";
    any = true;
    const auto title = fmt::format("{} by {}", service, text_of(model, "response"));
    out << paint(style, Colour::bold, printable(title)) << "\n";
    render_model(out, model);
  }
  return any;
}

namespace {

// The model of the first response that has an accepted one, else the first that bounds the default, else the
// first of the service, else null.
const Document& model_of(const Document& models, const std::string& service) {
  static const Document kNone;
  const Document* first = &kNone;
  for (const Document& model : list_of(models, "models")) {
    if (text_of(model, "service") != service) continue;
    if (flag_of(model, "accepted")) return model;
    const bool better = is_bounded(model) && !is_bounded(*first);
    if (first->is_null() || better) first = &model;
  }
  return *first;
}

}  // namespace

Document models_in_use(const Document& workloads, const Document& models, bool learns) {
  std::map<std::string, int> instances;
  for (const Document& workload : list_of(workloads, "workloads")) {
    if (text_of(workload, "class") == "latency-sensitive") ++instances[text_of(workload, "service")];
  }
  Document services = Document::array();
  for (const auto& [service, count] : instances) {
    const Document model = learns ? model_of(models, service) : Document();
    services.push_back({{"service", service},
                        {"instances", count},
                        {"origin", flag_of(model, "accepted") ? "fitted"
                                   : is_bounded(model)        ? "bounded"
                                                              : "default"},
                        {"model", model}});
  }
  return {{"schema", "berth.models-in-use/1"}, {"learn", learns}, {"services", std::move(services)}};
}

void render_models_in_use(std::ostream& out, const Document& in_use, const Style& style) {
  const auto& services = list_of(in_use, "services");
  if (services.empty()) {
    out << "no latency-sensitive workload runs here\n";
    return;
  }
  Table table({Column::name("SERVICE"), Column::figure("INSTANCES"), Column::text("MODEL"),
               Column::text("RESPONSE"), Column::figure("N"), Column::text("K1"), Column::text("K2"),
               Column::figure("ERROR")});
  for (const Document& service : services) {
    const Document& model = member(service, "model");
    const bool fitted = flag_of(model, "accepted");
    const auto used = [&](const char* name) {
      if (is_bounded(model)) return fmt::format("at most {}", figure(member(model, "bounded"), name));
      return fitted ? coefficient(model, name) : "default";
    };
    table.add({printable(text_of(service, "service")), format_number(number_of(service, "instances"), 0),
               Cell(text_of(service, "origin"), fitted ? Colour::green : Colour::none),
               or_dash(printable(text_of(model, "response"))), count(model), used("k1"), used("k2"),
               figure(member(model, "error"), "model")});
  }
  table.print(out, style);
  out << "\n";
  if (!flag_of(in_use, "learn")) {
    out << "interference.learn is false, so no learned model is used\n";
    return;
  }
  for (const Document& service : services) {
    const Document& model = member(service, "model");
    const auto why = model.is_null() ? std::string("nothing is learned of it yet") : verdict(model);
    out << printable(fmt::format("{}: {}", text_of(service, "service"), why)) << "\n";
  }
}

}  // namespace berth::cli
