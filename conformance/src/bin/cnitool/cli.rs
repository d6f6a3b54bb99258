//! What may be said at the shell.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

const ENVIRONMENT: &str = "Environment:
  NETCONFPATH    directory of the network configurations [default: /etc/cni/net.d]
  CNI_PATH       directories of the plugins, separated by colons
  CNI_ARGS       arguments for the plugins: KEY=value, separated by semicolons
  CAP_ARGS       capability arguments: a JSON object, for instance
                 {\"portMappings\":[{\"hostPort\":8080,\"containerPort\":80,\"protocol\":\"tcp\"}]}
  CNI_IFNAME     interface in the namespace, unless --ifname is given [default: eth0]
  CNI_CACHE_DIR  directory of remembered attachments, unless --cache-dir is given
                 [default: /var/lib/cni]

check and del take the arguments of the add when CNI_ARGS and CAP_ARGS are not set.

Exit status:
  0  it is done; inspect misses nothing; doctor finds no fault
  1  it failed, or the command line makes no sense
  3  it did its work and has something bad to tell: inspect misses something, or
     doctor finds a fault";

/// Attaches a network namespace to a network, checks, and detaches it.
#[derive(Parser)]
#[command(name = "cnitool", version, after_help = ENVIRONMENT, subcommand_required = true)]
pub struct Cli {
    /// Interface in the namespace
    #[arg(short, long, global = true, value_name = "NAME")]
    pub ifname: Option<String>,
    /// Directory of remembered attachments
    #[arg(long, global = true, value_name = "DIR")]
    pub cache_dir: Option<PathBuf>,
    /// Answer in JSON, failures too
    #[arg(long, global = true)]
    pub json: bool,
    /// Tell on standard error how far long work is; without it only a terminal is told
    #[arg(long, global = true)]
    pub progress: bool,
    #[command(subcommand)]
    pub verb: Verb,
}

#[derive(Subcommand)]
pub enum Verb {
    /// Attach the namespace and print the result
    Add(Target),
    /// Check that the namespace is attached as add left it
    Check(Target),
    /// Detach the namespace
    Del(Target),
    /// Free what attachments left behind whose namespace is gone
    Gc {
        #[command(flatten)]
        network: Network,
        /// Detach the live ones too: every attachment of the network in the cache
        #[arg(long)]
        all: bool,
    },
    /// Put back the rules of all live attachments, after a reload of the packet filter
    Reapply {
        /// Only those of this network
        network: Option<String>,
    },
    /// Ask the plugins whether an add could work
    Status(Network),
    /// List the attachments in the cache, of every runtime that uses it
    List {
        /// Only those of this network
        network: Option<String>,
    },
    /// Show what there is on the host for an attachment, and what is missing
    Inspect {
        /// The container's id or its beginning, the path of its namespace, or that one's name
        id: String,
    },
    /// Look for what keeps attachments from working: kernel, packet filter, configurations, leases
    Doctor {
        /// Only this network's configuration
        network: Option<String>,
    },
    /// Print the completions for a shell
    Completion {
        /// Which
        shell: clap_complete::Shell,
    },
}

#[derive(Args)]
pub struct Target {
    /// Name of the network
    pub network: String,
    /// Path of the network namespace
    pub netns: PathBuf,
    #[arg(hide = true)]
    pub ignored: Vec<OsString>,
}

#[derive(Args)]
pub struct Network {
    /// Name of the network
    pub network: String,
    /// Not used; other versions of this tool ask for it
    #[arg(value_name = "NETNS")]
    pub ignored: Vec<OsString>,
}
