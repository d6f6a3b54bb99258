//! The `sbr` plugin's configuration.

use std::net::IpAddr;

use serde::Deserialize;

use crate::error::Error;

/// The keys that this plugin reads.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Config {
    /// A table that somebody else fills. Without it each address gets one of its own.
    pub table: Option<i64>,
    /// Routers in the place of those that the result names, at most one of each family.
    pub gateways: Vec<String>,
    /// Leave the routes to the interface's own networks in the main table, with the address as their source.
    pub add_source_hints: bool,
}

/// What is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// The addresses are looked up in a table that exists.
    Given(u32),
    /// Each address gets a table.
    Own {
        /// The routers that are named.
        gateways: Gateways,
        /// As [`Config::add_source_hints`].
        hints: bool,
    },
}

/// One router of each family.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Gateways {
    v4: Option<IpAddr>,
    v6: Option<IpAddr>,
}

impl Gateways {
    /// The one of a family.
    pub fn of(&self, ipv6: bool) -> Option<IpAddr> {
        if ipv6 { self.v6 } else { self.v4 }
    }
}

impl Config {
    /// What the configuration asks for. A given table makes the other keys meaningless.
    ///
    /// # Errors
    /// When a value is not good.
    pub fn mode(&self) -> Result<Mode, Error> {
        match self.table {
            Some(number) => match u32::try_from(number) {
                Ok(table) if table > 0 => Ok(Mode::Given(table)),
                _ => Err(Error::Table(number)),
            },
            None => Ok(Mode::Own {
                gateways: self.gateways()?,
                hints: self.add_source_hints,
            }),
        }
    }

    fn gateways(&self) -> Result<Gateways, Error> {
        if self.gateways.len() > 2 {
            return Err(Error::TooManyGateways(self.gateways.len()));
        }
        let mut found = Gateways::default();
        for text in &self.gateways {
            let ip: IpAddr = text.parse().map_err(|_| Error::Gateway(text.clone()))?;
            let ip = ip.to_canonical();
            let place = if ip.is_ipv6() {
                &mut found.v6
            } else {
                &mut found.v4
            };
            if let Some(other) = place.replace(ip) {
                return Err(Error::GatewaysOfOneFamily(other, ip));
            }
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(text: &str) -> Result<Mode, Error> {
        let value = cni_types::json::parse(text.as_bytes()).unwrap();
        let config: Config = cni_types::json::from_value(&value).unwrap();
        config.mode()
    }

    #[test]
    fn one_gateway_of_each_family() {
        let Mode::Own { gateways, hints } =
            mode(r#"{"gateways":["fd00::1","10.0.0.1"],"addSourceHints":true}"#).unwrap()
        else {
            panic!()
        };
        assert_eq!(gateways.of(false), Some("10.0.0.1".parse().unwrap()));
        assert_eq!(gateways.of(true), Some("fd00::1".parse().unwrap()));
        assert!(hints);
    }

    #[test]
    fn gateways_that_cannot_be() {
        for text in [
            r#"["10.0.0.1","10.0.0.2"]"#,
            r#"["10.0.0.1","::ffff:10.0.0.2"]"#,
            r#"["10.0.0.1","fd00::1","fd00::2"]"#,
            r#"["10.0.0.1/24"]"#,
            r#"[""]"#,
            r#"[null]"#,
        ] {
            let error = mode(&format!(r#"{{"gateways":{text}}}"#)).unwrap_err();
            assert_eq!(skel::PluginError::code(&error), 7, "{text}");
        }
    }

    #[test]
    fn a_table_makes_the_rest_meaningless() {
        assert_eq!(
            mode(r#"{"table":500,"gateways":["nonsense"]}"#).unwrap(),
            Mode::Given(500)
        );
        for number in ["0", "-1", "4294967296"] {
            assert!(matches!(
                mode(&format!(r#"{{"table":{number}}}"#)),
                Err(Error::Table(_))
            ));
        }
    }
}
