//! The two things that this command reads of the configuration itself: where the admin socket is, and
//! where the data is. Read on their own, so that a broken `flows` section or a missing secret never stands
//! between an operator and `status`.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::args::Global;
use crate::exit::Failure;

const PLACES: [&str; 2] = ["./trellara.yml", "/etc/trellara/trellara.yml"];

/// The configuration file: the named one, or the first that exists.
pub(crate) fn config_path(global: &Global) -> Result<PathBuf, Failure> {
    if let Some(path) = &global.config {
        return Ok(path.clone());
    }
    PLACES.iter().map(PathBuf::from).find(|path| path.exists()).ok_or_else(|| {
        Failure::Usage(format!(
            "no configuration found at {}; name it with --config, or write one with trellara init",
            PLACES.join(" or ")
        ))
    })
}

/// The engine's admin socket.
pub(crate) fn admin_socket(global: &Global) -> Result<PathBuf, Failure> {
    if let Some(socket) = &global.admin {
        return Ok(socket.clone());
    }
    let path = config_path(global)?;
    let text = std::fs::read_to_string(&path)
        .map_err(|error| Failure::Usage(format!("cannot read {}: {error}", path.display())))?;
    let base = std::path::absolute(path.parent().unwrap_or(Path::new(""))).unwrap_or_default();
    let environment = config::Environment::with_prefix("TRELLARA").prefix_separator("__").separator("__");
    read(&text, environment).and_then(|settings| settings.socket(&base)).ok_or_else(|| {
        let path = path.display();
        Failure::Usage(format!("{path} names no admin socket and no data_dir; name the socket with --admin"))
    })
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Settings {
    admin: Admin,
    data_dir: Option<PathBuf>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Admin {
    socket: Option<PathBuf>,
}

impl Settings {
    fn socket(self, base: &Path) -> Option<PathBuf> {
        let socket = self.admin.socket.or_else(|| Some(self.data_dir?.join("admin.sock")))?;
        Some(base.join(socket))
    }
}

fn read(text: &str, environment: config::Environment) -> Option<Settings> {
    let own = own_sections(text);
    let layered = config::Config::builder()
        .add_source(config::File::from_str(&own, config::FileFormat::Yaml))
        .add_source(environment)
        .build();
    layered.ok()?.try_deserialize().ok()
}

/// Only the top-level blocks that are read here, as text: what the others hold does not matter.
fn own_sections(text: &str) -> String {
    let mut own = false;
    let mut kept = String::new();
    for line in text.lines() {
        if line.starts_with(|c: char| !c.is_whitespace() && c != '#') {
            own = ["admin:", "data_dir:"].iter().any(|key| line.starts_with(key));
        }
        if own {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

    use super::*;

    fn socket(text: &str) -> Option<PathBuf> {
        let nothing = config::Environment::default().source(Some(Default::default()));
        read(text, nothing)?.socket(Path::new("/etc/t"))
    }

    #[test]
    fn the_socket_is_found_although_the_flows_section_is_broken() {
        let text = "data_dir: ./data\nflows: [}\n  - {source: {{{\nadmin:\n  socket: ./a.sock\n";
        assert_eq!(socket(text).unwrap(), Path::new("/etc/t/./a.sock"));
    }

    #[test]
    fn without_an_admin_section_the_socket_is_in_the_data_folder() {
        assert_eq!(socket("data_dir: /var/lib/t\n").unwrap(), Path::new("/var/lib/t/admin.sock"));
        assert_eq!(socket("instance: a\n"), None);
    }

    #[test]
    fn the_environment_moves_the_socket() {
        let variable = ("TRELLARA__ADMIN__SOCKET".to_owned(), "/run/a.sock".to_owned());
        let environment = config::Environment::with_prefix("TRELLARA")
            .prefix_separator("__")
            .separator("__")
            .source(Some([variable].into_iter().collect()));
        let settings = read("data_dir: ./data\n", environment).unwrap();
        assert_eq!(settings.socket(Path::new("/x")).unwrap(), Path::new("/run/a.sock"));
    }
}
