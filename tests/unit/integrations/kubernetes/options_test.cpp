// SPDX-License-Identifier: Apache-2.0
#include "integrations/kubernetes/options.h"

#include "tests/temporary_directory.h"

#include <algorithm>
#include <string>
#include <variant>
#include <vector>

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::kubernetes {
namespace {

using ::testing::HasSubstr;

class KubernetesOptions : public testing::Test {
 protected:
  std::variant<Options, ExitStatus> parse(std::vector<std::string> words) {
    words.insert(words.begin(), {"berth-kube", "--config", config_});
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    return parse_options(static_cast<int>(words.size()), argv.data(), host_);
  }
  Options good(const std::vector<std::string>& words) {
    const auto parsed = parse(words);
    EXPECT_TRUE(std::holds_alternative<Options>(parsed));
    return std::holds_alternative<Options>(parsed) ? std::get<Options>(parsed) : Options();
  }
  // The message of a refused command line.
  std::string refusal(const std::vector<std::string>& words) {
    testing::internal::CaptureStderr();
    const auto parsed = parse(words);
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_TRUE(std::holds_alternative<ExitStatus>(parsed) &&
                std::get<ExitStatus>(parsed) == ExitStatus::wrong_use);
    EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
    return said;
  }
  std::string refused_file(const std::string& text) {
    directory_.write("kube.toml", text);
    return refusal({});
  }

  test::TemporaryDirectory directory_;
  std::string config_ = directory_.write("kube.toml", "").string();
  std::string host_ = "Worker-1";
};

const std::vector<std::string> kLoopback{"--server", "http://127.0.0.1:8001"};

TEST_F(KubernetesOptions, HaveDefaults) {
  const Options options = good(kLoopback);
  EXPECT_EQ(options.node, "worker-1");
  EXPECT_EQ(options.access.server, "http://127.0.0.1:8001");
  EXPECT_EQ(options.domain, "berth.org");
  EXPECT_EQ(options.state_file, "/run/berth/state.json");
  EXPECT_EQ(options.max_age_s, 120);
  EXPECT_EQ(options.interval_s, 60);
  EXPECT_EQ(options.min_change, 0.01);
  EXPECT_TRUE(options.taint);
  EXPECT_TRUE(options.events);
  EXPECT_EQ(options.relocate, Relocate::report);
  EXPECT_EQ(options.end, Relocate::evict);
  EXPECT_EQ(options.relocate_after_s, 60);
  EXPECT_FALSE(options.once || options.dry_run || options.withdraw);
}

TEST_F(KubernetesOptions, AreTakenFromTheFileAndTheCommandLine) {
  directory_.write("kube.toml", R"(
node = "n7"
server = "https://api.example.org:6443/"
ca = "/etc/berth/kube/ca.crt"
token = "/etc/berth/kube/token"
domain = "example.org"
state = "/x/state.json"
max_age = 60
interval = 30.5
min_change = 0.05
taint = false
events = false
end = "report"
relocate = "evict"
relocate_after = 90
)");
  Options options = good({});
  EXPECT_EQ(options.node, "n7");
  EXPECT_EQ(options.access.server, "https://api.example.org:6443");
  EXPECT_EQ(options.access.ca, "/etc/berth/kube/ca.crt");
  EXPECT_EQ(options.access.token, "/etc/berth/kube/token");
  EXPECT_EQ(options.domain, "example.org");
  EXPECT_EQ(options.state_file, "/x/state.json");
  EXPECT_EQ(options.max_age_s, 60);
  EXPECT_EQ(options.interval_s, 30.5);
  EXPECT_EQ(options.min_change, 0.05);
  EXPECT_FALSE(options.taint);
  EXPECT_FALSE(options.events);
  EXPECT_EQ(options.relocate, Relocate::evict);
  EXPECT_EQ(options.end, Relocate::report);
  EXPECT_EQ(options.relocate_after_s, 90);
  // The command line wins.
  options = good({"--node=n8", "--certificate", "/c", "--key", "/k", "--max-age", "5", "--once", "--withdraw",
                  "--dry-run", "--relocate", "report"});
  EXPECT_EQ(options.node, "n8");
  EXPECT_EQ(options.access.certificate, "/c");
  EXPECT_EQ(options.access.key, "/k");
  EXPECT_EQ(options.max_age_s, 5);
  EXPECT_EQ(options.relocate, Relocate::report);
  EXPECT_TRUE(options.once && options.dry_run && options.withdraw);
}

TEST_F(KubernetesOptions, AreChecked) {
  EXPECT_THAT(refusal({"--node", "N1"}), HasSubstr("--node N1: "));
  EXPECT_THAT(refusal({"--domain", "a/b"}), HasSubstr("--domain a/b: "));
  EXPECT_THAT(refusal({"--domain", "node.kubernetes.io"}),
              HasSubstr("--domain node.kubernetes.io: Kubernetes keeps this domain for itself"));
  for (const char* bad : {"api:6443", "ftp://api", "https://", "https://a@b", "https://a b", "https://:6443"})
    EXPECT_THAT(refusal({"--server", bad}), HasSubstr("--server")) << bad;
  for (const char* bad : {"http://api.example.org", "http://127.0.0.1.example.org", "http://localhost.org"})
    EXPECT_THAT(refusal({"--server", bad}), HasSubstr("loopback")) << bad;
  for (const char* option : {"config", "state", "ca", "token", "certificate", "key"}) {
    for (const char* bad : {"kube.toml", "./a", "", "/"}) {
      EXPECT_THAT(refusal({fmt::format("--{}", option), bad}),
                  HasSubstr(fmt::format("--{} {}: it is no absolute path", option, bad)));
    }
  }
  for (const char* bad : {"4.9", "86401", "nan", "inf", "-1", "1m", ""})
    EXPECT_THAT(refusal({"--max-age", bad}), HasSubstr("from 5 to 86400")) << bad;
  for (const char* bad : {"4", "3601", "nan"})
    EXPECT_THAT(refusal({"--interval", bad}), HasSubstr("from 5 to 3600")) << bad;
  for (const char* bad : {"-0.1", "1.1", "nan"})
    EXPECT_THAT(refusal({"--min-change", bad}), HasSubstr("from 0 to 1")) << bad;
  EXPECT_THAT(refusal({"--relocate", "drain"}), HasSubstr("it is neither report nor evict"));
  EXPECT_THAT(refusal({"--end", "kill"}), HasSubstr("it is neither report nor evict"));
  EXPECT_THAT(refusal({"--relocate-after", "3601"}), HasSubstr("from 0 to 3600"));
  EXPECT_THAT(refusal({"--node"}), HasSubstr("--node needs a value"));
  EXPECT_THAT(refusal({"--bogus"}), HasSubstr("no option --bogus"));
  EXPECT_THAT(refusal({"n1"}), HasSubstr("no argument (n1)"));
  EXPECT_THAT(refusal({"--bo\x1b[31m\ngus"}), HasSubstr("\\x1b[31m\\ngus"));
  host_ = "my_host";
  EXPECT_THAT(refusal(kLoopback), HasSubstr("give --node NAME"));
}

TEST_F(KubernetesOptions, LeadToOneServer) {
  EXPECT_THAT(refusal({}), HasSubstr("which API server?"));
  const std::string https = "https://api:6443";
  EXPECT_THAT(refusal({"--server", https, "--ca", "/ca"}), HasSubstr("credentials are missing"));
  EXPECT_THAT(refusal({"--server", https, "--ca", "/ca", "--key", "/k"}), HasSubstr("belong together"));
  EXPECT_THAT(refusal({"--server", https, "--token", "/t"}), HasSubstr("--ca is missing"));
  EXPECT_THAT(refusal({"--server", kLoopback[1], "--token", "/t"}), HasSubstr("without TLS"));
  good({"--server", https, "--ca", "/ca", "--token", "/t"});
  good({"--server", https, "--ca", "/ca", "--certificate", "/c", "--key", "/k"});
  good({"--server", "http://[::1]:8001"});
}

TEST_F(KubernetesOptions, AFaultOfTheFileNamesItsLine) {
  EXPECT_THAT(refused_file("node = \"n1\"\nnodes = 7\n"),
              HasSubstr("kube.toml:2: nodes: there is no such setting"));
  EXPECT_THAT(refused_file("max-age = 60"), HasSubstr("kube.toml:1: max-age: there is no such setting"));
  EXPECT_THAT(refused_file("no_taint = true"),
              HasSubstr("kube.toml:1: no_taint: there is no such setting; write taint = false"));
  EXPECT_THAT(refused_file("no_events = true"), HasSubstr("; write events = false"));
  EXPECT_THAT(refused_file("server = https://10.0.0.1:6443"), HasSubstr("; text is written in quotes"));
  EXPECT_THAT(refused_file("node = 7"), HasSubstr("kube.toml:1: node: it is no text in quotes"));
  EXPECT_THAT(refused_file("interval = \"60\""), HasSubstr("kube.toml:1: interval: it is no number"));
  EXPECT_THAT(refused_file("interval = 1"),
              HasSubstr("kube.toml:1: interval: it is no number from 5 to 3600"));
  EXPECT_THAT(refused_file("interval = nan"), HasSubstr("from 5 to 3600"));
  EXPECT_THAT(refused_file("taint = 1"), HasSubstr("kube.toml:1: taint: it is neither"));
  EXPECT_THAT(refused_file("events = \"no\""), HasSubstr("kube.toml:1: events: it is neither"));
  EXPECT_THAT(refused_file("\nnode = "), HasSubstr("kube.toml:2: "));
  EXPECT_THAT(refused_file(std::string(70'000, '#')), HasSubstr("longer than 65536 bytes"));
  config_ = "/nonexistent/kube.toml";
  EXPECT_THAT(refusal({}), HasSubstr("/nonexistent/kube.toml"));
}

}  // namespace
}  // namespace berth::kubernetes
