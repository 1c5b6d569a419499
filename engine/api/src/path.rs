//! Where everything is: one constant per endpoint, shared by server and client. Segments in braces are
//! filled by the functions below.

pub const LIVE: &str = "/health/live";
pub const READY: &str = "/health/ready";
pub const VERSION: &str = "/v1/version";
pub const STOP: &str = "/v1/stop";
pub const STATUS_SUMMARY: &str = "/v1/status/summary";
pub const STATUS_DIAGNOSTICS: &str = "/v1/status/diagnostics";
pub const STATUS_REPORT: &str = "/v1/status/report";
pub const FLOWS: &str = "/v1/flows";
pub const FLOW: &str = "/v1/flows/{flow}";
pub const FLOW_EVENTS: &str = "/v1/flows/{flow}/events";
pub const FLOW_REMOVE: &str = "/v1/flows/{flow}/remove";
pub const FLOW_LOCATE: &str = "/v1/flows/{flow}/locate/{lsn}";
pub const PAUSE: &str = "/v1/pause";
pub const RESUME: &str = "/v1/resume";
pub const RESTART: &str = "/v1/restart";
pub const QUARANTINE: &str = "/v1/quarantine";
pub const QUARANTINE_RECORD: &str = "/v1/quarantine/{id}";
pub const QUARANTINE_REPLAY: &str = "/v1/quarantine/{id}/replay";
pub const QUARANTINE_DISCARD: &str = "/v1/quarantine/{id}/discard";
pub const REPAIR_PLAN: &str = "/v1/repair/plan";
pub const CONFIG_RELOAD: &str = "/v1/config/reload";
pub const STORE_BACKUP: &str = "/v1/store/backup";

/// Who acts, where the person behind a shared account says so (`--as`).
pub const ACTING_AS: &str = "x-trellara-as";

/// Fills the first segment in braces, then the second.
pub fn fill(template: &str, values: &[&str]) -> String {
    let mut path = String::new();
    let mut values = values.iter();
    for part in template.split_inclusive(['{', '}']) {
        match part.strip_suffix('}') {
            Some(_) => path.push_str(&values.next().map_or_else(String::new, |value| encode(value))),
            None => path.push_str(part.trim_end_matches('{')),
        }
    }
    path
}

/// Percent-encodes everything but RFC 3986's unreserved characters.
pub(crate) fn encode(text: &str) -> String {
    text.bytes().fold(String::new(), |mut encoded, byte| {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
        encoded
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_filled_in_order_and_encoded() {
        assert_eq!(
            fill(FLOW_LOCATE, &["store-0001:retail", "0/16B3748"]),
            "/v1/flows/store-0001%3Aretail/locate/0%2F16B3748"
        );
        assert_eq!(fill(FLOW_EVENTS, &["a"]), "/v1/flows/a/events");
    }
}
