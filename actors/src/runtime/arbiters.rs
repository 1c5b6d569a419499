//! The control threads: one for the supervisor, a few for flow actors. Mailboxes only, no I/O.
//!
//! Each arbiter is one OS thread with its own runtime, so there are few, with a blocking pool of one. A
//! dead arbiter still hands out addresses, hence the handshake after every spawn.

use std::io;
use std::time::Duration;

use actix::{Arbiter, ArbiterHandle, System};

/// How long a thread may take to say that it is there.
const HANDSHAKE: Duration = Duration::from_secs(5);

/// The threads, joined by `Control::join` only.
#[derive(Debug)]
pub struct Control {
    system: System,
    system_thread: std::thread::JoinHandle<()>,
    arbiters: Vec<Arbiter>,
}

/// Where actors are placed.
#[derive(Clone, Debug)]
pub struct Placement {
    supervisor: ArbiterHandle,
    flows: Vec<ArbiterHandle>,
}

impl Control {
    /// Starts the supervisor's thread and `flow_threads` more.
    ///
    /// # Errors
    /// A thread or its runtime could not be made, or did not answer.
    pub fn start(flow_threads: usize) -> io::Result<Self> {
        let (ready, made) = std::sync::mpsc::channel();
        let system_thread = std::thread::Builder::new().name("control".to_owned()).spawn(move || {
            let Ok(runtime) = small_runtime() else { return };
            let runner = System::with_tokio_rt(|| runtime);
            // An arbiter belongs to the system of the thread that makes it.
            let arbiters: io::Result<Vec<_>> =
                (0..flow_threads.max(1)).map(|_| Arbiter::try_with_tokio_rt(small_runtime)).collect();
            if ready.send((System::current(), arbiters)).is_ok() {
                let _ = runner.run();
            }
        })?;
        let (system, arbiters) = made.recv_timeout(HANDSHAKE).map_err(|_| no_answer("control thread"))?;
        let control = Self { system, system_thread, arbiters: arbiters? };
        for handle in control.handles() {
            handshake(&handle)?;
        }
        Ok(control)
    }

    pub fn placement(&self) -> Placement {
        Placement {
            supervisor: self.system.arbiter().clone(),
            flows: self.arbiters.iter().map(Arbiter::handle).collect(),
        }
    }

    /// Stops the flow threads, then the supervisor's, and joins them in that order. Blocks; to be called
    /// outside every runtime, after the actors have ended.
    ///
    /// # Errors
    /// A thread did not end in time (it is left behind) or had panicked.
    pub fn join(self, deadline: Duration) -> io::Result<()> {
        let (done, joined) = std::sync::mpsc::channel();
        let Self { system, system_thread, arbiters } = self;
        std::thread::Builder::new().name("control-join".to_owned()).spawn(move || {
            let mut clean = true;
            for arbiter in arbiters {
                arbiter.stop();
                clean &= arbiter.join().is_ok();
            }
            system.stop();
            clean &= system_thread.join().is_ok();
            let _ = done.send(clean);
        })?;
        match joined.recv_timeout(deadline) {
            Ok(true) => Ok(()),
            Ok(false) => Err(io::Error::other("a control thread panicked")),
            Err(_) => Err(no_answer("control threads at their end")),
        }
    }

    fn handles(&self) -> Vec<ArbiterHandle> {
        let flows = self.arbiters.iter().map(Arbiter::handle);
        std::iter::once(self.system.arbiter().clone()).chain(flows).collect()
    }
}

impl Placement {
    pub fn supervisor(&self) -> &ArbiterHandle {
        &self.supervisor
    }

    /// The thread of the n-th flow, or a living one instead of it; none when all are dead.
    pub fn flow(&self, n: usize) -> Option<&ArbiterHandle> {
        let threads = self.flows.len().max(1);
        (0..threads).filter_map(|step| self.flows.get((n + step) % threads)).find(|thread| thread.alive())
    }
}

fn small_runtime() -> io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().max_blocking_threads(1).build()
}

fn handshake(handle: &ArbiterHandle) -> io::Result<()> {
    let (answer, answered) = std::sync::mpsc::channel();
    let sent = handle.spawn_fn(move || {
        let _ = answer.send(());
    });
    if sent && answered.recv_timeout(HANDSHAKE).is_ok() { Ok(()) } else { Err(no_answer("flow thread")) }
}

fn no_answer(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, format!("no answer from {what}"))
}
