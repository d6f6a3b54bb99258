//! The system bus, and firewalld on it.

use std::path::Path;
use std::time::Duration;

use tokio::runtime::Runtime;
use zbus::connection::Builder;
use zbus::{Connection, Message};

use crate::error::{Error, Result};

const SERVICE: &str = "org.fedoraproject.FirewallD1";
const OBJECT: &str = "/org/fedoraproject/FirewallD1";
const ZONES: &str = "org.fedoraproject.FirewallD1.zone";
const BUS: &str = "org.freedesktop.DBus";
const BUS_OBJECT: &str = "/org/freedesktop/DBus";
/// Where the bus listens by convention (D-Bus specification, "system message bus").
const SOCKET: &str = "/var/run/dbus/system_bus_socket";

/// Address of the system bus.
fn address() -> String {
    let given = std::env::var("DBUS_SYSTEM_BUS_ADDRESS")
        .ok()
        .filter(|text| !text.is_empty());
    given.unwrap_or_else(|| format!("unix:path={SOCKET}"))
}

/// Whether there can be a bus: an address that is a file's path is worth nothing without the file.
pub(crate) fn exists() -> bool {
    let address = address();
    let path = address
        .strip_prefix("unix:path=")
        .map(|rest| rest.split([',', ';']).next().unwrap_or_default());
    path.is_none_or(|path| Path::new(path).exists())
}

/// A connection over which firewalld has answered.
pub(crate) struct Bus {
    runtime: Runtime,
    connection: Connection,
}

/// Why a call had no good answer.
pub(crate) enum Refused {
    /// firewalld's own words.
    Said(String),
    /// The bus's.
    Bus(zbus::Error),
}

impl Refused {
    pub(crate) fn into_error(self, what: &str) -> Error {
        let reason = match self {
            Self::Said(text) => text,
            Self::Bus(error) => error.to_string(),
        };
        Error::Unavailable {
            what: format!("firewalld (asked to {what})"),
            reason,
        }
    }
}

/// An answer.
pub(crate) struct Answer(Message);

impl Answer {
    /// Whether it is the boolean true.
    pub(crate) fn is_true(&self) -> bool {
        self.0.body().deserialize().unwrap_or(false)
    }
}

impl Bus {
    /// Connects and looks whether firewalld is there, without starting it.
    pub(crate) fn open(timeout: Duration) -> Result<Self> {
        let absent = |reason: String| Error::Unavailable {
            what: "the firewalld backend".to_owned(),
            reason,
        };
        let address = address();
        if !exists() {
            return Err(absent(format!(
                "no system bus at {address}; start firewalld or choose another backend"
            )));
        }
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .build();
        let runtime = runtime.map_err(|source| Error::Io {
            what: "start a runtime for D-Bus".to_owned(),
            source,
        })?;
        let connect = async {
            let connection = Builder::address(address.as_str())
                .method_timeout(timeout)
                .build()
                .await?;
            let ask = connection.call_method(
                Some(BUS),
                BUS_OBJECT,
                Some(BUS),
                "GetNameOwner",
                &(SERVICE,),
            );
            ask.await?;
            Ok::<_, zbus::Error>(connection)
        };
        let connected = runtime.block_on(async { tokio::time::timeout(timeout, connect).await });
        let connection = match connected {
            Ok(Ok(connection)) => connection,
            Ok(Err(error)) => {
                return Err(absent(format!(
                    "firewalld does not answer at {address}: {error}"
                )));
            }
            Err(_) => {
                return Err(Error::Busy {
                    what: format!("the system bus at {address}"),
                    reason: format!("no answer in {} seconds", timeout.as_secs_f32()),
                });
            }
        };
        Ok(Self {
            runtime,
            connection,
        })
    }

    /// Calls a method of firewalld's zones.
    pub(crate) fn call(
        &self,
        method: &str,
        zone: &str,
        source: &str,
    ) -> std::result::Result<Answer, Refused> {
        let arguments = (zone, source);
        let call =
            self.connection
                .call_method(Some(SERVICE), OBJECT, Some(ZONES), method, &arguments);
        match self.runtime.block_on(call) {
            Ok(message) => Ok(Answer(message)),
            Err(zbus::Error::MethodError(name, text, _)) => {
                Err(Refused::Said(text.unwrap_or_else(|| name.to_string())))
            }
            Err(error) => Err(Refused::Bus(error)),
        }
    }
}
