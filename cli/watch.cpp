// SPDX-License-Identifier: Apache-2.0
#include "bus/compat.h"
#include "bus/names.h"
#include "cli/command.h"
#include "cli/daemon_client.h"
#include "cli/document.h"
#include "cli/log_options.h"
#include "cli/problem.h"
#include "cli/render.h"
#include "cli/text.h"
#include "model/json_text.h"
#include "os/clock.h"

#include <array>
#include <csignal>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <manager_proxy.h>
#include <poll.h>
#include <unistd.h>

namespace berth::cli {

namespace {

constexpr int kLookAround_ms = 1000;

// "1.50 cores and 2.0 GiB".
std::string amount(double cpu_cores, std::uint64_t memory_bytes) {
  std::string text = cpu_cores > 0 ? fmt::format("{:.2f} cores", cpu_cores) : "";
  if (memory_bytes == 0) return text.empty() ? "a better place" : text;
  return text + (text.empty() ? "" : " and ") + format_bytes(memory_bytes);
}

// Hears the daemon's signals from its construction on.
class News final : public sdbus::ProxyInterfaces<org::berth::Node1::Manager_proxy, sdbus::Properties_proxy> {
 public:
  News(sdbus::IConnection& connection, const std::function<bool(const Document&)>& told)
      : ProxyInterfaces(connection, bus::ServiceName{bus::kServiceName},
                        sdbus::ObjectPath{bus::kManagerPath}),
        told_(told) {
    registerProxy();
  }
  ~News() { unregisterProxy(); }
  News(const News&) = delete;
  News& operator=(const News&) = delete;

  bool has_enough() const { return enough_; }

 private:
  using Changes = std::map<bus::PropertyName, sdbus::Variant>;

  void tell(const Document& news) {
    if (!enough_) enough_ = !told_(news);
  }
  static Document news(const char* kind, const std::string& workload, const std::string& reason,
                       const std::string& decision) {
    return {{"time", os::epoch_s()}, {"kind", kind},     {"workload", workload},
            {"policy", "straggler"}, {"reason", reason}, {"decision", decision}};
  }

  void onDecided(const double& time, const std::map<std::string, std::string>& members) override {
    Document entry{{"time", time}};
    for (const char* name :
         {"decision", "mode", "kind", "workload", "attribute", "old", "new", "policy", "reason", "result"}) {
      const auto found = members.find(name);
      entry[name] = found == members.end() ? "" : found->second;
    }
    const auto error = members.find("error");
    entry["error"] = error == members.end() ? Document(nullptr) : Document(error->second);
    tell(entry);
  }
  void onStragglerFound(const std::string& workload, const std::string& reason,
                        const std::string& decision) override {
    tell(news("straggler", workload, reason, decision));
  }
  void onRelocationNeeded(const std::string& workload, const double& cpu_cores,
                          const std::uint64_t& memory_bytes, const std::string& decision) override {
    tell(news("relocation", workload, "it lacks " + amount(cpu_cores, memory_bytes), decision));
  }
  void onPropertiesChanged(const bus::InterfaceName&, const Changes& changed,
                           const std::vector<bus::PropertyName>&) override {
    const auto mode = changed.find(bus::PropertyName{"Mode"});
    if (mode == changed.end()) return;
    tell({{"time", os::epoch_s()}, {"kind", "mode"}, {"new", mode->second.get<std::string>()}});
  }
  // Decided tells these.
  void onPinned(const std::string&, const std::string&, const std::string&) override {}
  void onUnpinned(const std::string&, const std::string&) override {}
  void onQuotaChanged(const std::string&, const std::string&, const std::string&, const std::string&,
                      const std::string&) override {}
  void onEvicted(const std::string&, const std::string&, const std::uint64_t&, const std::string&) override {}
  void onSchedulingStateChanged(const std::string&, const std::string&, const std::string&,
                                const std::string&, const std::string&) override {}

  const std::function<bool(const Document&)>& told_;
  bool enough_ = false;
};

// Waits for a message. False where no process reads standard output any more.
bool wait_for_message(const sdbus::IConnection& connection) {
  const bus::PollData data = bus::poll_data(connection);
  std::array<pollfd, 2> waited{pollfd{data.fd, data.events, 0}, pollfd{STDOUT_FILENO, 0, 0}};
  poll(waited.data(), waited.size(), kLookAround_ms);
  return (waited[1].revents & POLLERR) == 0;
}

// Follows berthd over the system bus, and calls `told` with each news: an entry of berth.log/1, or a document
// of the same form with the kind "straggler", "relocation" or "mode" (docs/contract/documents.md,
// berth.watch/1). Ends when `told` returns false, or when no process reads standard output any more, as
// SIGPIPE would end it. Problem unreachable where no berthd is on the bus, and where it leaves the bus.
Outcome<void> follow_daemon(const std::function<bool(const Document&)>& told) {
  // Says in time that there is no bus, or no berthd.
  if (const auto present = DaemonClient::connect(); !present) return tl::unexpected(present.error());
  try {
    const auto connection = sdbus::createSystemBusConnection();
    bool left = false;
    const auto bus = sdbus::createProxy(*connection, bus::ServiceName{"org.freedesktop.DBus"},
                                        sdbus::ObjectPath{"/org/freedesktop/DBus"});
    bus->uponSignal("NameOwnerChanged")
        .onInterface("org.freedesktop.DBus")
        .call([&left](const std::string& name, const std::string& before, const std::string&) {
          left = left || (name == bus::kServiceName && !before.empty());
        });
    bus::finish_registration(*bus);
    const News news(*connection, told);
    while (!news.has_enough()) {
      if (bus::process_one(*connection)) continue;
      if (left) return problem(Exit::unreachable, "berthd has left the bus");
      if (!wait_for_message(*connection)) {
        raise(SIGPIPE);
        return {};
      }
    }
    return {};
  } catch (const sdbus::Error& error) {
    return problem(Exit::unreachable, fmt::format("the system bus does not answer ({})", error.getMessage()));
  }
}

struct WatchArguments {
  LogOptions log;
  std::uint32_t number = 0;  // 0: without an end
};

void print(Session& session, const Document& news) {
  if (session.json) {
    Document line = news;
    line["schema"] = "berth.watch/1";
    session.out << model::json_text(line) << "\n" << std::flush;
    return;
  }
  render_log(session.out, {news}, session.style);
  session.out << std::flush;
}

Outcome<void> watch(Session& session, const WatchArguments& arguments) {
  std::uint32_t told = 0;
  return follow_daemon([&](const Document& news) {
    if (!arguments.log.accept(news)) return true;
    print(session, news);
    ++told;
    return session.out && (arguments.number == 0 || told < arguments.number);
  });
}

}  // namespace

Action declare_watch(const Options& options) {
  const auto arguments = std::make_shared<WatchArguments>();
  declare_log_options(options, arguments->log, false, true);
  options.option("-n", arguments->number, "End after so many")
      .type_name("NUMBER")
      .from_to(1, std::numeric_limits<std::uint32_t>::max());
  return [arguments](Session& session) { return watch(session, *arguments); };
}

}  // namespace berth::cli
