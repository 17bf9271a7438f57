// SPDX-License-Identifier: Apache-2.0
#include "cgroup/recognise.h"

#include <algorithm>
#include <optional>
#include <string>

#include <gtest/gtest.h>

namespace berth::cgroup {
namespace {

using namespace std::string_literals;

const std::string kId = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
const std::string kPods = "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod11_22.slice/";

TEST(Kind, IsReadFromTheName) {
  EXPECT_EQ(kind_of("system.slice/nginx.service"), Kind::systemd_service);
  EXPECT_EQ(kind_of("user.slice/user-0.slice/session-1.scope"), Kind::systemd_scope);
  EXPECT_EQ(kind_of("machine.slice/libpod-" + kId + ".scope"), Kind::podman);
  EXPECT_EQ(kind_of("system.slice/docker-" + kId + ".scope"), Kind::docker);
  EXPECT_EQ(kind_of("docker/" + kId), Kind::docker);
  EXPECT_EQ(kind_of(kPods + "cri-containerd-" + kId + ".scope"), Kind::cri);
  EXPECT_EQ(kind_of(kPods + "crio-" + kId + ".scope"), Kind::cri);
  EXPECT_EQ(kind_of("kubepods/besteffort/pod1-2/" + kId), Kind::cri);
  EXPECT_EQ(kind_of("system.slice"), Kind::other);
  EXPECT_EQ(kind_of(""), Kind::other);
}

TEST(Kind, WhatOnlyLooksLikeAContainerIsNone) {
  EXPECT_EQ(kind_of("machine.slice/libpod-conmon-" + kId + ".scope"), Kind::systemd_scope);
  EXPECT_EQ(kind_of("x/crio-conmon-" + kId + ".scope"), Kind::systemd_scope);
  EXPECT_EQ(kind_of("machine.slice/libpod-short.scope"), Kind::systemd_scope);
  EXPECT_EQ(kind_of("machine.slice/libpod-" + std::string(64, 'G') + ".scope"), Kind::systemd_scope);
  EXPECT_EQ(kind_of("other/" + kId), Kind::other);
  EXPECT_EQ(kind_of("pod1/" + kId), Kind::other);
}

TEST(PodUid, IsThatOfTheApiServerWhateverTheLayout) {
  const std::string uid = "0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9";
  std::string in_slice = uid;
  std::replace(in_slice.begin(), in_slice.end(), '-', '_');
  const std::string slice = "kubepods-besteffort-pod" + in_slice + ".slice";
  EXPECT_EQ(
      pod_uid("kubepods.slice/kubepods-besteffort.slice/" + slice + "/cri-containerd-" + kId + ".scope"),
      uid);
  EXPECT_EQ(pod_uid("kubepods/burstable/pod" + uid + "/" + kId), uid);
  EXPECT_EQ(pod_uid("system.slice/" + slice + ":cri-containerd:" + kId), uid);
  EXPECT_EQ(pod_uid("kubepods/burstable/pod" + uid), "");
  EXPECT_EQ(pod_uid("docker/" + kId), "");
}

TEST(ServiceName, OfUnitsDropsInstanceAndSuffix) {
  EXPECT_EQ(service_name("system.slice/nginx.service"), "nginx");
  EXPECT_EQ(service_name("system.slice/system-web.slice/web@1.service"), "web");
  EXPECT_EQ(service_name("system.slice/run-r1a2b.scope"), "run-r1a2b");
  EXPECT_EQ(service_name("system.slice/org.example.App.service"), "org.example.App");
  EXPECT_EQ(service_name("system.slice/_cgroup.service"), "cgroup");
}

TEST(ServiceName, ResolvesEscapesButNoControlCharacters) {
  EXPECT_EQ(service_name("system.slice/foo\\x2dbar@x.service"), "foo-bar");
  EXPECT_EQ(service_name("system.slice/a\\x0ab.service"), "a\\x0ab");
  EXPECT_EQ(service_name("system.slice/a\\x2.service"), "a\\x2");
  EXPECT_EQ(service_name("system.slice/a\\xzz.service"), "a\\xzz");
  EXPECT_EQ(service_name("system.slice/caf\\xc3\\xa9.service"), "caf\xC3\xA9");
  EXPECT_EQ(service_name("system.slice/caf\\xe9.service"), "caf\\xe9");
}

TEST(ServiceName, OfContainersIsTheShortId) {
  EXPECT_EQ(service_name("machine.slice/libpod-" + kId + ".scope"), "0123456789ab");
  EXPECT_EQ(service_name("docker/" + kId), "0123456789ab");
  EXPECT_EQ(service_name(kPods + "crio-" + kId + ".scope"), "0123456789ab");
}

TEST(ServiceName, OfAnythingElseIsTheLastComponent) {
  EXPECT_EQ(service_name("batch/job-7"), "job-7");
  EXPECT_EQ(service_name(".service"), ".service");
}

TEST(SystemdUnit, IsTheMainGroupOfAUnit) {
  EXPECT_EQ(systemd_unit("system.slice/nginx.service"), "nginx.service");
  EXPECT_EQ(systemd_unit("system.slice"), "system.slice");
  EXPECT_EQ(systemd_unit("init.scope"), "init.scope");
  EXPECT_EQ(systemd_unit("machine.slice/libpod-" + kId + ".scope"), "libpod-" + kId + ".scope");
  EXPECT_EQ(systemd_unit("system.slice/system-web.slice/web@1.service"), "web@1.service");
  EXPECT_EQ(systemd_unit(kPods + "cri-containerd-" + kId + ".scope"), "cri-containerd-" + kId + ".scope");
  EXPECT_EQ(systemd_unit("system.slice/foo\\x2dbar.service"), "foo\\x2dbar.service");
  EXPECT_EQ(systemd_unit("system.slice/_cgroup.service"), "cgroup.service");
}

TEST(SystemdUnit, IsNoneInsideADelegatedUnit) {
  EXPECT_EQ(systemd_unit("machine.slice/libpod-" + kId + ".scope/container"), "");
  EXPECT_EQ(systemd_unit("user.slice/user-1000.slice/user@1000.service/app.slice/web.service"), "");
  EXPECT_EQ(systemd_unit("system.slice/docker.service/x.slice"), "");
}

TEST(SystemdUnit, IsNoneWhereSystemdWouldNotPutIt) {
  EXPECT_EQ(systemd_unit("docker/" + kId), "");
  EXPECT_EQ(systemd_unit("kubepods/pod1/" + kId), "");
  EXPECT_EQ(systemd_unit("mine/nginx.service"), "");
  EXPECT_EQ(systemd_unit("system-web.slice"), "") << "it belongs into system.slice";
  EXPECT_EQ(systemd_unit("a.slice/b.slice"), "");
  EXPECT_EQ(systemd_unit("system.slice/.service"), "");
  EXPECT_EQ(systemd_unit(""), "");
}

TEST(PodQos, IsReadFromBothCgroupDrivers) {
  EXPECT_EQ(pod_qos(kPods + "cri-containerd-" + kId + ".scope"), PodQos::burstable);
  EXPECT_EQ(pod_qos("kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod1_2.slice/crio-" + kId +
                    ".scope"),
            PodQos::best_effort);
  EXPECT_EQ(pod_qos("kubepods.slice/kubepods-pod1_2.slice/cri-containerd-" + kId + ".scope"),
            PodQos::guaranteed);
  EXPECT_EQ(pod_qos("kubepods/besteffort/pod1-2/" + kId), PodQos::best_effort);
  EXPECT_EQ(pod_qos("kubepods/burstable/pod1-2/" + kId), PodQos::burstable);
  EXPECT_EQ(pod_qos("kubepods/pod1-2/" + kId), PodQos::guaranteed);
  EXPECT_EQ(pod_qos("kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-besteffort.slice/"
                    "kubelet-kubepods-besteffort-pod1.slice/cri-containerd-" +
                    kId + ".scope"),
            PodQos::best_effort);
}

TEST(PodQos, OnlyContainersHaveOne) {
  EXPECT_EQ(pod_qos("kubepods/pod1-2"), std::nullopt);
  EXPECT_EQ(pod_qos("kubepods.slice/kubepods-besteffort.slice"), std::nullopt);
  EXPECT_EQ(pod_qos("system.slice/docker-" + kId + ".scope"), std::nullopt);
  EXPECT_EQ(pod_qos("pod1/" + kId), std::nullopt);
  EXPECT_EQ(pod_qos("kubepods/other/pod1/" + kId), std::nullopt);
}

struct Layout {
  std::string path;
  std::optional<PodQos> qos;
};

// Kubelet's groups below other ones, and the names that runtimes give without systemd.
TEST(PodQos, IsReadInTheLayoutsThatHostsHave) {
  const std::string scope = "cri-containerd-" + kId + ".scope";
  const Layout layouts[] = {
      {"team.slice/team-kubepods.slice/team-kubepods-pod1_2.slice/" + scope, PodQos::guaranteed},
      {"team.slice/team-kubepods.slice/team-kubepods-besteffort.slice/"
       "team-kubepods-besteffort-pod1_2.slice/" +
           scope,
       PodQos::best_effort},
      {"a.slice/a-b.slice/a-b-kubepods.slice/a-b-kubepods-burstable.slice/"
       "a-b-kubepods-burstable-pod1.slice/" +
           scope,
       PodQos::burstable},
      {"team/kubepods/besteffort/pod1-2/" + kId, PodQos::best_effort},
      {"system.slice/docker-" + kId +
           ".scope/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod1.slice/" + scope,
       PodQos::guaranteed},
      {"kubepods-besteffort-pod1_2.slice:cri-containerd:" + kId, PodQos::best_effort},
      {"system.slice/containerd.service/kubepods-burstable-pod1_2.slice:cri-containerd:" + kId,
       PodQos::burstable},
      {"kubepods-pod1_2.slice:crio:" + kId, PodQos::guaranteed},
      {"team-kubepods-besteffort-pod1_2.slice:cri-containerd:" + kId, PodQos::best_effort},
      {"kubepods/besteffort/pod1-2/kata_" + kId, PodQos::best_effort},
      {"kubepods/burstable/pod1-2/crio-" + kId, PodQos::burstable},
  };
  for (const Layout& layout : layouts) {
    EXPECT_EQ(pod_qos(layout.path), layout.qos) << layout.path;
    EXPECT_EQ(kind_of(layout.path), Kind::cri) << layout.path;
    EXPECT_EQ(service_name(layout.path), "0123456789ab") << layout.path;
  }
}

TEST(PodOf, IsTheGroupOfAllContainersOfThePod) {
  const std::string pod = "kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod1_2.slice";
  EXPECT_EQ(pod_of(pod + "/cri-containerd-" + kId + ".scope"), (PodPlace{pod, pod}));
  EXPECT_EQ(pod_of("kubepods/pod1-2/" + kId), (PodPlace{"kubepods/pod1-2", "kubepods/pod1-2"}));
  EXPECT_EQ(pod_of("system.slice/containerd.service/kubepods-pod1.slice:cri-containerd:" + kId),
            (PodPlace{"system.slice/containerd.service/kubepods-pod1.slice", ""}))
      << "this runtime makes no group for a pod";
  EXPECT_EQ(pod_of(pod), std::nullopt);
  EXPECT_EQ(pod_of("system.slice/docker-" + kId + ".scope"), std::nullopt);
}

TEST(PodQos, NamesThatOnlyResembleALayoutHaveNone) {
  for (const std::string& path :
       {"batch.slice:cri-containerd:" + kId, "kubepods-besteffort-pod1.slice:" + kId,
        "kubepods-besteffort-pod1.slice::" + kId,
        std::string("kubepods-besteffort-pod1.slice:cri-containerd:1"),
        "mykubepods.slice/mykubepods-pod1.slice/cri-containerd-" + kId + ".scope",
        std::string("kubepods/besteffort/pod1-2/kata_overhead"), "machine/kata_" + kId, "x/crio-" + kId}) {
    EXPECT_EQ(pod_qos(path), std::nullopt) << path;
  }
}

TEST(ServiceName, OfAGuestOfLibvirtIsTheSameAfterARestart) {
  EXPECT_EQ(service_name("machine.slice/machine-qemu\\x2d1\\x2dweb.scope"), "web");
  EXPECT_EQ(service_name("machine.slice/machine-qemu\\x2d17\\x2dweb.scope"), "web");
  EXPECT_EQ(service_name("machine.slice/machine-qemu\\x2d3\\x2ddb\\x2d2.scope"), "db-2");
  EXPECT_EQ(service_name("machine.slice/machine-lxc\\x2d2041\\x2dbuild.scope"), "build");
  EXPECT_EQ(service_name("machine/qemu-4-web.libvirt-qemu"), "web");
}

TEST(ServiceName, OfOtherMachinesIsTheirOwn) {
  EXPECT_EQ(service_name("machine.slice/machine-web.scope"), "machine-web");
  EXPECT_EQ(service_name("machine.slice/machine-qemu\\x2dweb.scope"), "machine-qemu-web");
  EXPECT_EQ(service_name("machine.slice/machine-qemu\\x2d1\\x2d.scope"), "machine-qemu-1-");
  EXPECT_EQ(service_name("system.slice/qemu-1-web.service"), "qemu-1-web");
}

TEST(ContainerMonitor, IsTheScopeOfConmonBesideItsContainer) {
  EXPECT_TRUE(is_container_monitor("machine.slice/libpod-conmon-" + kId + ".scope"));
  EXPECT_TRUE(is_container_monitor("kubepods.slice/crio-conmon-" + kId + ".scope"));
  EXPECT_TRUE(is_container_monitor("kubepods/besteffort/pod1/crio-conmon-" + kId));
  EXPECT_FALSE(is_container_monitor("machine.slice/libpod-" + kId + ".scope"));
  EXPECT_FALSE(is_container_monitor("system.slice/libpod-conmon-.service"));
}

TEST(InnerContainer, IsTheGroupInsideAContainersScope) {
  EXPECT_TRUE(is_inner_container("machine.slice/libpod-" + kId + ".scope/container"));
  EXPECT_FALSE(is_inner_container("machine.slice/libpod-" + kId + ".scope"));
  EXPECT_FALSE(is_inner_container("machine.slice/container"));
  EXPECT_FALSE(is_inner_container("machine.slice/libpod-" + kId + ".scope/container/sub"));
}

TEST(CpusetOfRuntime, IsThatOfContainersGuestsJobsTasksAndMachines) {
  for (const std::string& path : {
           "system.slice/docker-" + kId + ".scope",
           "machine.slice/machine-qemu\\x2d1\\x2dweb.scope/libvirt/vcpu0"s,
           "lxc.payload.web"s,
           "lxc.payload.project_web-1"s,
           "nomad.slice/reserve.slice"s,
           "nomad.slice/reserve.slice/5e0c.web.scope"s,
           "nomad.slice/share.slice/5e0c.web.scope"s,
           "system.slice/slurmstepd.scope/job_123"s,
           "system.slice/n1_slurmstepd.scope/job_123"s,
           "machine.slice/machine-build.scope"s,
           "machine.slice/systemd-nspawn@build.service"s,
           "libpod_parent/libpod-" + kId,
           "libpod_parent/" + kId + "/libpod-" + kId,
       })
    EXPECT_TRUE(has_cpuset_of_runtime(path)) << path;
}

TEST(CpusetOfRuntime, IsNotThatOfTheirHelpersNorOfAnythingElse) {
  for (const std::string& path : {
           "lxc.monitor.web"s,
           "lxc.payload."s,
           "lxc.payload.web/init.scope"s,
           "nomad.slice"s,
           "nomad.slice/share.slice"s,
           "nomad.slice/5e0c.web.scope"s,
           "system.slice/slurmstepd.scope"s,
           "system.slice/slurmstepd.scope/system"s,
           "system.slice/slurmstepd.scope/job_"s,
           "system.slice/slurmstepd.scope/job_1x"s,
           "system.slice/slurmstepd.scope/job_7/step_0"s,
           "system.slice/notslurmstepd.scope/job_7"s,
           "machine.slice/machine-qemu\\x2d1\\x2dweb.scope"s,
           "system.slice/machine-build.scope"s,
           "machine.slice/libpod-conmon-" + kId + ".scope",
           "libpod_parent/conmon"s,
           "other/libpod-" + kId,
       })
    EXPECT_FALSE(has_cpuset_of_runtime(path)) << path;
}

TEST(ProgramsOfOthers, RunInContainersPodsGuestsAndSessions) {
  for (const std::string& path :
       {"system.slice/docker-" + kId + ".scope", "spark.slice/docker-" + kId + ".scope/inner",
        "system.slice/nerdctl-" + kId + ".scope", "docker/" + kId, "default/" + kId,
        std::string("kubepods.slice/kubepods-besteffort.slice/x"), std::string("kubepods/pod1/x"),
        std::string("machine.slice/machine-web.scope"), std::string("user.slice/user-1000.slice"),
        std::string("user.slice/user-1000.slice/session-3.scope"),
        std::string("lxc.payload.web/system.slice/x"),
        std::string("system.slice/slurmstepd.scope/job_7/step_0"),
        std::string("nomad.slice/share.slice/a.scope"), std::string("machine/lxc-1-x.libvirt-lxc"),
        std::string("user.slice/user-1000.slice/user@1000.service")})
    EXPECT_TRUE(runs_programs_of_others(path)) << path;
  for (const char* path :
       {"system.slice/nodemanager.service", "spark.slice/worker.service", "batch/worker",
        "user.slice/user-0.slice/session-1.scope", "user.slice/user-0.slice/user@0.service/a.service", ""})
    EXPECT_FALSE(runs_programs_of_others(path)) << path;
}

}  // namespace
}  // namespace berth::cgroup
