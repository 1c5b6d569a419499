//! A scripted engine: answers each path with what a test says, on a socket in a folder of its own.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Mutex};

use serde::Serialize;
use tempfile::TempDir;
use trellara_api::Problem;

type Answers = Arc<Mutex<BTreeMap<String, (u16, String)>>>;

#[derive(Debug)]
pub(crate) struct Engine {
    folder: TempDir,
    answers: Answers,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Engine {
    /// Listens; answers 404 to everything that no test has an answer for.
    pub(crate) fn start() -> Self {
        let engine = Self::absent();
        let listener = UnixListener::bind(engine.socket()).unwrap();
        let (answers, requests) = (Arc::clone(&engine.answers), Arc::clone(&engine.requests));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut reader = BufReader::new(stream.unwrap());
                let (path, body) = request(&mut reader);
                requests.lock().unwrap().push(format!("{path} {body}"));
                let path = path.split('?').next().unwrap_or_default().to_owned();
                let answer = answers.lock().unwrap().get(&path).cloned();
                let (status, body) = answer.unwrap_or((404, "{}".to_owned()));
                let head = format!(
                    "HTTP/1.1 {status} X\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
                    body.len()
                );
                // A client that has seen enough may be gone.
                let _ = reader.get_mut().write_all(format!("{head}{body}").as_bytes());
            }
        });
        engine
    }

    /// Configured, but nobody listens.
    pub(crate) fn absent() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("admin.sock");
        let text = format!("admin: {{ socket: {} }}\nflows: [}} broken on purpose\n", socket.display());
        std::fs::write(folder.path().join("trellara.yml"), text).unwrap();
        Self { folder, answers: Answers::default(), requests: Arc::default() }
    }

    pub(crate) fn answers<T: Serialize>(self, path: &str, answer: &T) -> Self {
        let answer = serde_json::to_string(answer).unwrap();
        self.answers.lock().unwrap().insert(path.to_owned(), (200, answer));
        self
    }

    pub(crate) fn refuses(self, path: &str, problem: &Problem) -> Self {
        let answer = serde_json::to_string(problem).unwrap();
        self.answers.lock().unwrap().insert(path.to_owned(), (problem.status, answer));
        self
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("admin.sock")
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Requests so far: path, query and body.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }

    /// `trellara ARGUMENTS`, with the configuration in the folder.
    pub(crate) fn trellara(&self, arguments: &[&str]) -> Ended {
        let output = Command::new(env!("CARGO_BIN_EXE_trellara"))
            .args(arguments)
            .env_clear()
            .env("TRELLARA_CONFIG", self.folder.path().join("trellara.yml"))
            .current_dir(self.folder.path())
            .stdin(Stdio::null())
            .output()
            .unwrap();
        Ended::new(&output, self.folder.path())
    }
}

/// What a command left behind, with the folder's name taken out.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ended {
    fn new(output: &Output, folder: &Path) -> Self {
        let folder = folder.display().to_string();
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap().replace(&folder, "FOLDER");
        Self {
            code: output.status.code().unwrap(),
            stdout: text(&output.stdout),
            stderr: text(&output.stderr),
        }
    }
}

fn request(reader: &mut impl BufRead) -> (String, String) {
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
    let mut length = 0;
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).unwrap();
        let header = header.trim().to_ascii_lowercase();
        if header.is_empty() {
            break;
        }
        if let Some(value) = header.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    (path, String::from_utf8(body).unwrap())
}
