//! containerd's CRI, spoken as kubelet does: a pod with published ports and bandwidth limits.

mod messages;

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use conformance::net::{HOST_V4, HOST_V6, Netns, OUTSIDE_V4, OUTSIDE_V6};
use conformance::probe::Transport::{Tcp, Udp};
use http::uri::PathAndQuery;
use prost::Message;
use serde_json::{Value, json};
use tonic::transport::{Channel, Endpoint};

use crate::daemon::Daemon;
use crate::image::{WAIT, archive};
use crate::machine::{Machine, Tool, cgroup, on_machine};
use messages::*;

const TOOLS: [Tool; 6] = [
    ("containerd", "containerd"),
    ("ctr", "containerd"),
    ("runc", "runc"),
    ("tc", "iproute2"),
    ("busybox", "busybox-static"),
    ("tar", "tar"),
];

const RUNTIME: &str = "/runtime.v1.RuntimeService/";
const PAUSE: &str = "localhost/pause:1";

#[test]
#[ignore = "needs root and containerd"]
fn pods() {
    on_machine("cri::pods", "cri", &TOOLS, |machine| {
        let containerd = start(machine);
        let (cri, _daemon) = &containerd;
        let version = cri.version();
        cri.ready(machine);
        let id = cri.run(machine);
        cri.pod_is_reached(machine, &id);
        cri.stop_and_remove(machine, &id);
        drop(containerd);
        let what = "RunPodSandbox with ports and bandwidth, PodSandboxStatus, StopPodSandbox, RemovePodSandbox";
        machine.every_call_worked();
        machine.finish(&version, ("pod", what), &["pods0"]);
    });
}

/// A connection to the daemon.
struct Cri {
    runtime: tokio::runtime::Runtime,
    channel: Channel,
}

fn start(machine: &Machine) -> (Cri, Daemon) {
    let work = machine.work().join("containerd");
    fs::create_dir_all(&work).unwrap();
    let socket = work.join("containerd.sock");
    let cri = "plugins.\"io.containerd.grpc.v1.cri\"";
    let text = format!(
        "version = 2\nroot = \"{work}/root\"\nstate = \"{work}/state\"\n\
         disabled_plugins = [\"io.containerd.internal.v1.opt\"]\n\
         [grpc]\naddress = \"{socket}\"\n[ttrpc]\naddress = \"{socket}.ttrpc\"\n\
         [{cri}]\nsandbox_image = \"{PAUSE}\"\nrestrict_oom_score_adj = true\n\
         [{cri}.containerd]\nsnapshotter = \"native\"\n\
         [{cri}.cni]\nbin_dir = \"{plugins}\"\nconf_dir = \"/etc/cni/net.d\"\n",
        work = work.display(),
        socket = socket.display(),
        plugins = machine.plugins().display(),
    );
    let config = work.join("config.toml");
    fs::write(&config, text).unwrap();
    let list = json!({"cniVersion": "1.0.0", "name": "pods", "plugins": [
        {"type": "bridge", "bridge": "pods0", "isGateway": true, "ipMasq": true, "hairpinMode": true,
         "ipam": {"type": "host-local",
            "ranges": [[{"subnet": "10.45.0.0/24"}], [{"subnet": "fd00:45::/64"}]],
            "routes": [{"dst": "0.0.0.0/0"}, {"dst": "::/0"}]}},
        {"type": "firewall"},
        {"type": "portmap", "capabilities": {"portMappings": true}},
        {"type": "bandwidth", "capabilities": {"bandwidth": true}},
    ]});
    fs::write("/etc/cni/net.d/10-pods.conflist", list.to_string()).unwrap();
    let mut command = machine.command("containerd");
    command.arg("--config").arg(&config);
    let daemon = Daemon::start(command, &socket, &work.join("log"));
    let image = archive(machine.work(), PAUSE, WAIT);
    let mut import = machine.command("ctr");
    import
        .arg("--address")
        .arg(&socket)
        .args([
            "--namespace",
            "k8s.io",
            "images",
            "import",
            "--all-platforms",
        ])
        .arg(image);
    machine.run(&mut import);
    (Cri::connect(&socket), daemon)
}

impl Cri {
    fn connect(socket: &Path) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let endpoint = Endpoint::from_shared(format!("unix://{}", socket.display())).unwrap();
        let channel = runtime.block_on(endpoint.connect()).unwrap();
        Self { runtime, channel }
    }

    #[track_caller]
    fn call<Q: Message + 'static, A: Message + Default + 'static>(
        &self,
        method: &str,
        request: Q,
    ) -> A {
        let path: PathAndQuery = method.parse().unwrap();
        let mut client = tonic::client::Grpc::new(self.channel.clone());
        let answer = self.runtime.block_on(async {
            client.ready().await.unwrap();
            let codec = tonic_prost::ProstCodec::<Q, A>::default();
            client
                .unary(tonic::Request::new(request), path, codec)
                .await
        });
        answer
            .unwrap_or_else(|status| panic!("{method}: {status}"))
            .into_inner()
    }

    fn version(&self) -> String {
        let answer: VersionResponse =
            self.call(&format!("{RUNTIME}Version"), VersionRequest::default());
        format!("{} {} (CRI)", answer.runtime_name, answer.runtime_version)
    }

    /// The image is known and the runtime says that it has a network.
    fn ready(&self, machine: &Machine) {
        let end = Instant::now() + Duration::from_secs(20);
        loop {
            let request = ImageStatusRequest {
                image: Some(ImageSpec {
                    image: PAUSE.into(),
                }),
            };
            let answer: ImageStatusResponse =
                self.call("/runtime.v1.ImageService/ImageStatus", request);
            if answer.image.is_some() {
                break;
            }
            assert!(Instant::now() < end, "the image does not appear");
            std::thread::sleep(Duration::from_millis(50));
        }
        let answer: StatusResponse =
            self.call(&format!("{RUNTIME}Status"), StatusRequest::default());
        let conditions = answer.status.unwrap().conditions;
        for kind in ["RuntimeReady", "NetworkReady"] {
            let condition = conditions.iter().find(|one| one.kind == kind).unwrap();
            assert!(condition.status, "{condition:?}");
        }
        machine.ok("Status: the runtime and its network are ready", "");
    }

    fn run(&self, machine: &Machine) -> String {
        let port = |protocol, container, host| PortMapping {
            protocol,
            container_port: container,
            host_port: host,
            host_ip: String::new(),
        };
        let limit = |direction: &str| {
            (
                format!("kubernetes.io/{direction}-bandwidth"),
                "100M".to_owned(),
            )
        };
        let config = PodSandboxConfig {
            metadata: Some(PodSandboxMetadata {
                name: "web".into(),
                uid: "0a1b2c3d-0000-4000-8000-0123456789ab".into(),
                namespace: "default".into(),
                attempt: 0,
            }),
            hostname: "web".into(),
            log_directory: String::new(),
            dns_config: Some(DnsConfig {
                servers: vec!["192.0.2.53".into()],
                searches: vec!["example.test".into()],
                options: Vec::new(),
            }),
            port_mappings: vec![port(TCP, 80, 8080), port(UDP, 53, 5353)],
            annotations: HashMap::from([limit("ingress"), limit("egress")]),
            linux: Some(LinuxPodSandboxConfig {
                cgroup_parent: format!("/{}", cgroup("cri")),
            }),
        };
        let request = RunPodSandboxRequest {
            config: Some(config),
            runtime_handler: String::new(),
        };
        let answer: RunPodSandboxResponse = self.call(&format!("{RUNTIME}RunPodSandbox"), request);
        machine.ok(
            "RunPodSandbox with ports and limits",
            &answer.pod_sandbox_id[..12],
        );
        answer.pod_sandbox_id
    }

    fn status(&self, id: &str) -> PodSandboxStatusResponse {
        let request = PodSandboxStatusRequest {
            pod_sandbox_id: id.to_owned(),
            verbose: true,
        };
        self.call(&format!("{RUNTIME}PodSandboxStatus"), request)
    }

    fn pod_is_reached(&self, machine: &Machine, id: &str) {
        let answer = self.status(id);
        let network = answer.status.unwrap().network.unwrap();
        assert_eq!(network.ip, "10.45.0.2");
        assert_eq!(network.additional_ips[0].ip, "fd00:45::2");
        machine.ok("PodSandboxStatus: both addresses", "10.45.0.2 fd00:45::2");
        let info: Value = serde_json::from_str(&answer.info["info"]).unwrap();
        let netns = PathBuf::from(format!("/proc/{}/ns/net", info["pid"]));
        let pod = Netns::open(&netns).unwrap();
        let (here, outside) = (machine.host.netns(), machine.host.outside());
        let _servers = [
            machine.serve(&pod, Tcp, "10.45.0.2:80", "pod"),
            machine.serve(&pod, Udp, "10.45.0.2:53", "pod"),
            machine.serve(&pod, Tcp, "[fd00:45::2]:80", "pod"),
        ];
        machine.asks("the host asks the pod", here, Tcp, "10.45.0.2:80");
        machine.asks(
            "another host asks the published port",
            outside,
            Tcp,
            "192.0.2.1:8080",
        );
        machine.asks(
            "another host asks the published port",
            outside,
            Udp,
            "192.0.2.1:5353",
        );
        machine.asks(
            "another host asks the published port",
            outside,
            Tcp,
            "[2001:db8::1]:8080",
        );
        machine.asks("the pod asks itself (hairpin)", &pod, Tcp, "10.45.0.1:8080");
        machine.masquerades(&pod, OUTSIDE_V4, HOST_V4);
        machine.masquerades(&pod, OUTSIDE_V6, HOST_V6);
        let queues = machine.run(machine.command("tc").args(["qdisc", "show"]));
        assert_eq!(queues.matches("qdisc tbf ").count(), 2, "{queues}");
        machine.ok(
            "the limits of the annotations hold both ways",
            "two token buckets",
        );
    }

    fn stop_and_remove(&self, machine: &Machine, id: &str) {
        let pod_sandbox_id = id.to_owned();
        let request = StopPodSandboxRequest { pod_sandbox_id };
        let _: Empty = self.call(&format!("{RUNTIME}StopPodSandbox"), request);
        machine.asks_in_vain(
            "StopPodSandbox: the port is closed",
            machine.host.outside(),
            "192.0.2.1:8080",
        );
        let pod_sandbox_id = id.to_owned();
        let request = RemovePodSandboxRequest { pod_sandbox_id };
        let _: Empty = self.call(&format!("{RUNTIME}RemovePodSandbox"), request);
        machine.ok("RemovePodSandbox: a second DEL without a namespace", "");
    }
}
