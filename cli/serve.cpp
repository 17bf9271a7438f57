// SPDX-License-Identifier: Apache-2.0
#include "cli/command.h"
#include "cli/input.h"
#include "config/listen_address.h"
#include "config/listening_socket.h"
#include "integrations/extender/fleet.h"
#include "integrations/extender/http_server.h"
#include "model/dns_name.h"
#include "model/json_text.h"
#include "os/clock.h"

#include <cmath>
#include <csignal>
#include <exception>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

namespace berth::cli {

namespace {

using extender::Failure;
using extender::Fleet;
using extender::Reply;

struct ServeArguments {
  std::string listen = "127.0.0.1:8472";
  std::optional<std::string> snapshots;
  std::string domain = "berth.org";
  std::uint32_t max_age_s = 120;
  std::uint32_t hold_s = 120;
  std::uint32_t pause_s = 15;
  PolicyArguments policies;
};

// Hosts that /healthz names.
constexpr std::size_t kMostAges = 1000;

std::string domain_problem(const std::string& domain) {
  return model::why_no_resource_domain(domain).value_or("");
}

// The questions and their answers. Snapshots are taken on the last socket alone.
class Answers {
 public:
  Answers(Fleet& fleet, std::string domain, std::size_t snapshot_socket)
      : fleet_(fleet), domain_(std::move(domain)), snapshot_socket_(snapshot_socket) {}

  Reply reply(std::size_t socket, const extender::RequestHead& head, std::string_view body) const {
    if (head.path == "/healthz") return {.status = 200, .body = health()};
    const bool question = head.path == "/filter" || head.path == "/prioritize";
    const bool snapshots = head.path == extender::kSnapshotsPath && socket == snapshot_socket_;
    if (!question && !snapshots) {
      const char* why = head.path == extender::kSnapshotsPath
                            ? "snapshots are taken at the address of --snapshots alone"
                            : "there is no such path";
      return failed(404, Failure::path, why, head.path);
    }
    if (head.method != "POST") return failed(405, Failure::path, "the method is POST", head.path);
    return snapshots ? take(body) : answer(head.path == "/filter", body);
  }

 private:
  static Reply failed(int status, Failure failure, const std::string& why, const std::string& path = "") {
    return {.status = status,
            .body = extender::error_json(why),
            .failure = failure,
            .why = path.empty() ? why : fmt::format("{}: {}", path, why)};
  }

  std::string health() const {
    constexpr double kTenths = 10;
    auto snapshots = nlohmann::json::array();
    for (const auto& [host, age_s] : fleet_.ages(os::boot_s(), kMostAges))
      snapshots.push_back({{"host", host}, {"age_s", std::round(age_s * kTenths) / kTenths}});
    return model::json_text(
        {{"hosts", fleet_.hosts()}, {"assumed_pods", fleet_.assumed()}, {"snapshots", std::move(snapshots)}});
  }

  Reply answer(bool filter, std::string_view body) const {
    const auto question = extender::parse_question(body, domain_);
    // The scheduler takes this from /filter as an error of the extender, and from /prioritize as no answer.
    if (!question) return failed(filter ? 200 : 400, Failure::question, question.error().message());
    if (filter) return {.status = 200, .body = to_json(fleet_.filter(*question, os::boot_s()))};
    return {.status = 200, .body = to_json(fleet_.prioritize(*question, os::boot_s()))};
  }

  Reply take(std::string_view body) const {
    // One a request: the questions of the scheduler are answered between requests.
    if (const auto taken = fleet_.take(body, os::boot_s()); !taken) {
      constexpr int kTooManyRequests = 429;
      const bool is_early = taken.error().kind() == model::ErrorKind::transient;
      Reply refused = failed(is_early ? kTooManyRequests : 400, Failure::snapshot, taken.error().message());
      // One that is invalid counts for no host, so it ends the connection of its sender.
      refused.closes = !is_early;
      return refused;
    }
    return {.status = 200, .body = model::json_text({{"taken", 1}})};
  }

  Fleet& fleet_;
  std::string domain_;
  std::size_t snapshot_socket_;
};

// A descriptor that can be read once the program is to end; it stays open until then.
Outcome<int> stop_descriptor() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  const int fd = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
  if (fd < 0) return problem(model::Error::from_errno(errno, "signalfd"));
  return fd;
}

Outcome<config::ListeningSocket> listen_on(const std::string& text) {
  const auto address = config::parse_listen_address(text);
  if (!address) {
    const bool is_elsewhere = address.error().kind() == model::ErrorKind::refused;
    return problem(Exit::wrong_use,
                   address.error().message() +
                       (is_elsewhere ? "; `berthctl serve` speaks no TLS: for other hosts, put a "
                                       "web server with TLS before it (docs/clusters.md, the extender)"
                                     : ""));
  }
  if (address->kind == config::ListenAddress::Kind::none)
    return problem(Exit::wrong_use, "an address to listen on must not be empty");
  auto socket = config::ListeningSocket::open(*address);
  if (!socket) return problem(socket.error());
  return std::move(*socket);
}

Outcome<void> serve(Session& session, const ServeArguments& arguments) {
  std::signal(SIGPIPE, SIG_IGN);  // a reader of the log that is gone ends nothing
  const auto settings = policy_settings(session.err, arguments.policies);
  if (!settings) return tl::unexpected(settings.error());
  std::vector<config::ListeningSocket> sockets;
  for (const auto& text : {std::optional(arguments.listen), arguments.snapshots}) {
    if (!text) continue;
    auto socket = listen_on(*text);
    if (!socket) return tl::unexpected(socket.error());
    sockets.push_back(std::move(*socket));
  }
  const auto stop = stop_descriptor();
  if (!stop) return tl::unexpected(stop.error());

  Fleet fleet({.policies = *settings,
               .max_age_s = static_cast<double>(arguments.max_age_s),
               .hold_s = static_cast<double>(arguments.hold_s),
               .pause_s = static_cast<double>(arguments.pause_s),
               .clock = os::boot_s});
  const Answers answers(fleet, arguments.domain, sockets.size() - 1);
  const auto handler = [&answers](std::size_t socket, const extender::RequestHead& head,
                                  std::string_view body) -> Reply {
    try {
      return answers.reply(socket, head, body);
    } catch (const std::exception& error) {
      return {.status = 503,
              .body = extender::error_json(error.what()),
              .failure = Failure::internal,
              .why = error.what()};
    }
  };
  const auto say = [&session](const std::string& line) { warn(session.err, {line}); };
  extender::HttpServer server(std::move(sockets), handler, say);
  session.out << "listens on " << arguments.listen << "\n" << std::flush;
  const auto ended = server.run(*stop);
  close(*stop);
  if (!ended) return problem(ended.error());
  return {};
}

}  // namespace

Action declare_serve(const Options& options) {
  const auto arguments = std::make_shared<ServeArguments>();
  options.option("--listen", arguments->listen, "Answer /filter, /prioritize and /snapshots here")
      .type_name("ADDRESS")
      .show_default();
  options.option("--snapshots", arguments->snapshots, "Take /snapshots here instead, at a socket of its own")
      .type_name("ADDRESS");
  options.option("--domain", arguments->domain, "The domain of be-cpu and be-memory")
      .type_name("NAME")
      .show_default()
      .check(domain_problem);
  options.option("--max-age", arguments->max_age_s, "Seconds for which a host's snapshot is believed")
      .type_name("SECONDS")
      .show_default()
      .from_to(5, 86400);
  options.option("--hold", arguments->hold_s, "Seconds for which a placed pod counts that no snapshot shows")
      .type_name("SECONDS")
      .show_default()
      .from_to(1, 3600);
  options.option("--pause", arguments->pause_s, "Seconds between two snapshots of a host; 0 takes all")
      .type_name("SECONDS")
      .show_default()
      .from_to(0, 3600);
  declare_policy_options(options, arguments->policies);
  return [arguments](Session& session) { return serve(session, *arguments); };
}

}  // namespace berth::cli
